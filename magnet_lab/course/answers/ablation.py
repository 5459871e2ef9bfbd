"""Answers to the check of a difference over seeds."""

from math import hypot, sqrt
from statistics import mean, pstdev, stdev

import numpy as np
from scipy import stats

from magnet_lab.course.answers import right, wrong

# paired_difference(one, other)


@right("paired_difference")
def paired_difference_by_numpy(one, other):
    d = np.subtract(one, other)
    half = stats.t.ppf(0.975, len(d) - 1) * d.std(ddof=1) / len(d) ** 0.5
    return d.mean(), d.mean() - half, d.mean() + half


@right("paired_difference")
def paired_difference_by_a_loop(one, other):
    d = [one[i] - other[i] for i in range(len(one))]
    n = len(d)
    middle = sum(d) / n
    variance = sum((each - middle) ** 2 for each in d) / (n - 1)
    half = stats.t(n - 1).ppf(0.975) * sqrt(variance / n)
    return [middle, middle - half, middle + half]


@wrong("paired_difference", "other - one")
def paired_difference_turned_round(one, other):
    return paired_difference_by_numpy(other, one)


@wrong("paired_difference", "the seeds are not paired")
def paired_difference_of_two_means(one, other):
    first = stats.t.ppf(0.975, len(one) - 1) * stdev(one) / sqrt(len(one))
    second = stats.t.ppf(0.975, len(other) - 1) * stdev(other) / sqrt(len(other))
    middle, half = mean(one) - mean(other), hypot(first, second)
    return middle, middle - half, middle + half


@wrong("paired_difference", "1.96 is for many seeds")
def paired_difference_normal(one, other):
    d = np.array(one) - np.array(other)
    half = 1.96 * d.std(ddof=1) / np.sqrt(len(d))
    return d.mean(), d.mean() - half, d.mean() + half


@wrong("paired_difference", "n - 1 belongs there")
def paired_difference_with_numpys_default(one, other):
    d = np.array(one) - np.array(other)
    half = stats.t.ppf(0.975, len(d) - 1) * d.std() / np.sqrt(len(d))
    return d.mean(), d.mean() - half, d.mean() + half


@wrong("paired_difference", "the degrees of freedom are n")
def paired_difference_with_too_much_freedom(one, other):
    d = [a - b for a, b in zip(one, other, strict=True)]
    half = stats.t.ppf(0.975, len(d)) * stdev(d) / sqrt(len(d))
    return mean(d), mean(d) - half, mean(d) + half


@wrong("paired_difference", "97.5 %")
def paired_difference_at_one_end(one, other):
    d = [a - b for a, b in zip(one, other, strict=True)]
    half = stats.t.ppf(0.95, len(d) - 1) * stdev(d) / sqrt(len(d))
    return mean(d), mean(d) - half, mean(d) + half


@wrong("paired_difference", "√n is missing")
def paired_difference_of_single_seeds(one, other):
    d = [a - b for a, b in zip(one, other, strict=True)]
    half = stats.t.ppf(0.975, len(d) - 1) * stdev(d)
    return mean(d), mean(d) - half, mean(d) + half


@wrong("paired_difference", "one standard error")
def paired_difference_of_a_standard_error(one, other):
    d = [a - b for a, b in zip(one, other, strict=True)]
    error = stdev(d) / sqrt(len(d))
    return mean(d), mean(d) - error, mean(d) + error


@wrong("paired_difference", "the lowest and the highest")
def paired_difference_by_its_range(one, other):
    d = [a - b for a, b in zip(one, other, strict=True)]
    return mean(d), min(d), max(d)


@wrong("paired_difference", "3 things")
def paired_difference_and_its_half(one, other):
    d = [a - b for a, b in zip(one, other, strict=True)]
    return mean(d), stats.t.ppf(0.975, len(d) - 1) * stdev(d) / sqrt(len(d))


@wrong("paired_difference", "s is divided by n")
def paired_difference_by_n(one, other):
    d = [a - b for a, b in zip(one, other, strict=True)]
    half = stats.t.ppf(0.975, len(d) - 1) * stdev(d) / len(d)
    return mean(d), mean(d) - half, mean(d) + half


@wrong("paired_difference", "StatisticsError")
def paired_difference_of_the_first_seed(one, other):
    d = [one[0] - other[0]]
    half = stats.t.ppf(0.975, 1) * stdev(d)
    return d[0], d[0] - half, d[0] + half


@wrong("paired_difference", "n below the line")
def paired_difference_of_a_population(one, other):
    d = [a - b for a, b in zip(one, other, strict=True)]
    half = stats.t.ppf(0.975, len(d) - 1) * pstdev(d) / sqrt(len(d))
    return mean(d), mean(d) - half, mean(d) + half
