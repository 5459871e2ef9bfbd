"""When two measured numbers differ: a question gets an answer only where the intervals allow one."""

from collections.abc import Iterable
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


def average(figures: Iterable[Figure]) -> Figure:
    """The mean of numbers that were measured on different examples, and its interval."""
    figures = list(figures)
    middle = mean(figure.value for figure in figures)
    below = hypot(*(figure.value - figure.low for figure in figures)) / len(figures)
    above = hypot(*(figure.high - figure.value for figure in figures)) / len(figures)
    return Figure(middle, middle - below, middle + above, len(figures))


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


def times(figure: Figure, factor: float) -> Figure:
    """A number so many times as large, with its interval."""
    return Figure(factor * figure.value, factor * figure.low, factor * figure.high, figure.n)


def at_most(rows: Rows, one: str, factor: float, other: str, column: str) -> bool | None:
    """Whether a row's number is at most so many times another's; None where the intervals do not tell."""
    if column not in rows.get(one, {}) or column not in rows.get(other, {}):
        return None
    return opposite(more(rows[one][column], times(rows[other][column], factor)))


def above(figure: Figure | None, bound: float) -> bool | None:
    """Whether a number is above a bound; None where its interval holds the bound, or there is no number."""
    if figure is None or figure.low <= bound <= figure.high:
        return None
    return figure.value > bound


def more_in_all(rows: Rows, one: str, other: str, columns: Iterable[str]) -> bool | None:
    """`row_more` in every one of these columns."""
    return every([row_more(rows, one, other, column) for column in columns])


def every(answers: list[bool | None]) -> bool | None:
    """Whether all are so: no if one is not; no answer where there is none, or all hangs on one that is none."""
    if False in answers:
        return False
    return True if answers and None not in answers else None


def opposite(answer: bool | None) -> bool | None:
    """No for yes; no answer stays none."""
    return None if answer is None else not answer
