"""When a question has an answer: hand-made figures whose intervals lie apart, overlap, or are not there."""

import math

import pytest
import torch

from magnet_lab.evaluation import beyond_context
from magnet_lab.evaluation.experiment import Data, Figure, Setting
from magnet_lab.evaluation.infilling import Missing, remove_sentences
from magnet_lab.evaluation.verdicts import at_most, average, every, more_in_all, row_more


def around(value: float, half: float) -> Figure:
    return Figure(value, value - half, value + half, 9)


ROWS = {
    "low": {"a": around(1, 0.1), "b": around(5, 0.1)},
    "high": {"a": around(2, 0.1), "b": around(6, 3)},
    "half": {"a": around(2, 0.1)},
}


@pytest.mark.parametrize(
    "answers, whole",
    [
        ([True, True], True),
        ([True, None], None),
        ([None, False], False),
        ([True, False], False),
        ([None], None),
        ([], None),
    ],
)
def test_all_of_several_questions(answers, whole):
    assert every(answers) is whole


def test_rows_are_compared_only_where_both_were_measured():
    assert row_more(ROWS, "high", "low", "a") is True and row_more(ROWS, "low", "high", "a") is False
    assert row_more(ROWS, "high", "low", "b") is None  # the intervals overlap
    assert row_more(ROWS, "half", "low", "b") is None and row_more(ROWS, "none", "low", "a") is None
    assert more_in_all(ROWS, "high", "low", ["a"]) is True
    assert more_in_all(ROWS, "high", "low", ["a", "b"]) is None
    assert more_in_all(ROWS, "low", "high", ["a", "b"]) is False
    assert more_in_all(ROWS, "none", "low", []) is None


def test_so_many_times_anothers():
    assert at_most(ROWS, "high", 3, "low", "a") is not False  # 2 against 3
    assert at_most(ROWS, "high", 1.5, "low", "a") is False  # 2 ± 0.1 against 1.5 ± 0.15
    assert at_most(ROWS, "high", 1.95, "low", "a") is None
    assert at_most(ROWS, "high", 3, "none", "a") is None


def test_the_average_of_independent_figures():
    """Variances add, so the half-width of a mean of n is the root of the sum of squares over n."""
    found = average([around(1, 3), around(3, 4)])
    assert (found.value, found.low, found.high) == pytest.approx((2, 2 - 5 / 2, 2 + 5 / 2))
    assert found.n == 2


def test_the_right_context_is_cut_word_by_word():
    missing = Missing("Tom had a ball. [blank] He was very sad.", ["He lost it."])
    assert beyond_context.cut(missing, 0) == Missing("Tom had a ball. [blank]", ["He lost it."])
    assert beyond_context.cut(missing, 2).text == "Tom had a ball. [blank] He was"
    assert beyond_context.cut(missing, 99) == missing


def test_with_all_of_the_right_context_it_is_the_whole_story(tiny_lab, monkeypatch):
    monkeypatch.setattr(beyond_context, "WORDS", (0, 99))
    setting = Setting("tiny", Data("samples"), quick=True, _base=tiny_lab)
    found = beyond_context._row(None)(setting)
    assert list(found) == ["0 words to the right", "99 words to the right"]

    stories = remove_sentences(setting.data.stories(4), seed=0)
    whole = [missing for missing in stories if not missing.text.endswith("[blank]")]
    scored = [tiny_lab.score_infill(missing.text, missing.fills).log_probs[0] for missing in whole]
    nats = -torch.cat(scored).mean().item()
    assert math.log(found["99 words to the right"].value) == pytest.approx(nats, abs=1e-4)
