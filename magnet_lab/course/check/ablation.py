"""Is the difference between two rows of a table one of the recipe, or one of the seed?"""

from math import hypot, sqrt
from statistics import mean, pstdev, stdev

from scipy.stats import t as student

from magnet_lab.course.check.examine import Mistake, compare, examine
from magnet_lab.course.check.verdict import Verdict
from magnet_lab.evaluation.verdicts import over_seeds


def paired_difference(function) -> Verdict:
    """How far two recipes are apart, and the 95 % interval of that: `paired_difference(one, other)`.

    With d the list of the differences one - other, seed by seed, n their number and s their standard deviation
    (with n - 1 below the line): mean(d), and mean(d) ± t · s / √n, where t is Student's, 97.5 % of it, with n - 1
    degrees of freedom.

    Args of your function:
        one, other: lists of numbers, the same number of them, at least two. Those at the same place have the same seed.

    It returns three numbers: the mean difference, the lower and the upper end of its interval.

        paired_difference([10, 12, 14], [9, 11.5, 13])  ->  (0.8333, 0.1162, 1.5505)
    """
    cases = [
        ([10.0, 12.0, 14.0], [9.0, 11.5, 13.0]),
        ([3.0, 8.0], [4.0, 6.0]),
        ([61.5, 60.25, 64.0, 58.5], [62.5, 61.75, 63.5, 60.0]),
        ([0.5, 0.75, 0.25, 1.0, 0.0], [0.25, 1.0, 0.5, 0.25, 0.75]),
        ([5.0, 7.0, 9.0], [4.0, 6.0, 8.0]),
    ]

    def around(middle: float, half: float) -> tuple[float, float, float]:
        return middle, middle - half, middle + half

    def differences(one, other):
        return [a - b for a, b in zip(one, other, strict=True)]

    def reference(one, other):
        found = over_seeds(differences(one, other))
        return found.value, found.low, found.high

    def by_t(d, freedom: int, share: float = 0.975):
        return around(mean(d), float(student.ppf(share, freedom)) * stdev(d) / sqrt(len(d)))

    def half(values):
        return float(student.ppf(0.975, len(values) - 1)) * stdev(values) / sqrt(len(values))

    judge = compare(
        cases,
        reference,
        mistakes=[
            Mistake("this is other - one: the first list minus the second is wanted", lambda a, b: reference(b, a)),
            Mistake(
                "the seeds are not paired: the intervals of the two means are added up, with all that a seed does to "
                "both; take the difference seed by seed first, then one interval",
                lambda a, b: around(mean(a) - mean(b), hypot(half(a), half(b))),
            ),
            Mistake(
                "the seeds are not paired: the intervals of the two means are added up, with all that a seed does to "
                "both; take the difference seed by seed first, then one interval",
                lambda a, b: around(mean(a) - mean(b), half(a) + half(b)),
            ),
            Mistake(
                "1.96 is for many seeds: with a few, s is itself uncertain, and Student's t with n - 1 degrees of "
                "freedom is larger (4.30 for three seeds)",
                lambda a, b: around(mean(differences(a, b)), 1.96 * stdev(differences(a, b)) / sqrt(len(a))),
            ),
            Mistake(
                "the degrees of freedom are n here: the mean was taken from the same numbers, so there are n - 1",
                lambda a, b: by_t(differences(a, b), len(a)),
            ),
            Mistake(
                "Student's t is taken at 95 %: an interval has two ends, with 2.5 % beyond each; 97.5 % is wanted",
                lambda a, b: by_t(differences(a, b), len(a) - 1, 0.95),
            ),
            Mistake(
                "the standard deviation s has n below the line: the mean was taken from the same numbers, so n - 1 "
                "belongs there",
                lambda a, b: around(
                    mean(differences(a, b)),
                    float(student.ppf(0.975, len(a) - 1)) * pstdev(differences(a, b)) / sqrt(len(a)),
                ),
            ),
            Mistake(
                "√n is missing: s says how far single seeds lie apart, s / √n how far their mean may be off",
                lambda a, b: around(mean(differences(a, b)), half(differences(a, b)) * sqrt(len(a))),
            ),
            Mistake(
                "the standard deviation s is divided by n: the mean of n seeds is only √n times as sure as one, so "
                "s / √n is wanted",
                lambda a, b: around(mean(differences(a, b)), half(differences(a, b)) / sqrt(len(a))),
            ),
            Mistake(
                "this is one standard error to each side, which holds the truth in two cases of three at best: times t",
                lambda a, b: around(mean(differences(a, b)), stdev(differences(a, b)) / sqrt(len(a))),
            ),
            Mistake(
                "these are the lowest and the highest difference: with another three seeds they would be others, and "
                "with more seeds they only grow apart",
                lambda a, b: (mean(differences(a, b)), min(differences(a, b)), max(differences(a, b))),
            ),
            Mistake(
                "the two ends are the other way round: first the lower one",
                lambda a, b: tuple(reference(a, b)[place] for place in (0, 2, 1)),
            ),
            Mistake(
                "this is the mean and how far the interval reaches to each side: its two ends are wanted",
                lambda a, b: (mean(differences(a, b)), -half(differences(a, b)), half(differences(a, b))),
            ),
        ],
    )
    praise = "Seed by seed, two seeds and five, and a difference that is the same in all of them."
    return examine(function, "paired_difference(one, other)", judge, praise)
