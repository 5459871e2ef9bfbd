"""Sentence similarity, Table 2: does the cosine of two sentences' vectors rank pairs as people do?"""

from collections.abc import Sequence
from pathlib import Path

import torch
from scipy.stats import spearmanr

from magnet_lab.model import Magnet


def read_pairs(path: Path, most: int | None = None) -> tuple[list[float], list[str], list[str]]:
    """Scores and the two sentences of each line: `score <tab> sentence <tab> sentence`, no quoting.

    With `most`, only so many, spread evenly over the file, which may be in an order of its own.

    Raises:
        ValueError: for a missing file, or a line that is not of this form, with its number.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r} of scored pairs")
    lines = list(enumerate(path.read_text(encoding="utf-8").splitlines(), start=1))
    step = max(1, -(-len(lines) // most)) if most else 1
    scores, first, second = [], [], []
    for number, line in lines[::step]:
        try:
            score, one, other = line.split("\t")[:3]
            scores.append(float(score))
        except ValueError:
            raise ValueError(f"{path}, line {number}: a score and two sentences with tabs are wanted here") from None
        first.append(one)
        second.append(other)
    return scores, first, second


def cosines(
    lab: Magnet, first: list[str], second: list[str], *, pooling: str, instruction: str | None = None
) -> torch.Tensor:
    """The cosine of each pair's vectors, `(n,)`."""
    vectors = lab.encode([*first, *second], pooling=pooling, instruction=instruction, progress=True)
    return torch.cosine_similarity(vectors[: len(first)], vectors[len(first) :])


def spearman(scores: Sequence[float], cosines: Sequence[float]) -> float:
    """Rank correlation times 100, as such tables print it."""
    return 100 * float(spearmanr(scores, cosines).statistic)
