"""When two measured numbers differ: a question gets an answer only where the intervals allow one."""

from math import hypot, sqrt
from statistics import mean, stdev

from scipy.stats import t as student

from magnet_lab.evaluation.experiment import Figure, Rows


def over_seeds(values: list[float]) -> Figure:
    """The mean over trainings, and Student's 95 % interval of it: with three of them, 2.5 standard deviations wide."""
    n = len(values)
    half = float(student.ppf(0.975, n - 1)) * stdev(values) / sqrt(n) if n > 1 else 0.0
    middle = mean(values)
    return Figure(middle, middle - half, middle + half, n)


def exact(value: float, n: int = 1) -> Figure:
    """A number that has no interval: nothing in it is left to chance."""
    return Figure(value, value, value, n)


def more(one: Figure, other: Figure) -> bool | None:
    """Whether one number is above another; None where their difference may as well be none."""
    difference = one.value - other.value
    if difference > hypot(one.value - one.low, other.high - other.value):
        return True
    return False if -difference > hypot(one.high - one.value, other.value - other.low) else None


def row_more(rows: Rows, one: str, other: str, column: str) -> bool | None:
    """`more` for a column of two rows; None where one of them was not measured."""
    if column not in rows.get(one, {}) or column not in rows.get(other, {}):
        return None
    return more(rows[one][column], rows[other][column])


def above(figure: Figure | None, bound: float) -> bool | None:
    """Whether a number is above a bound; None where its interval holds the bound, or there is no number."""
    if figure is None or figure.low <= bound <= figure.high:
        return None
    return figure.value > bound


def opposite(answer: bool | None) -> bool | None:
    """No for yes; no answer stays none."""
    return None if answer is None else not answer
