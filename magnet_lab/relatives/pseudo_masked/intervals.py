"""Means of a few runs, with how far they may be off."""

import math
import statistics
from collections.abc import Sequence

from scipy.stats import t as student


def interval(values: Sequence[float]) -> dict:
    """The mean of independent runs and its 95 % interval by Student's t; without one for a single run.

    Returns:
        `{"mean": …, "low": …, "high": …, "runs": …}`
    """
    mean, runs = statistics.fmean(values), len(values)
    if runs < 2:
        return {"mean": mean, "low": None, "high": None, "runs": runs}
    off = float(student.ppf(0.975, runs - 1)) * statistics.stdev(values) / math.sqrt(runs)
    return {"mean": mean, "low": mean - off, "high": mean + off, "runs": runs}
