"""Sentences and words as vectors: how alike they are."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import magnet_lab as ml

from .. import limits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from magnet_lab.model import Magnet


@dataclass(frozen=True)
class SentencesView:
    """Sentences compared: a heatmap of their similarities, a map, and both in text."""

    heatmap: "Figure"
    map: "Figure"
    text: str


@dataclass(frozen=True)
class WordsView:
    """The words of two sentences compared: a heatmap, its text twin and a sentence about the most alike."""

    heatmap: "Figure"
    text: str
    sentence: str


def read_sentences(text: str) -> list[str]:
    """The sentences of a text, one a line; a ValueError if they are too few, too many or too long."""
    limits.check_text("the list of sentences", text, limits.SENTENCES * (limits.SENTENCE_CHARACTERS + 1))
    sentences = [line.strip() for line in text.splitlines() if line.strip()]
    if not 2 <= len(sentences) <= limits.SENTENCES:
        raise ValueError(f"{len(sentences)} sentence(s) came, one a line; give 2 to {limits.SENTENCES} to compare")
    for number, sentence in enumerate(sentences, start=1):
        limits.check_text(f"sentence {number}", sentence, limits.SENTENCE_CHARACTERS)
    return sentences


def compare_sentences(lab: "Magnet", text: str, pooling: str = "last") -> SentencesView:
    """How alike sentences are, one a line, by one of `encoding.POOLINGS`."""
    sentences = read_sentences(text)
    vectors = lab.encode(sentences, pooling=pooling)
    similarity = lab.similarity(vectors, vectors)
    return SentencesView(
        ml.viz.similarity_figure(similarity, sentences),
        ml.viz.map_figure(vectors, sentences),
        f"{ml.viz.similarity_text(similarity, sentences)}\n\n{ml.viz.map_text(vectors, sentences)}",
    )


def read_words(name: str, text: str) -> list[str]:
    """The words of a sentence; raises a ValueError if there are none or too many."""
    limits.check_text(name, text, limits.SENTENCE_CHARACTERS)
    words = text.split()
    if len(words) > limits.WORDS:
        raise ValueError(f"{name} has {len(words)} words; at most {limits.WORDS} can be compared, so shorten it")
    return words


def compare_words(lab: "Magnet", first: str, second: str) -> WordsView:
    """How alike the words of two sentences are, each in its context."""
    rows, columns = read_words("the first sentence", first), read_words("the second sentence", second)
    similarity = lab.similarity(*lab.encode_words([rows, columns]))
    row, column = divmod(int(similarity.argmax()), len(columns))
    shared = [word for word in dict.fromkeys(map(_bare, rows)) if word and word in map(_bare, columns)]
    alike = [
        f"“{word}” is {similarity[[_bare(r) == word for r in rows]][:, [_bare(c) == word for c in columns]].max():.2f}"
        for word in shared
    ]
    return WordsView(
        ml.viz.similarity_figure(similarity, rows, columns),
        ml.viz.similarity_text(similarity, rows, columns),
        f"Most alike: “{rows[row]}” and “{columns[column]}” ({similarity[row, column]:.2f}). "
        + (f"In both sentences: {', '.join(alike)} like itself." if alike else "No word is in both sentences."),
    )


def _bare(word: str) -> str:
    return word.strip(".,;:!?\"'“”’()").lower()
