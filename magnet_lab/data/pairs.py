"""Pairs of sentences that mean the same, for the contrastive objective."""

from pathlib import Path

import torch
from tqdm import tqdm

from magnet_lab.data.rows import Corpus, place, texts
from magnet_lab.paraphrase import paraphrase, sentences

Pair = tuple[str, str]
POSITIVES = ("pairs", "rules", "dropout")
MOST = 200_000  # sentences kept in memory; more than any run of the paper sees


def read(positives: str, corpus: Corpus, *, shortest: int = 5, seed: int = 0) -> list[Pair]:
    """All pairs of a run, in memory.

    Args:
        positives: "pairs": the corpus's paths are tab-separated files, a sentence and its paraphrase in their last
            two columns. "rules": its texts' sentences are paraphrased by rule. "dropout": each is paired with itself;
            what sets the two apart is the dropout of the forward pass (SimCSE).
        shortest: words that a sentence of a text has at least.

    Raises:
        ValueError: for a file that is missing or a line without two columns.
    """
    if positives == "pairs":
        return [pair for path in corpus.paths for pair in _columns(Path(path))]
    found: list[Pair] = []
    generator = torch.Generator().manual_seed(seed)
    for text in tqdm(texts(corpus), desc="reading sentences", unit=" texts", leave=False):
        for sentence in sentences(text, shortest):
            found.append((sentence, paraphrase(sentence, generator) if positives == "rules" else sentence))
        if len(found) >= MOST:
            break
    return found


def batch(found: list[Pair], step: int, size: int, seed: int) -> list[Pair]:
    """The pairs of a step: each pair once before any twice.

    Raises:
        ValueError: if there are fewer pairs than a batch holds.
    """
    if len(found) < size:
        raise ValueError(f"a batch of {size} pairs is asked for, and there are only {len(found)}")
    return [found[place(step * size + offset, len(found), seed)] for offset in range(size)]


def _columns(path: Path) -> list[Pair]:
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r} of pairs")
    pairs = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) < 2 or not all(columns[-2:]):
            raise ValueError(f"{path}, line {number}: a pair is two sentences with a tab between them")
        pairs.append((columns[-2], columns[-1]))
    return pairs
