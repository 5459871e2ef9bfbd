"""A story with blanks: filled with both sides in view, from the left alone, or by every system; an answer scored."""

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import magnet_lab as ml

from .. import limits
from . import adapters, stoppable

if TYPE_CHECKING:
    from magnet_lab.infilling import Candidate
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
    shades: list["Shade"] = ()
    done: bool = False


Shade = tuple[str, float | None]  # a stretch of a text and how likely its writer found it; None for what was given


@dataclass(frozen=True)
class Filling:
    """A story as one system fills it.

    Attributes:
        shades: the whole text; empty until it is there.
        sentence: what there is to say: how far it is, how surprised it was by its own words, or what is wrong.
        done: nothing more will come.
    """

    system: str
    shades: list[Shade] = ()
    sentence: str = "Waiting for its turn."
    done: bool = False


STORY = "Tom went to the park. [blank] He was very sad."
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
    shades = shade(text, result.candidates[0])
    yield InfillView(pieces, rows, [], shades)
    lengths = [len(span.ids) for span in result.candidates[0].spans]
    left = []
    with contextlib.closing(from_the_left(lab, text, lengths, temperature, int(seed))) as steps:
        for left in steps:
            yield InfillView(pieces, rows, left, shades)
    yield InfillView(pieces, rows, left, shades, done=True)


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


def shade(text: str, candidate: "Candidate") -> list[Shade]:
    """A filled text, token by token where it was written."""
    segments, _ = ml.blanks.parse(text)
    shades: list[Shade] = [(segments[0], None)]
    for span, segment in zip(candidate.spans, segments[1:], strict=True):
        shades += [*_shaded(span), (segment, None)]
    return [(stretch, probability) for stretch, probability in shades if stretch]


def _shaded(span) -> list[Shade]:
    """A span's tokens with their probabilities; of the first and the last one, what belongs to the span's text."""
    said = span.text.strip()
    start = "".join(span.tokens).find(said)
    if not said or start < 0:  # a character that is made of several tokens is none of them
        return [(span.text, math.exp(span.score))]
    before, _, after = span.text.partition(said)
    shades, place = [], 0
    for token, log_prob in zip(span.tokens, span.log_probs, strict=True):
        kept = token[max(0, start - place) : max(0, start + len(said) - place)]
        if kept:
            # A space before the first word is that of the blank where its token has none.
            shades.append((kept if shades else before + kept, math.exp(log_prob)))
        place += len(token)
    return [*shades, (after, None)]


# --- by every system


# Short names for links, to those of `baselines.BASELINES`, which is slow to import and not needed to write a menu.
ASKED = {
    "unidirectional": "unidirectional",
    "line-by-line": "zero-shot",
    "blank-infilling": "zero-shot, blank infilling",
    "contextual": "zero-shot, contextual",
    "prefix-suffix": "zero-shot, prefix-suffix",
    "five-shot": "five-shot",
}
UNDER_THE_MASK = {"magnet": "MAGNET", "llm2vec": "LLM2Vec under the MAGNET mask"}


def systems(model: str) -> list[str]:
    """Who can fill a blank with a model's weights: the base model, also when asked in words, and the adapters."""
    return [*ASKED, *(adapter for adapter in UNDER_THE_MASK if adapter in adapters.available(model))]


def name(system: str) -> str:
    if system == "unidirectional":
        return "Base model, from the left"
    if system == "line-by-line":
        return "Zero-shot, line-by-line"
    return UNDER_THE_MASK.get(system) or ASKED[system].capitalize()


def absent(model: str) -> str:
    """A sentence about the systems that a model comes without; "" if there are none."""
    missing = [UNDER_THE_MASK[adapter] for adapter in UNDER_THE_MASK if adapter not in adapters.available(model)]
    return f"Not here: {', '.join(missing)}, as {model} comes without the adapter." if missing else ""


def check_systems(text: str, chosen: Sequence[str], temperature, seed, model: str, lab: "Magnet | None" = None) -> None:
    """Raise a ValueError if a story cannot be filled so."""
    check_story(text, lab)
    if not chosen:
        raise ValueError("no system is chosen to fill the blanks; tick at least one")
    if unknown := [system for system in chosen if system not in systems(model)]:
        raise ValueError(f"{unknown[0]!r} cannot fill blanks with {model}; choose from {'; '.join(systems(model))}")
    check_options(1, temperature, seed)


def fill_by_each(
    lab: "Magnet", text: str, chosen: Sequence[str], temperature: float = 0.0, seed: int = 0
) -> Iterator[list[Filling]]:
    """Fill a story by one system after the other; all that is there so far, whenever something is new.

    A system that cannot fill this story says why, and the next one has its turn. Closing the iterator stops the work.
    """
    check_systems(text, chosen, temperature, seed, lab.name, lab)
    fillings = [Filling(system) for system in systems(lab.name) if system in chosen]
    for place, filling in enumerate(fillings):
        with contextlib.closing(_filled(lab, text, filling, temperature, int(seed))) as steps:
            for filling in steps:
                fillings[place] = filling
                yield list(fillings)


def _filled(lab: "Magnet", text: str, filling: Filling, temperature: float, seed: int) -> Iterator[Filling]:
    from magnet_lab.baselines import BASELINES

    try:
        of_adapter = filling.system in UNDER_THE_MASK
        writer = adapters.use(lab, filling.system) if of_adapter else BASELINES[ASKED[filling.system]](lab)
        model = writer if of_adapter else writer.lab
        work = stoppable.run(model, lambda: writer.infill(text, temperature=temperature, seed=seed))
        with contextlib.closing(work):
            while True:
                passes = next(work)
                yield replace(filling, sentence=f"Writing: {passes} passes through the model so far.")
    except StopIteration as end:
        result, notes = end.value
        candidate = result.candidates[0]
        tokens = sum(len(span.log_probs) for span in candidate.spans)
        said = f"{tokens} tokens, perplexity {math.exp(-candidate.score):.3g} by its own account."
        yield replace(
            filling, shades=shade(text, candidate), sentence=" ".join([said, *(f"{n}." for n in notes)]), done=True
        )
    except ValueError as problem:
        yield replace(filling, sentence=f"Not by this one: {problem}.", done=True)


def as_text(fillings: Sequence[Filling]) -> str:
    """All fillings in plain characters, each written token with its probability behind it."""
    return "\n\n".join(
        f"{name(one.system)}: {one.sentence}\n{shades_text(one.shades)}".strip() for one in fillings if one.done
    )


def shades_text(shades: Sequence[Shade]) -> str:
    return ml.viz.likelihood_text([text for text, _ in shades], [math.nan if p is None else p for _, p in shades])


# --- an answer of one's own


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
