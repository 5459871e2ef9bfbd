"""Figures of small models that are trained on the spot: means over seeds, and what the difference of two tells.

The interval is of the mean over trainings, not over texts: the texts that are measured on are the same for all seeds.
"""

import math
from collections.abc import Callable

from tqdm import tqdm

from magnet_lab.evaluation.experiment import Figure, Rows, Setting
from magnet_lab.evaluation.verdicts import more, over_seeds

Cell = tuple[str, str]  # a row and a column


def run_seeds(setting: Setting, measure: Callable[[int], dict[str, float]], full: int = 5) -> dict[str, Figure]:
    """`measure` with `full` seeds from the setting's on, two where it is to be quick: column -> mean and interval."""
    first = setting.seed
    seeds = range(first, first + setting.some(full, 2))
    runs = [measure(seed) for seed in tqdm(seeds, desc="seeds", unit=" seeds", leave=False)]
    return {column: over_seeds([run[column] for run in runs]) for column in runs[0]}


def above(higher: Cell, lower: Cell) -> Callable[[Rows], bool | None]:
    """That one figure lies above another, as the condition of a `Claim`; `verdicts.more` says when it may answer.

    None, "not measurable here", where one of the two is missing, or their difference may as well be none: so few seeds
    do not tell. The two count as independent; where they share seeds that is on the careful side.
    """

    def holds(rows: Rows) -> bool | None:
        one, other = (rows.get(row, {}).get(column) for row, column in (higher, lower))
        return None if one is None or other is None else more(one, other)

    return holds


def within(cell: Cell, low: float = -math.inf, high: float = math.inf) -> Callable[[Rows], bool | None]:
    """That a figure lies between two numbers, the numbers included; None where it is missing, or its interval does
    not tell."""

    def holds(rows: Rows) -> bool | None:
        figure = rows.get(cell[0], {}).get(cell[1])
        if figure is None:
            return None
        if low <= figure.low and figure.high <= high:
            return True
        return False if figure.high < low or figure.low > high else None

    return holds
