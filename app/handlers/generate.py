"""A text gone on with by one model in several forms, and how much each of them repeats itself."""

import contextlib
import functools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .. import limits
from . import adapters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from magnet_lab.evaluation.experiment import Result
    from magnet_lab.model import Magnet

RUN = 4  # words of Rep-4
MASK_FILLING = "mask filling"
FIGURES = ("figure5", "figure6")  # the paper's measurements of repetition


@dataclass(frozen=True)
class Piece:
    """A stretch of what was written: "new", or said before, as a "run" of four words or a whole "sentence"."""

    text: str
    kind: str = "new"


@dataclass(frozen=True)
class Continuation:
    """What one system has written so far."""

    system: str
    text: str = ""
    done: bool = False

    @functools.cached_property
    def pieces(self) -> list[Piece]:
        return repeats(self.text)

    @functools.cached_property
    def rep_4(self) -> float:
        from magnet_lab.evaluation.repetition import rep_n

        return rep_n(self.text, RUN)

    @functools.cached_property
    def rep_sen(self) -> float:
        from magnet_lab.evaluation.repetition import rep_sen

        return rep_sen(self.text)

    @property
    def sentence(self) -> str:
        """What the two numbers say."""
        runs, sentences = len(_runs(_words(self.text))), len(_sentences(self.text))
        if not runs:
            return "Too little is written to repeat anything."
        said = "were said before in this continuation"
        return (
            f"Of its {runs} runs of four words, {round(self.rep_4 * runs)} {said} (Rep-4); "
            f"of its {sentences} sentence(s), {round(self.rep_sen * sentences)} (Rep-Sen)."
        )

    @property
    def marked(self) -> str:
        """The text in plain characters, with what is repeated in marks."""
        return "".join("".join((_MARKS[piece.kind][0], piece.text, _MARKS[piece.kind][1])) for piece in self.pieces)


_MARKS = {"new": ("", ""), "run": ("[", "]"), "sentence": ("⟦", "⟧")}


@dataclass(frozen=True)
class Measured:
    """A figure of the paper: its id, a title, a table, and a picture of what was measured here where that ships."""

    id: str
    title: str
    columns: list[str]
    rows: list[list[str]]
    sentence: str
    figure: "Figure | None" = None
    twin: str = ""


# --- what is repeated


def repeats(text: str) -> list[Piece]:
    """A text in pieces, its repetitions told apart as `evaluation.repetition` counts them.

    A run of four words counts from its second time on, and so does a sentence; both without regard to capitals. A
    stretch that is in both is a repeated sentence's.
    """
    marks = ["new"] * len(text)
    words = _words(text)
    for start in _again(_runs(words)):
        first, last = words[start], words[start + RUN - 1]
        marks[first.start() : last.end()] = ["run"] * (last.end() - first.start())
    found = _sentences(text)
    for number in _again([sentence.strip().lower() for _, sentence in found]):
        start, sentence = found[number]
        marks[start : start + len(sentence)] = ["sentence"] * len(sentence)
    pieces: list[Piece] = []
    for character, kind in zip(text, marks, strict=True):
        if pieces and pieces[-1].kind == kind:
            pieces[-1] = replace(pieces[-1], text=pieces[-1].text + character)
        else:
            pieces.append(Piece(character, kind))
    return pieces


def _again(things: Sequence) -> list[int]:
    """The places of things that stand further left as well."""
    seen, places = set(), []
    for place, thing in enumerate(things):
        if thing in seen:
            places.append(place)
        seen.add(thing)
    return places


def _words(text: str) -> list[re.Match]:
    return list(re.finditer(r"\S+", text))


def _runs(words: list[re.Match]) -> list[tuple[str, ...]]:
    said = [word[0].lower() for word in words]
    return [tuple(said[start : start + RUN]) for start in range(len(said) - RUN + 1)]


def _sentences(text: str) -> list[tuple[int, str]]:
    """The sentences of a text, each with the place where it starts."""
    from magnet_lab.paraphrase import sentences

    found, stop = [], 0
    for sentence in sentences(text, shortest=1, longest=1000):
        start = text.index(sentence, stop)
        stop = start + len(sentence)
        found.append((start, sentence))
    return found


# --- writing


def systems(model: str) -> list[str]:
    """Who can go on with a text: the base model, its adapters, and filling masks where one has learned to."""
    found = adapters.available(model)
    return [*found, MASK_FILLING] if _knows_masks(found) else found


def _knows_masks(found: list[str]) -> str | None:
    """The adapter that was trained most on masks."""
    return next((adapter for adapter in ("mntp", "magnet") if adapter in found), None)


def name(system: str) -> str:
    return "Mask filling, one mask at a time" if system == MASK_FILLING else adapters.NAMES[system]


