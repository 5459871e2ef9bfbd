"""A story with blanks: filled with both sides in view, filled from the left alone, and a given answer scored."""

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import magnet_lab as ml

from .. import limits

if TYPE_CHECKING:
    from magnet_lab.model import Magnet


@dataclass(frozen=True)
class Piece:
    """A stretch of a filled text: `kind` is "context", "generated", or "masked" where nothing is written yet."""

    text: str
    kind: str


@dataclass(frozen=True)
class InfillView:
    """A text with its blanks filled, by both sides and by the left side alone, as far as they are written."""

    filled: list[Piece]
    candidates: list[list]  # rows of CANDIDATE_COLUMNS
    left_only: list[Piece]
    done: bool = False


CANDIDATE_COLUMNS = ["", "written", "score"]
SCORE_COLUMNS = ["in view", "perplexity", "score"]


def check_story(text: str, lab: "Magnet | None" = None) -> None:
    """Raise a ValueError if a text with blanks cannot be filled, by any model or by this one."""
    limits.check_text("the story", text, limits.INFILL_CHARACTERS)
    _, blanks = ml.blanks.parse(text)
    if len(blanks) > limits.BLANKS:
        raise ValueError(f"the story has {len(blanks)} blanks; at most {limits.BLANKS} are filled here")
    for number, blank in enumerate(blanks, start=1):
        if blank.longest > limits.BLANK_TOKENS:
            raise ValueError(f"blank {number} asks for {blank.longest:,} tokens; at most {limits.BLANK_TOKENS} here")
    if lab is not None:
        plan = ml.blanks.template(lab.tokenizer, text)
        ml.scoring.check_length(lab.model, plan, [blank.longest for blank in plan.blanks])


def check_options(candidates: int, temperature: float, seed: int) -> None:
    """Raise a ValueError if an option is out of range: sliders hold a page's user within, not one of the API."""
    limits.check_number("the number of candidates", candidates, 1, limits.CANDIDATES, whole=True)
    limits.check_number("the temperature", temperature, 0, limits.TEMPERATURE)
    limits.check_number("the seed", seed, 0, 2**31 - 1, whole=True)


def infill(
    lab: "Magnet",
    text: str,
    candidates: int = 1,
    temperature: float = 0.0,
    seed: int = 0,
    one_after_the_other: bool = False,
) -> Iterator[InfillView]:
    """Fill the blanks with both sides in view, then the same blanks from the left alone; a view after every token.

    Closing the iterator stops the work.
    """
    check_story(text)
    check_options(candidates, temperature, seed)
    snapshots = lab.infill(
        text,
        num_candidates=int(candidates),
        temperature=temperature,
        seed=int(seed),
        sequential=one_after_the_other,
        stream=True,
    )
    with contextlib.closing(snapshots):
        for result in snapshots:
            pieces = fill(text, [span.text for span in result.candidates[0].spans])
            yield InfillView(pieces, [], [])
    rows = [
        [place, " … ".join(span.text.strip() for span in candidate.spans), _rounded(candidate.score)]
        for place, candidate in enumerate(result.candidates, start=1)
    ]
    yield InfillView(pieces, rows, [])
    lengths = [len(span.ids) for span in result.candidates[0].spans]
    left = []
    with contextlib.closing(from_the_left(lab, text, lengths, temperature, int(seed))) as steps:
        for left in steps:
            yield InfillView(pieces, rows, left)
    yield InfillView(pieces, rows, left, done=True)


def from_the_left(lab: "Magnet", text: str, lengths: list[int], temperature: float, seed: int) -> Iterator[list[Piece]]:
    """Fill the blanks, of these lengths in tokens, with nothing in view but what stands to the left of each."""
    segments, _ = ml.blanks.parse(text)
    fills: list[str] = []
    sampling = {"do_sample": True, "temperature": temperature, "seed": seed} if temperature else {}
    for number, length in enumerate(lengths):
        before = (
            "".join(segment + written for segment, written in zip(segments, fills, strict=False)) + segments[number]
        )
        fills.append("")
        with contextlib.closing(lab.generate(before, max_new_tokens=length, stream=True, **sampling)) as pieces:
            for piece in pieces:
                fills[number] += piece
                yield fill(text, fills)


def fill(text: str, fills: Sequence[str]) -> list[Piece]:
    """A text with its first blanks filled, in pieces; blanks without a fill are still masked."""
    segments, blanks = ml.blanks.parse(text)
    pieces = [Piece(segments[0], "context")]
    for number, (blank, segment) in enumerate(zip(blanks, segments[1:], strict=True)):
        written = fills[number] if number < len(fills) else ""
        if blank.after_space:
            pieces.append(Piece(" ", "context"))
            written = written.removeprefix(" ")
        pieces.append(Piece(written, "generated") if written else Piece(" ▢ ", "masked"))
        pieces.append(Piece(segment, "context"))
    return [piece for piece in pieces if piece.text]


def check_answer(text: str, answer: str) -> list[str]:
    """An answer's lines, one for each blank of the text; raises a ValueError if they are not as many."""
    limits.check_text("your answer", answer, limits.INFILL_CHARACTERS)
    fills = [line.strip() for line in answer.splitlines() if line.strip()]
    count = len(ml.blanks.parse(text)[1])
    if len(fills) != count:
        raise ValueError(f"the story has {count} blank(s) and your answer {len(fills)} line(s): write one for each")
    return fills


def score_answer(lab: "Magnet", text: str, answer: str) -> tuple[list[list], str]:
    """How likely an answer is, one line for each blank: rows of SCORE_COLUMNS, and what they say in a sentence."""
    check_story(text)
    fills = check_answer(text, answer)
    both, left = (lab.score_infill(text, fills, mode=mode).perplexity for mode in ("infill", "causal"))
    rows = [
        ["both sides (infill)", _rounded(both), _rounded(-math.log(both))],
        ["the left side only (causal)", _rounded(left), _rounded(-math.log(left))],
    ]
    better, times = ("both sides", left / both) if both <= left else ("the left side only", both / left)
    return rows, (
        f"With {better} in view, the model finds each token of your answer {times:.3g} times likelier on average. "
        "A lower perplexity means less surprise."
    )


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
