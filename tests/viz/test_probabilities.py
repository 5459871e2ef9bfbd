"""Bars of likely tokens and shaded texts, against a softmax written as sums and colours looked up by hand."""

import math

import matplotlib as mpl
import pytest
import torch
from matplotlib.colors import to_rgba

from magnet_lab.viz import (
    likeliest,
    likelihood_figure,
    likelihood_text,
    palette,
    predictions_figure,
    predictions_text,
    step_figure,
    step_text,
)

TOKENS, SHARES = [" dog", " cat", "\n", " girl (rank 9)"], [0.5, 0.25, 0.1, 0.01]
NAN = float("nan")


def test_likeliest_is_a_sorted_softmax(tiny_lab):
    scores = torch.randn(len(tiny_lab.tokenizer), generator=torch.Generator().manual_seed(0)) * 3
    total = sum(math.exp(score) for score in scores.tolist())
    order = sorted(range(len(scores)), key=lambda token: -scores[token])
    texts, shares = likeliest(tiny_lab.tokenizer, scores, k=3, right=order[10])
    assert texts[:3] == [tiny_lab.tokenizer.decode([token]) for token in order[:3]]
    assert texts[3].endswith("(rank 11)") and len(texts) == 4
    wanted = [math.exp(scores[token]) / total for token in (*order[:3], order[10])]
    assert shares == pytest.approx(wanted, rel=1e-4)
    assert len(likeliest(tiny_lab.tokenizer, scores, k=3, right=order[1])[0]) == 3


def test_bars_have_the_probabilities_and_the_true_token_a_mark():
    axes = predictions_figure(TOKENS, SHARES, right=3).axes[0]
    assert [bar.get_width() for bar in axes.patches] == SHARES
    assert [bool(bar.get_hatch()) for bar in axes.patches] == [False, False, False, True]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["dog", "cat", "↵", "girl (rank 9)"]


def test_bars_in_characters():
    assert predictions_text(TOKENS, SHARES, right=3).splitlines() == [
        "dog           0.500 " + "█" * 20,
        "cat           0.250 " + "█" * 10,
        "↵             0.100 " + "█" * 4,
        "girl (rank 9) 0.010  ← the true token",
    ]


def test_a_token_has_the_colour_of_its_probability():
    figure = likelihood_figure(["Tom", " ran", " home"], [NAN, 0.9, 0.1])
    boxes = [patch.get_facecolor() for patch in figure.axes[0].patches]
    colours = mpl.colormaps["cividis"]
    assert boxes[0] == to_rgba(palette.CARD)
    assert boxes[1] == pytest.approx(colours(0.9), abs=1 / 255) and boxes[2] == pytest.approx(colours(0.1), abs=1 / 255)
    assert likelihood_text(["Tom", " ran", " home"], [NAN, 0.9, 0.1]) == "Tom ran⟨0.90⟩ home⟨0.10⟩"


def test_a_long_text_goes_on_in_further_lines():
    short, long = (likelihood_figure(["word"] * count, [0.5] * count) for count in (5, 60))
    heights = {patch.get_y() for patch in long.axes[0].patches}
    assert len(heights) > 2 and max(patch.get_x() + patch.get_width() for patch in long.axes[0].patches) < 8
    assert long.get_size_inches()[1] > short.get_size_inches()[1]
    assert min(heights) > 0.4  # above the scale


def test_a_step_shows_its_position_and_its_bars():
    kinds = [palette.CONTEXT, palette.MASKED, palette.SPAN]
    figure = step_figure(["Tom", "_", " home"], kinds, 1, "MNTP: asked", TOKENS, SHARES, right=3)
    axes, bars = figure.axes[0], figure.axes[0].child_axes[0]
    framed = [patch for patch in axes.patches if patch.get_edgecolor() == to_rgba("#D55E00")]
    assert len(framed) == 1 and [bar.get_width() for bar in bars.patches] == SHARES
    text = step_text(["Tom", "_", " home"], kinds, 1, "MNTP: asked", TOKENS, SHARES, right=3)
    assert text.startswith("Tom «▢_» [home]\nMNTP: asked\ndog ")


@pytest.mark.parametrize("token", ["$x^2$", "\\frac{", "\x00", "\n", "😀", "漢", ""])
def test_any_token_can_be_drawn(token, tmp_path, recwarn):
    predictions_figure([token], [1.0]).savefig(tmp_path / "bars.png")
    likelihood_figure([token], [1.0], title=token).savefig(tmp_path / "text.png")
    assert not [warning for warning in recwarn if "layout" in str(warning.message)]


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="2 tokens came with 1 probabilities"):
        likelihood_text(["a", "b"], [0.5])
    with pytest.raises(ValueError, match="there is no token 4 among 4"):
        predictions_figure(TOKENS, SHARES, right=4)
    with pytest.raises(ValueError, match="there is no position 3 among 1"):
        step_figure(["a"], [palette.CONTEXT], 3, "", TOKENS, SHARES)
