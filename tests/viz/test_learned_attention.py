"""Pictures of attention weights and their text twins, against weights written by hand."""

import numpy as np
import pytest

from magnet_lab.viz.learned_attention import (
    attention_figure,
    attention_row_figure,
    attention_row_text,
    attention_text,
)

TOKENS = ["The", " cat", " sat", "."]
SPAN_IDS = [0, 0, 1, 1]  # a prefix of two, a target of two
MASK = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]], dtype=bool)
WEIGHTS = np.array([[0.5, 0.5, 0, 0], [1, 0, 0, 0], [0.25, 0.25, 0.5, 0], [0.1, 0.2, 0.3, 0.4]])


def test_figure_shows_weights_and_leaves_out_what_is_blocked():
    axes, bar = attention_figure(WEIGHTS, MASK, TOKENS, SPAN_IDS).axes
    shown = axes.images[0].get_array()
    assert (shown.mask == ~MASK).all()
    assert (shown.filled(0) == WEIGHTS).all()
    assert axes.images[0].get_clim() == (0, 1)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["The", "cat", "[sat]", "[.]"]
    assert axes.get_ylabel() == "query (who looks)" and axes.get_xlabel() == "key (what is seen)"
    assert "weight" in bar.get_ylabel()


def test_a_weight_of_zero_is_not_what_is_blocked():
    """Token 1 may see itself and does not look."""
    shown = attention_figure(WEIGHTS, MASK, TOKENS).axes[0].images[0].get_array()
    assert shown[1, 1] == 0 and not shown.mask[1, 1] and shown.mask[1, 2]


def test_the_border_between_prefix_and_target_is_drawn():
    axes = attention_figure(WEIGHTS, MASK, TOKENS, SPAN_IDS).axes[0]
    assert sorted(tuple(line.get_xdata()) + tuple(line.get_ydata()) for line in axes.lines) == [
        (0, 1, 1.5, 1.5),
        (1.5, 1.5, 0, 1),
    ]
    assert not attention_figure(WEIGHTS, MASK, TOKENS).axes[0].lines


def test_text_says_the_same():
    assert attention_text(WEIGHTS, MASK, TOKENS, SPAN_IDS).splitlines() == [
        "rows: query (who looks); columns: key (what is seen); weights in per cent; · blocked by the mask",
        "          0   1   2   3",
        "0 The    50  50   ·   ·",
        "1 cat   100   0   ·   ·",
        "2 [sat]  25  25  50   ·",
        "3 [.]    10  20  30  40",
    ]


def test_bars_of_one_query():
    axes = attention_row_figure(WEIGHTS, MASK, TOKENS, SPAN_IDS, token=2).axes[0]
    bars = [patch for patch in axes.patches if patch.get_hatch() is None]
    hatched = [patch for patch in axes.patches if patch.get_hatch()]
    assert [bar.get_height() for bar in bars] == [0.25, 0.25, 0.5, 0]
    assert [patch.get_x() for patch in hatched] == [2.5]
    assert [tuple(line.get_xdata()) for line in axes.lines] == [(1.5, 1.5)]
    assert attention_row_text(WEIGHTS, MASK, TOKENS, SPAN_IDS, token=2).splitlines() == [
        "what 2 [sat] looks at, in per cent; · blocked by the mask",
        "0 The    25.0 " + "█" * 20,
        "1 cat    25.0 " + "█" * 20,
        "2 [sat]  50.0 " + "█" * 40,
        "3 [.]       ·",
    ]


@pytest.mark.parametrize("token", ["$x^2$", "\\frac{", "\n", "😀", " "])
def test_any_token_can_be_drawn(token, tmp_path, recwarn):
    one = np.ones((1, 1))
    attention_figure(one, one, [token]).savefig(tmp_path / "map.png")
    attention_row_figure(one, one, [token], token=0).savefig(tmp_path / "row.png")
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match=r"3 tokens need \(3, 3\)"):
        attention_figure(WEIGHTS, MASK, TOKENS[:3])
    with pytest.raises(ValueError, match="4 tokens came with 2 span ids"):
        attention_text(WEIGHTS, MASK, TOKENS, [0, 1])
    with pytest.raises(ValueError, match="token 0 looks at token 1, which the mask blocks"):
        attention_row_text(WEIGHTS, np.eye(4, dtype=bool), TOKENS, token=0)
    with pytest.raises(ValueError, match="there is no token 4 among 4"):
        attention_row_figure(WEIGHTS, MASK, TOKENS, token=4)
