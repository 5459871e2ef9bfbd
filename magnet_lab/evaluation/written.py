"""What systems write for a missing sentence, side by side, and what can be said of it without a reader (Section 4.3).

None of these figures sees what a reader sees. What follows becomes likelier by a sentence that leads to it, but also by
one that says it already: so the rate of copies stands beside, and a gain without the copies.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from torch import Tensor
from tqdm import tqdm

from magnet_lab.baselines import BASELINES
from magnet_lab.baselines.prompting import SENTENCE
from magnet_lab.evaluation.data import Data
from magnet_lab.evaluation.experiment import Figure, Rows, Setting, bootstrap, texts
from magnet_lab.evaluation.infilling import Missing, copies, perplexity, remove_sentences
from magnet_lab.infilling import Infill
from magnet_lab.model import Magnet

WELL_FORMED, COPIES, FOLLOWING = "one whole sentence (%)", "copies 4 words (%)", "perplexity of what follows"

_WHOLE = re.compile(r"[\"'“‘(]*[A-Z0-9].*[.!?…][\"'”’)]*")


class System(Protocol):
    """Whatever fills a blank: a `Magnet`, or one of `BASELINES`."""

    def infill(self, text: str) -> Infill: ...


SYSTEMS: dict[str, Callable[[Setting], System]] = {
    "base": lambda setting: BASELINES["unidirectional"](setting.lab(None)),
    **{
        name: lambda setting, name=name: BASELINES[name](setting.lab(None))
        for name in BASELINES
        if name.startswith("zero-shot") or name == "five-shot"
    },
    "MAGNET": lambda setting: setting.lab("magnet"),
}


@dataclass(frozen=True)
class Written:
    """A story, and what was written for the sentence that is missing from it."""

    missing: Missing
    sentence: str

    @property
    def copies(self) -> bool:
        """Whether it repeats any four words of its story, in order."""
        return copies(self.missing.text.replace("[blank]", " "), self.sentence)

    def following(self, base: Magnet) -> Tensor:
        """Log-probabilities (nats) of what follows the missing sentence, by the base model from left to right."""
        return following(base, self.missing.text, self.sentence)

    def gain(self, base: Magnet) -> float:
        """By how much what follows is likelier after this sentence than without any (nats a token)."""
        return float(self.following(base).mean() - following(base, self.missing.text, "").mean())


def middle_sentences(data: Data, most: int, *, seed: int = 0) -> list[Missing]:
    """Stories without one of their middle sentences, at random: something stands before it and something after."""
    missing = remove_sentences(data.stories(2 * most), seed=seed)
    return [story for story in missing if not story.text.endswith("[blank]")][:most]


def write(system: System, stories: list[Missing]) -> list[Written]:
    """What a system writes for each, always taking the likeliest token."""
    bar = tqdm(stories, desc="infilling", unit=" stories", leave=False)
    return [Written(missing, system.infill(missing.text).spans[0]) for missing in bar]


def following(base: Magnet, text: str, sentence: str) -> Tensor:
    """Log-probabilities (nats) of the text after the blank, given what stands before it and a sentence in it."""
    past, future = (side.strip() for side in text.split("[blank]"))
    before = " ".join(part for part in (past, sentence.replace("[blank", r"\[blank")) if part)
    return base.score_infill(f"{before} [blank]", [future], mode="causal").log_probs[0]


def is_one_sentence(text: str) -> bool:
    """Whether a text is one sentence: from a capital letter or a figure to a mark that ends it, with none between."""
    text = text.strip()
    return bool(_WHOLE.fullmatch(text)) and len(SENTENCE.findall(text)) == 1


def figures(written: list[Written], base: Magnet) -> dict[str, Figure]:
    """Shares of whole sentences and of copies, and how likely the base model finds what follows."""
    found = tqdm(written, desc="what follows", unit=" stories", leave=False)
    return {
        WELL_FORMED: bootstrap([is_one_sentence(each.sentence) for each in written], percentage),
        COPIES: bootstrap([each.copies for each in written], percentage),
        FOLLOWING: bootstrap([each.following(base) for each in found], perplexity),
    }


def percentage(found: list[bool]) -> float:
    """How many of a hundred are true."""
    return 100 * fmean(found)


def side_by_side(rows: Rows, printed: Mapping[str, Mapping[str, str]], most: int) -> list[str]:
    """What was written, text by text, as lines of Markdown, and under it what the paper printed.

    Args:
        printed: given -> row -> written, of the paper.
        most: how many of the given texts are shown.
    """
    ours = texts(rows)
    given = list(dict.fromkeys(text for written in ours.values() for text in written))
    lines = []
    for text in given[:most]:
        lines += ["", f"> {_line(text)}", ""]
        lines += [f"- {row}: {_line(written[text])}" for row, written in ours.items() if text in written]
        lines += [f"- *paper: {row}: {_line(sentence)}*" for row, sentence in printed.get(text, {}).items()]
    return lines


def _line(text: str) -> str:
    """A text on one line, in which Markdown finds nothing to do."""
    return re.sub(r"([\\`*_<>\[\]#|])", r"\\\1", " ".join(text.split())) or "(nothing)"
