"""The check of a difference over seeds, against a case worked by hand and scipy's own paired test."""

import pytest
import torch
from scipy import stats

from magnet_lab.course import check
from magnet_lab.course.answers import all_answers

SUITE = all_answers()["paired_difference"]


@pytest.mark.parametrize("function", SUITE.right, ids=lambda function: function.__name__)
def test_right_answers_give_what_was_worked_by_hand(function):
    """d = 1, 0.5, 1; mean 2.5/3; s² = (2 · (1/6)² + (1/3)²) / 2 = 1/12; t = 4.3027; half = 4.3027 · √(1/36)."""
    found = [float(number) for number in function([10, 12, 14], [9, 11.5, 13])]
    assert found == pytest.approx([2.5 / 3, 2.5 / 3 - 4.30265 / 6, 2.5 / 3 + 4.30265 / 6], abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_right_answers_are_the_interval_of_a_paired_t_test(seed):
    draws = torch.randn(2, 4, generator=torch.Generator().manual_seed(seed)).tolist()
    expected = stats.ttest_rel(*draws).confidence_interval(0.95)
    for function in SUITE.right:
        assert list(function(*draws))[1:] == pytest.approx([expected.low, expected.high], abs=1e-6)


def test_paired_and_unpaired_intervals_are_told_apart():
    """What the exercise is about: paired, the difference is there; unpaired, it is lost among the seeds."""
    unpaired = next(function for function, names in SUITE.wrong if "not paired" in names)
    _, low, _ = unpaired([10, 12, 14], [9, 11.5, 13])
    assert low < 0 < SUITE.right[0]([10, 12, 14], [9, 11.5, 13])[1]
    assert not check.paired_difference(unpaired)