def check(prefix: str, chosen: Sequence[str], tokens, temperature, seed, model: str) -> None:
    """Raise a ValueError if a text cannot be gone on with so."""
    limits.check_text("the beginning", prefix, limits.PREFIX_CHARACTERS)
    if not chosen:
        raise ValueError("nobody is chosen to write; tick at least one")
    if unknown := [system for system in chosen if system not in systems(model)]:
        raise ValueError(f"{unknown[0]!r} cannot write with {model}; choose from {', '.join(systems(model))}")
    limits.check_number("the number of tokens", tokens, 1, limits.NEW_TOKENS, whole=True)
    limits.check_number("the temperature", temperature, 0, limits.TEMPERATURE)
    limits.check_number("the seed", seed, 0, 2**31 - 1, whole=True)


def go_on(
    lab: "Magnet", prefix: str, chosen: Sequence[str], tokens: int = 128, temperature: float = 0.0, seed: int = 0
) -> Iterator[list[Continuation]]:
    """Go on with a text by one system after the other; all that is written so far, after every piece of it.

    Closing the iterator stops the work.
    """
    check(prefix, chosen, tokens, temperature, seed, lab.name)
    chosen = [system for system in systems(lab.name) if system in chosen]
    written = [Continuation(system) for system in chosen]
    for number, system in enumerate(chosen):
        write = _by_mask_filling if system == MASK_FILLING else _by_generation
        with contextlib.closing(write(lab, system, prefix, int(tokens), temperature, int(seed))) as pieces:
            for piece in pieces:
                written[number] = replace(written[number], text=written[number].text + piece)
                yield list(written)
        written[number] = replace(written[number], done=True)
        yield list(written)


def _by_generation(lab, system: str, prefix: str, tokens: int, temperature: float, seed: int) -> Iterator[str]:
    sampling = {"do_sample": True, "temperature": temperature, "seed": seed} if temperature else {}
    return adapters.use(lab, system).generate(prefix, max_new_tokens=tokens, stream=True, **sampling)


def _by_mask_filling(lab, _, prefix: str, tokens: int, temperature: float, seed: int) -> Iterator[str]:
    """One token a call, so that it can be stopped: each call is a pass over the whole text, as is the method's way."""
    from magnet_lab.baselines import MaskFilling

    filling = MaskFilling(lab, adapter=_knows_masks(adapters.available(lab.name)))
    text = prefix
    for step in range(min(tokens, limits.MASK_FILLING_TOKENS)):
        piece = filling.generate(text, max_new_tokens=1, temperature=temperature, seed=seed + step)
        text += piece
        yield piece


def as_text(prefix: str, written: Sequence[Continuation]) -> str:
    """All continuations with their numbers in plain characters."""
    return "\n\n".join(
        f"{name(one.system)}: Rep-4 {one.rep_4:.3f}, Rep-Sen {one.rep_sen:.3f}\n{prefix}{one.marked}"
        for one in written
        if one.text
    )


# --- measured


def measured(model: str) -> list[Measured]:
    """How much the model repeats itself by measurements that come with the project, beside the paper's own."""
    from magnet_lab.evaluation import reproduce

    found = []
    for name in FIGURES:
        ours, theirs = reproduce.shipped(model, name), reproduce.printed(name)
        if ours is not None or theirs:
            found.append(_measured(name, model, ours, theirs))
    return found


def _measured(name: str, model: str, ours: "Result | None", printed: dict) -> Measured:
    rows = ours.rows if ours is not None else {}
    columns = list(dict.fromkeys(column for row in [*printed.values(), *rows.values()] for column in row))
    table = [[row, *(_interval(figures.get(column)) for column in columns)] for row, figures in rows.items()]
    for row, numbers in printed.items():
        table.append([f"{row} (paper)", *(_number(numbers.get(column, math.nan)) for column in columns)])
    title = f"Figure {name.removeprefix('figure')}"
    if ours is None:
        command = f"magnet-lab reproduce {name} --model {model}"
        sentence = f"Not measured with {model} yet ({command} does it). The paper found, with LLaMA-2-7B:"
        return Measured(name, title, ["", *columns], table, sentence)
    from magnet_lab.viz.results import results_figure, results_text

    size = ", few examples" if ours.quick else ""
    sentence = f"{model} on {ours.data}{size}, with 95 % intervals. The paper's model is LLaMA-2-7B."
    pictures = results_figure(rows, printed=printed), results_text(rows, printed=printed)
    return Measured(name, title, ["", *columns], table, sentence, *pictures)


def _interval(figure) -> str:
    return "" if figure is None else f"{figure.value:.3g} ({figure.low:.2g}–{figure.high:.2g})"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"
