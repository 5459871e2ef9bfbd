"""Infilling step by step, against what the decoding loop itself computes and against steps written by hand."""

import numpy as np
import pytest

from magnet_lab.viz import infilling_figure, infilling_text
from magnet_lab.viz.infilling import COMPUTED, DONE, EMPTY, KEPT, WRITTEN, infilling_steps


def test_steps_of_one_span_by_hand():
    assert infilling_steps([0, 1, 1, 1, 0]).tolist() == [
        [COMPUTED, WRITTEN, EMPTY, EMPTY, COMPUTED],
        [KEPT, COMPUTED, WRITTEN, EMPTY, KEPT],
        [KEPT, KEPT, COMPUTED, WRITTEN, KEPT],
    ]


def test_a_shorter_span_is_done_earlier():
    steps = infilling_steps([0, 1, 1, 1, 0, 2])
    assert steps[:, 5].tolist() == [WRITTEN, DONE, DONE]
    assert steps[:, 1].tolist() == [WRITTEN, COMPUTED, KEPT]


def test_the_model_computes_those_tokens_at_those_positions(tiny_lab, monkeypatch):
    """Spies on the passes of a real infilling: at each, the positions that go in are those of `COMPUTED`."""
    asked, forward = [], tiny_lab.model.forward

    def spy(*args, position_ids, **kwargs):
        asked.append(position_ids[0].tolist())
        return forward(*args, position_ids=position_ids, **kwargs)

    monkeypatch.setattr(tiny_lab.model, "forward", spy)
    tiny_lab.infill("Tom had [blank:4] ball.")
    context = len(asked[0])
    start = next(place for place in range(context) if asked[0][place] != place)
    steps = infilling_steps([0] * start + [1] * 4 + [0] * (context - start))
    assert [np.flatnonzero(row == COMPUTED).tolist() for row in steps] == asked


def test_figure_and_text_show_the_steps():
    tokens, span_ids = ["A", " b", " c", " d"], [0, 1, 1, 0]
    axes = infilling_figure(tokens, span_ids).axes[0]
    assert (np.asarray(axes.images[0].get_array()) == infilling_steps(span_ids)).all()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["A", "[b]", "[c]", "d"]
    assert infilling_text(tokens, span_ids).splitlines() == [
        "· not there yet; ○ kept in the cache; ■ computed now; + written now",
        "positions: 0 A 1 [b] 2 [c] 3 d",
        "                    0 1 2 3",
        "context: 2 computed ■ + · ■",
        "step 1: 1 computed  ○ ■ + ○",
        "computed: 2 + 1 = 3; without a cache 5",
    ]


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="there is no span to fill"):
        infilling_text(["a"], [0])
    with pytest.raises(ValueError, match="a span begins the text"):
        infilling_figure(["a", "b"], [1, 0])
    with pytest.raises(ValueError, match="2 tokens came with 1 span ids"):
        infilling_figure(["a", "b"], [1])
