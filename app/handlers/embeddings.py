"""Sentences and words as vectors of several systems: how alike they are, and who is nearest to whom."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import magnet_lab as ml

from .. import limits
from . import adapters

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

    from magnet_lab.model import Magnet

BASE, ECHO, LLM2VEC, MAGNET = "base", "echo", "llm2vec", "magnet"
NAMES = {BASE: "Base model", ECHO: "Echo", LLM2VEC: "LLM2Vec", MAGNET: "MAGNET"}
OF_WORDS = (BASE, LLM2VEC, MAGNET)  # Echo is a way to read sentences
OWN, POOLINGS = "own", ("own", "last", "mean")
SENTENCES = [
    "A man plays a guitar.",
    "Someone is playing an instrument.",
    "The cat sleeps on the sofa.",
    "A kitten is taking a nap.",
    "Shares fell sharply today.",
    "The stock market lost value.",
]
HEADINGS = ("sentence", "sentences", "text")  # of a column of sentences in a CSV file


@dataclass(frozen=True)
class Compared:
    """Texts as one system sees them: a heatmap of their similarities, a map (of sentences), and both in text.

    Attributes:
        nearest: for each sentence, the number of the most similar other one and their similarity.
        sentence: what there is to say of words, in words.
    """

    system: str
    heatmap: "Figure"
    text: str
    map: "Figure | None" = None
    nearest: Sequence[tuple[int, float]] = ()
    sentence: str = ""


def systems(model: str) -> list[str]:
    """Who can encode with a model's weights: the base model, read once or twice, and its adapters."""
    return [BASE, ECHO, *(adapter for adapter in (LLM2VEC, MAGNET) if adapter in adapters.available(model))]


def absent(model: str) -> str:
    """A sentence about the systems that a model comes without; "" if there are none."""
    missing = [NAMES[system] for system in NAMES if system not in systems(model)]
    return f"Not here: {', '.join(missing)}, as {model} comes without the adapter." if missing else ""


def read_sentences(text: str) -> list[str]:
    """The sentences of a text, one a line; a ValueError if they are too few, too many or too long."""
    limits.check_text("the list of sentences", text, limits.SENTENCES * (limits.SENTENCE_CHARACTERS + 1))
    sentences = [line.strip() for line in text.splitlines() if line.strip()]
    if not 2 <= len(sentences) <= limits.SENTENCES:
        raise ValueError(f"{len(sentences)} sentence(s) came, one a line; give 2 to {limits.SENTENCES} to compare")
    for number, sentence in enumerate(sentences, start=1):
        limits.check_text(f"sentence {number}", sentence, limits.SENTENCE_CHARACTERS)
    return sentences


def read_upload(path: str) -> str:
    """The sentences of a file, one a line: of a text file its lines, of a CSV file a column.

    The column is the one headed "sentence" or "text", else the first.

    Raises:
        ValueError: if the file is too large, no text, or its sentences are too few, too many or too long.
    """
    file = Path(path)
    if file.suffix.lower() not in (".txt", ".csv"):
        raise ValueError("the file is neither .txt nor .csv; give one with a sentence on each line")
    if (size := file.stat().st_size) > limits.UPLOAD_BYTES:
        raise ValueError(f"the file has {size:,} bytes; at most {limits.UPLOAD_BYTES:,} fit here, so shorten it")
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ValueError("the file is no text in UTF-8; save it in that encoding") from problem
    if "\0" in text:
        raise ValueError("the file has NUL characters, so it is no text; save it as plain text in UTF-8")
    lines = _column(text) if file.suffix.lower() == ".csv" else text.splitlines()
    return "\n".join(read_sentences("\n".join(" ".join(line.split()) for line in lines)))


def _column(text: str) -> list[str]:
    """The sentences of a table with commas, semicolons or tabs between its columns."""
    first = text.split("\n", 1)[0]
    separator = max(",;\t", key=first.count)
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator, strict=True) if any(row)]
    except csv.Error as problem:
        raise ValueError(f"the file cannot be read as CSV ({problem}); save it anew, with quotation marks") from problem
    heads = [cell.strip().lower() for cell in rows[0]] if rows else []
    named = next((heads.index(heading) for heading in HEADINGS if heading in heads), None)
    column, rows = (0, rows) if named is None else (named, rows[1:])
    return [row[column] for row in rows if len(row) > column]


def check_systems(chosen: Sequence[str], model: str, known: Sequence[str] = tuple(NAMES)) -> None:
    """Raise a ValueError if a model cannot encode as all those that are chosen."""
    possible = [system for system in systems(model) if system in known]
    if not chosen:
        raise ValueError("no system is chosen to encode; tick at least one")
    if unknown := [system for system in chosen if system not in possible]:
        raise ValueError(f"{unknown[0]!r} cannot encode this with {model}; choose from {', '.join(possible)}")


