"""A sentence to one vector and back, on the page; and what is said where the model is not there."""

import re

import pytest
import torch

from magnet_lab.app import limits
from magnet_lab.app.handlers import relatives, restoring
from magnet_lab.relatives import demo


def test_points_on_the_line_are_restored_one_by_one():
    first, second = "He was late for work.", "She found the dog in the park."
    found, about = restoring.restore(first, second)
    model = restoring.restorer()
    ends = [model.encode([sentence])[0] for sentence in (first, second)]
    assert [one.share for one in found] == sorted(restoring.POINTS) and len(found) > 3
    for one in found:
        vector = torch.stack([(1 - one.share) * a + one.share * b for a, b in zip(*ends, strict=True)])
        assert one.text == model.restore(vector[None])[0]
    assert found[0].first == 100 and found[-1].second == 100  # these two come back whole
    assert "192 numbers" in about[-1]
    (alone,), _ = restoring.restore(first)
    assert alone.text == found[0].text and alone.second is None


def test_what_the_restorer_does_not_know_is_said():
    _, about = restoring.restore("The zyzzyva ran home.")
    assert "lost on the way in: “zyzzyva”" in about[0]
    _, about = restoring.restore("The dog ran home and the cat ran home and the girl ran.")
    assert "has 14 words and marks. The model has learnt from 4 to 9" in about[0]


def test_the_page_says_what_was_measured():
    assert re.search(r"R-L \d\d\. Of sentences of any length", restoring.measured())


def test_a_model_that_is_missing_gets_a_sentence():
    def load():
        return demo.load_restorer(demo.FOLDER / "nowhere")

    with pytest.raises(ValueError, match="makes it in minutes"):
        relatives.loaded(load)
    assert limits.RELATIVES_WORDS < 24  # a mask of more has no glyphs
