"""Pairs of sentences that mean the same, for the contrastive objective."""

from pathlib import Path

from magnet_lab.data.rows import place

Pair = tuple[str, str]


def read(contrast) -> list[Pair]:
    """The pairs of a recipe's `contrast`, in memory: a line of text each.

    Tab-separated files hold a sentence and its paraphrase in their last two columns. With "dropout" positives a line is
    a sentence, paired with itself: what sets the two apart is the dropout of the forward pass (SimCSE).

    Raises:
        ValueError: for a file that is missing or a line without two columns.
    """
    found: list[Pair] = []
    for path in map(Path, contrast.paths):
        if not path.is_file():
            raise ValueError(f"there is no file {str(path)!r} of sentences")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            columns = [column.strip() for column in line.split("\t")]
            if contrast.positives == "dropout":
                found += [(column, column) for column in columns[-1:] if column]
            elif len(columns) < 2 or not all(columns[-2:]):
                raise ValueError(f"{path}, line {number}: a pair is two sentences with a tab between them")
            else:
                found.append((columns[-2], columns[-1]))
    if len(found) < contrast.batch:
        raise ValueError(f"a batch of {contrast.batch} pairs is asked for, and there are only {len(found)}")
    return found


def batch(found: list[Pair], step: int, size: int, seed: int) -> list[Pair]:
    """The pairs of a step: each pair once before any twice."""
    return [found[place(step * size + offset, len(found), seed)] for offset in range(size)]
