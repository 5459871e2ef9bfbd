"""Sentences and what means the same, for the contrastive objective."""

import dataclasses
import re

import torch
from tqdm import tqdm

from magnet_lab.data import parrot
from magnet_lab.data.rows import Corpus, local_file, place, texts
from magnet_lab.paraphrase import paraphrase, sentences

Pair = tuple[str, ...]  # a sentence, what means the same, and perhaps what looks like it and means something else
LABEL = re.compile(r"\d+(\.\d+)?")  # or a score, before the sentences
POSITIVES = ("parrot", "pairs", "triplets", "rules", "dropout")


def read(positives: str, corpus: Corpus, *, shortest: int = 5, seed: int = 0, most: int = 200_000) -> list[Pair]:
    """The pairs of a run, in memory.

    Args:
        positives: "pairs": the corpus's paths are tab-separated files, a sentence and its paraphrase in their first
            two columns, after a label or score if there is one. "triplets": the next column holds a hard negative, a
            sentence that shares words with the first and says something else. "parrot": the sentences of the corpus's
            texts are paraphrased by a T5 model, as in the paper. "rules": by rule. "dropout": each is paired with
            itself; what sets the two apart is the dropout of the forward pass (SimCSE). Of a tab-separated file, the
            sentences are its first column.
        shortest: words that a sentence of a text has at least.
        most: read no more sentences of texts than this; the default is more than any run of the paper sees.

    Raises:
        ValueError: for a file that is missing or a line with too few columns.
    """
    if positives == "pairs":
        return [columns[:2] for path in corpus.paths for columns in _columns(path, at_least=2)]
    if positives == "triplets":
        return [columns[:3] for path in corpus.paths for columns in _columns(path, at_least=3)]
    tables = [path for path in corpus.paths if path.endswith(".tsv")]
    found = [columns[0] for path in tables for columns in _columns(path, at_least=1)]
    others = dataclasses.replace(corpus, paths=[path for path in corpus.paths if path not in tables])
    for text in tqdm(texts(others), desc="reading sentences", unit=" texts", leave=False):
        found += sentences(text, shortest)
        if len(found) >= most:
            break
    found = found[:most]
    if positives == "parrot":
        return list(zip(found, parrot.paraphrases(found), strict=True))
    generator = torch.Generator().manual_seed(seed)
    return [(sentence, paraphrase(sentence, generator) if positives == "rules" else sentence) for sentence in found]


def batch(found: list[Pair], step: int, size: int, seed: int) -> list[Pair]:
    """The pairs of a step: each pair once before any twice.

    Raises:
        ValueError: if there are fewer pairs than a batch holds.
    """
    if len(found) < size:
        raise ValueError(f"a batch of {size} pairs is asked for, and there are only {len(found)}")
    return [found[place(step * size + offset, len(found), seed)] for offset in range(size)]


def _columns(name: str, at_least: int) -> list[Pair]:
    path, lines = local_file(name), []
    if path is None:
        raise ValueError(f"there is no file {name!r} of pairs")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        columns = tuple(column.strip() for column in line.split("\t"))
        if LABEL.fullmatch(columns[0]):
            columns = columns[1:]
        if len(columns) < at_least or not all(columns[:at_least]):
            raise ValueError(f"{name}, line {number}: {at_least} sentences with tabs between them are wanted here")
        lines.append(columns)
    return lines
