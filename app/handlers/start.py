"""One sentence, three masks: the same weights go on with it, read it whole, and fill a gap in it."""

import contextlib
import math
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import magnet_lab as ml

from .. import limits
from . import masks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from magnet_lab.model import Magnet

SENTENCE, MISSING = "The cat sat on the mat.", "sat on the"
OTHERS = (
    "A kitten lies on a rug.",
    "The dog ran across the garden.",
    "She baked bread in the morning.",
    "They went to the beach by car.",
    "It rained all day long.",
    "He forgot his best friend's birthday.",
    "The teacher read a story aloud.",
    "Prices rose again last month.",
)
TOUR = Path(__file__).parent.parent / "tour.toml"


Masked = tuple[list[str], str, str]  # tokens, mode and spans: all that a mask needs, see `masks.draw_mask`


@dataclass(frozen=True)
class Outcome:
    """What the model made of the sentence in one mode; plain enough to be kept as JSON.

    Attributes:
        mode: of the mask, one of `mask_row.MODES`.
        tokens, spans: of the text that it read or wrote, for the mask.
        pieces: the text, `[what it says, "context" or "generated"]`.
        nearest: of a sentence that was encoded, `[other sentence, cosine similarity]`, nearest first.
        sentence: what came out, in words.
    """

    mode: str
    tokens: list[str]
    spans: str
    pieces: list[list[str]]
    nearest: list[list]
    sentence: str

    @property
    def masked(self) -> Masked:
        return self.tokens, self.mode, self.spans


@dataclass(frozen=True)
class Step:
    """A step of the guided tour: on which page, what to do there, and what to look at."""

    page: str
    title: str
    do: str
    look: str


def check(sentence: str, missing: str = "") -> tuple[str, str, str]:
    """A sentence as what stands before the missing words, the words, and what follows.

    Args:
        missing: words of the sentence; without any, those in its middle.

    Raises:
        ValueError: if the sentence is empty or too long, or the words are not in it, or all of it.
    """
    limits.check_text("the sentence", sentence, limits.START_CHARACTERS)
    sentence = " ".join(sentence.split())
    words = list(re.finditer(r"\S+", sentence))
    missing = " ".join((missing or "").split())
    if missing:
        found = re.search(rf"(?<!\w){re.escape(missing)}(?!\w)", sentence)
        if not found:
            raise ValueError(f"“{missing[:60]}” is not in the sentence; copy the words to take out from it")
        start, stop = found.span()
    elif len(words) < 2:
        raise ValueError("the sentence has one word; write at least two, so that one can be taken out")
    else:
        third = len(words) // 3
        start, stop = words[third].start(), words[-max(1, third) - 1].end()
        stop = len(sentence[:stop].rstrip(".,;:!?"))  # a mark that ends the sentence stays
    before, words, after = sentence[:start], sentence[start:stop], sentence[stop:]
    if not (before + after).strip() or not words:
        raise ValueError("the words to take out are the whole sentence; leave something of it")
    return before, words, after


def answer(lab: "Magnet", sentence: str = SENTENCE, missing: str = "") -> Iterator[list[Outcome]]:
    """Generate, encode and infill one sentence by the same weights; all that is there so far, as it comes.

    Closing the iterator stops the work.
    """
    before, words, after = check(sentence, missing)
    sentence = before + words + after
    tokens = masks.split(lab.tokenizer, sentence)
    with contextlib.closing(_generated(lab, sentence, tokens)) as steps:
        for generated in steps:
            yield [generated]
    outcomes = [generated, _encoded(lab, sentence, tokens)]
    yield outcomes
    yield [*outcomes, _infilled(lab, before, words, after)]


def _generated(lab: "Magnet", sentence: str, tokens: list[str]) -> Iterator[Outcome]:
    written = ""
    with contextlib.closing(lab.generate(sentence, max_new_tokens=limits.START_TOKENS, stream=True)) as pieces:
        for piece in pieces:
            written += piece
            yield Outcome(
                mode="causal",
                tokens=tokens + ml.viz.token_texts(lab.tokenizer, written),
                spans="",
                pieces=[[sentence, "context"], [written, "generated"]],
                nearest=[],
                sentence="It went on from the sentence, one token after the other, each seeing those before it.",
            )


def _encoded(lab: "Magnet", sentence: str, tokens: list[str]) -> Outcome:
    vectors = lab.encode([sentence, *OTHERS])
    alike = lab.similarity(vectors[:1], vectors[1:])[0].tolist()
    nearest = sorted(zip(OTHERS, alike, strict=True), key=lambda pair: -pair[1])
    return Outcome(
        mode="bidirectional",
        tokens=tokens,
        spans="",
        pieces=[[sentence, "context"]],
        nearest=[[other, round(value, 3)] for other, value in nearest],
        sentence=f"The sentence became {vectors.shape[1]} numbers. Of {len(OTHERS)} other sentences, the nearest by "
        f"cosine similarity is “{nearest[0][0]}”",
    )


def _infilled(lab: "Magnet", before: str, words: str, after: str) -> Outcome:
    # As many tokens as were there; a decoder's tokens begin with the space before a word.
    length = len(masks.split(lab.tokenizer, (" " if before.endswith(" ") else "") + words))
    before, after = (re.sub(r"(?i)\[blank", r"\\\g<0>", side) for side in (before, after))  # typed by the visitor
    text = f"{before}[blank:{length}]{after}"
    candidate = lab.infill(text).candidates[0]
    span = candidate.spans[0]
    (left, right), _ = ml.blanks.parse(text)
    read = [ml.viz.token_texts(lab.tokenizer, side) for side in (left, right)]
    first = len(read[0])
    own, true = math.exp(-span.score), lab.score_infill(text, [words]).perplexity
    return Outcome(
        mode="magnet",
        tokens=[*read[0], *span.tokens, *read[1]],
        spans=masks.write_spans([(first, first + len(span.tokens) - 1)]),
        pieces=[[left, "context"], [span.text, "generated"], [right, "context"]],
        nearest=[],
        sentence=f"“{words}” was taken out. The model wrote “{span.text.strip()}” (perplexity {own:.3g}); the words "
        f"that were there have {true:.3g}.",
    )


def three_masks(texts: Sequence[Masked]) -> tuple[list["Figure"], str]:
    """The masks in which a sentence was generated, encoded and infilled: their pictures, and all of them as text."""
    drawn = [masks.draw_mask(*text) for text in texts]
    names = ("generate: causal", "encode: bidirectional", "infill: MAGNET")
    twins = (f"{name}\n{view.text}" for name, view in zip(names, drawn, strict=False))
    return [view.figure for view in drawn], "\n\n".join(twins)


def tour() -> list[Step]:
    """The guided tour, as it is kept in `app/tour.toml`."""
    return [Step(**step) for step in tomllib.loads(TOUR.read_text(encoding="utf-8"))["step"]]
