"""A little world to pre-train on and to be asked about: who put which thing where, in some fifty words.

Real text takes a model hours to learn anything from that fine-tuning could use. A story of this world has a headline,
and two facts of which it tells one in other words:

    the red ball of anna is under the apple tree .
    anna hid the red ball under the apple tree . ben left the blue kite at the bus stop .

It has what the objectives are said to differ in: words that give away their neighbours ("apple" is always followed by
"tree"), and words that only the other end of the text gives away. Its tasks are those of Section 4, made small.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch

PEOPLE = ["anna", "ben", "carla", "david", "emma", "felix"]
DEEDS = ["hid", "left", "found"]
COLOURS = ["red", "blue", "green", "yellow"]
THINGS = ["ball", "kite", "boat", "drum", "lamp", "coat"]
PLACES = ["in the tool shed", "in the coffee shop", "at the bus stop", "by the fish pond", "under the apple tree"]


class Fact(NamedTuple):
    """Who did what with which thing, and where."""

    who: str
    did: str
    colour: str
    thing: str
    where: str

    def told(self) -> str:
        return f"{self.who} {self.did} the {self.colour} {self.thing} {self.where} ."

    def retold(self, way: int) -> str:
        """In one of three ways, 0 to 2."""
        return (
            f"the {self.colour} {self.thing} of {self.who} is {self.where} .",
            f"{self.where} is the {self.colour} {self.thing} that {self.who} {self.did} .",
            f"it was {self.who} who {self.did} the {self.thing} {self.where} .",
        )[way]

    def asked(self, way: int) -> tuple[str, str]:
        """A question and its answer, which stands in `told` word for word; three ways."""
        return (
            (f"where is the {self.thing} of {self.who} ?", self.where),
            (f"what is it that {self.who} {self.did} ?", f"the {self.colour} {self.thing}"),
            (f"who {self.did} the {self.colour} {self.thing} ?", self.who),
        )[way]


def words() -> list[str]:
    """Every word and mark that the stories, questions and answers are made of, each once."""
    fact = Fact("", "", "", "", "")
    frames = [fact.told(), *(fact.retold(way) for way in range(3)), *(fact.asked(way)[0] for way in range(3)), ":"]
    return list(dict.fromkeys(" ".join([*PEOPLE, *DEEDS, *COLOURS, *THINGS, *PLACES, *frames]).split()))


def facts(count: int, generator: torch.Generator) -> list[Fact]:
    """So many facts, at most four, that share nothing but, perhaps, the deed."""
    who, colour, thing, where = (_pick(kind, count, generator) for kind in (PEOPLE, COLOURS, THINGS, PLACES))
    did = [DEEDS[_below(len(DEEDS), generator)] for _ in range(count)]
    return [Fact(*parts) for parts in zip(who, did, colour, thing, where, strict=True)]


def story(generator: torch.Generator) -> tuple[str, str]:
    """Two segments to pre-train on: a headline, and the two facts."""
    told = facts(2, generator)
    return told[_below(2, generator)].retold(_below(3, generator)), _tell(told)


def headline(generator: torch.Generator) -> tuple[str, str, int]:
    """A headline, two facts, and whether it is that of the first (0), of the second (1) or of neither (2)."""
    drawn, label = facts(3, generator), _below(3, generator)
    return drawn[label].retold(_below(3, generator)), _tell(drawn[:2]), label


def question(generator: torch.Generator) -> tuple[str, str, str]:
    """A question, the two facts of which it is about one, and its answer."""
    told = facts(2, generator)
    question, answer = told[_below(2, generator)].asked(_below(3, generator))
    return question, _tell(told), answer


def _tell(facts: Sequence[Fact]) -> str:
    return " ".join(fact.told() for fact in facts)


def _pick(options: Sequence, count: int, generator: torch.Generator) -> list:
    """So many of the options, none twice."""
    return [options[place] for place in torch.randperm(len(options), generator=generator)[:count].tolist()]


def _below(stop: int, generator: torch.Generator) -> int:
    return int(torch.randint(stop, (), generator=generator))
