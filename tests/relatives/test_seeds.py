"""Figures over seeds: which seeds are run, and verdicts by hand."""

from magnet_lab.evaluation.data import Data
from magnet_lab.evaluation.experiment import Figure, Setting
from magnet_lab.evaluation.verdicts import exact
from magnet_lab.relatives.seeds import above, run_seeds, within


def test_seeds_are_counted_from_the_settings():
    asked = []

    def measure(seed):
        asked.append(seed)
        return {"score": seed, "other": 1.0}

    found = run_seeds(Setting("tiny", Data(), seed=7), measure, 3)
    assert asked == [7, 8, 9] and found["score"].value == 8 and found["other"] == Figure(1, 1, 1, 3)
    assert run_seeds(Setting("tiny", Data(), quick=True), measure)["score"].n == 2


def test_a_difference_has_to_be_larger_than_both_intervals_allow():
    """Halves of 3 and 4 make 5 together: a difference of 6 tells, one of 4 does not."""
    rows = {name: {"x": Figure(v, v - h, v + h, 3)} for name, v, h in (("a", 10, 3), ("b", 4, 4), ("c", 6, 4))}
    assert above(("a", "x"), ("b", "x"))(rows) is True
    assert above(("b", "x"), ("a", "x"))(rows) is False
    assert above(("a", "x"), ("c", "x"))(rows) is None
    assert above(("a", "x"), ("d", "x"))(rows) is None and above(("a", "y"), ("b", "x"))(rows) is None
    assert above(("a", "x"), ("a", "x"))({"a": {"x": exact(1)}}) is None


def test_within_asks_for_the_whole_interval():
    rows = {"a": {"x": Figure(10, 8, 12, 3)}}
    assert within(("a", "x"), 8, 12)(rows) is True and within(("a", "x"), 8)(rows) is True
    assert within(("a", "x"), 9)(rows) is None and within(("a", "x"), high=11)(rows) is None
    assert within(("a", "x"), 13)(rows) is False and within(("a", "x"), high=7)(rows) is False
    assert within(("b", "x"), 1)(rows) is None