def compare_sentences(
    lab: "Magnet", text: str, pooling: str = OWN, chosen: Sequence[str] | None = None
) -> Iterator[list[Compared]]:
    """How alike sentences are, one a line, to one system after the other; those that are there so far.

    Args:
        pooling: "own": each system as its own paper reads it; "last" or "mean" for all of them but Echo.
        chosen: of `systems`; None for all of them.
    """
    sentences = read_sentences(text)
    chosen = systems(lab.name) if chosen is None else chosen
    check_systems(chosen, lab.name)
    if pooling not in POOLINGS:
        raise ValueError(f"the pooling {pooling!r} is not known; choose one of {', '.join(POOLINGS)}")
    compared = []
    for system in [system for system in systems(lab.name) if system in chosen]:
        compared.append(compare_vectors(system, encode(lab, system, sentences, pooling), sentences))
        yield list(compared)


def compare_vectors(system: str, vectors: "Tensor", sentences: Sequence[str]) -> Compared:
    """How alike sentences are by their vectors `(n, hidden)`."""
    similarity = ml.encoding.similarity(vectors, vectors)
    others = similarity.clone().fill_diagonal_(-2)
    return Compared(
        system=system,
        heatmap=ml.viz.similarity_figure(similarity, sentences),
        text=f"{ml.viz.similarity_text(similarity, sentences)}\n\n{ml.viz.map_text(vectors, sentences)}",
        map=ml.viz.map_figure(vectors, sentences),
        nearest=list(zip(others.argmax(dim=1).tolist(), others.amax(dim=1).tolist(), strict=True)),
    )


def encode(lab: "Magnet", system: str, sentences: list[str], pooling: str = OWN) -> "Tensor":
    """One vector for each sentence by a system, `(n, hidden)`."""
    from magnet_lab.baselines import Echo, Unidirectional

    if system == ECHO:
        return Echo(lab).encode(sentences)
    if pooling == OWN:
        pooling = "mean" if system == LLM2VEC else "last"
    encoder = Unidirectional(lab) if system == BASE else adapters.use(lab, system)
    return encoder.encode(sentences, pooling=pooling)


def vectors_of(similarity: Sequence[Sequence[float]]) -> "Tensor":
    """Vectors `(n, n)` with these cosine similarities `(n, n)`: on a plane they lie as those that were compared."""
    import torch

    sizes, directions = torch.linalg.eigh(torch.tensor(similarity, dtype=torch.float64))
    return directions * sizes.clamp(min=0).sqrt()


def nearest_table(sentences: Sequence[str], compared: Sequence[Compared]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: for each sentence and system, the number of the nearest other sentence and how near it is."""
    heads = ["sentence", *(NAMES[one.system] for one in compared)]
    rows = []
    for place, sentence in enumerate(sentences):
        found = [one.nearest[place] for one in compared]
        rows.append([f"{place + 1} {sentence}", *(f"{other + 1} ({value:.2f})" for other, value in found)])
    return heads, rows


def as_text(compared: Sequence[Compared]) -> str:
    return "\n\n".join(f"{NAMES[one.system]}\n{one.text}" for one in compared)


def read_words(name: str, text: str) -> list[str]:
    """The words of a sentence; raises a ValueError if there are none or too many."""
    limits.check_text(name, text, limits.SENTENCE_CHARACTERS)
    words = text.split()
    if len(words) > limits.WORDS:
        raise ValueError(f"{name} has {len(words)} words; at most {limits.WORDS} can be compared, so shorten it")
    return words


def compare_words(
    lab: "Magnet", first: str, second: str, chosen: Sequence[str] | None = None
) -> Iterator[list[Compared]]:
    """How alike the words of two sentences are, each in its context, to one system after the other."""
    rows, columns = read_words("the first sentence", first), read_words("the second sentence", second)
    possible = [system for system in systems(lab.name) if system in OF_WORDS]
    chosen = possible if chosen is None else chosen
    check_systems(chosen, lab.name, OF_WORDS)
    compared = []
    for system in [system for system in possible if system in chosen]:
        similarity = ml.encoding.similarity(*_encode_words(lab, system, [rows, columns]))
        compared.append(
            Compared(
                system=system,
                heatmap=ml.viz.similarity_figure(similarity, rows, columns),
                text=ml.viz.similarity_text(similarity, rows, columns),
                sentence=f"{NAMES[system]}: {_about_words(similarity, rows, columns)}",
            )
        )
        yield list(compared)


def _encode_words(lab: "Magnet", system: str, sentences: list[list[str]]) -> "list[Tensor]":
    from magnet_lab.baselines import Unidirectional

    encoder = Unidirectional(lab) if system == BASE else adapters.use(lab, system)
    return encoder.encode_words(sentences)


def _about_words(similarity: "Tensor", rows: list[str], columns: list[str]) -> str:
    row, column = divmod(int(similarity.argmax()), len(columns))
    shared = [word for word in dict.fromkeys(map(_bare, rows)) if word and word in map(_bare, columns)]
    alike = [
        f"“{word}” is {similarity[[_bare(r) == word for r in rows]][:, [_bare(c) == word for c in columns]].max():.2f}"
        for word in shared
    ]
    return f"most alike are “{rows[row]}” and “{columns[column]}” ({similarity[row, column]:.2f}). " + (
        f"In both sentences: {', '.join(alike)} like itself." if alike else "No word is in both sentences."
    )


def _bare(word: str) -> str:
    return word.strip(".,;:!?\"'“”’()").lower()
