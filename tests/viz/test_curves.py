"""Losses, lengths, alignment and uniformity, and the parts of Equation 5, against numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch

from magnet_lab import viz
from magnet_lab.viz.palette import SEES

NAN = float("nan")


def test_a_line_is_the_mean_and_a_band_reaches_from_the_lowest_to_the_highest():
    figure = viz.losses_figure({"MNTP": [[1, 3, 5], [3, 5, 9]], "SSCL": [NAN, NAN, 2]}, steps=[10, 20, 30])
    axes = figure.axes[0]
    mntp, sscl = axes.lines
    assert mntp.get_xydata().tolist() == [[10, 2], [20, 4], [30, 7]]
    assert np.isnan(sscl.get_ydata()[:2]).all() and sscl.get_ydata()[2] == 2
    (band,) = axes.collections
    corners = {tuple(point) for point in band.get_paths()[0].vertices.tolist()}
    assert {(10, 1), (10, 3), (30, 5), (30, 9)} <= corners
    assert [text.get_text().strip() for text in axes.texts] == ["SSCL", "MNTP"]


def test_names_of_lines_that_end_together_do_not_hide_each_other():
    axes = viz.losses_figure({"a": [1.0, 2.0], "b": [3.0, 2.0], "c": [0.0, 2.0]}).axes[0]
    places = sorted(text.get_position()[1] for text in axes.texts)
    assert min(np.diff(places)) > 0.05


def test_losses_in_characters():
    assert viz.losses_text({"MNTP": [[1, 3], [3, 5]], "MSG": [NAN, 2.5]}).splitlines() == [
        "loss (nats)",
        "  step                 MNTP    MSG",
        "     1  2.000 (1.000–3.000)      –",
        "     2  4.000 (3.000–5.000)  2.500",
    ]


def test_lengths_of_spans():
    span_ids = torch.tensor([[0, 1, 1, 0, 2], [0, 0, 0, 0, -1], [1, 1, 1, 1, 1]])
    assert viz.span_lengths(span_ids) == [2, 1, 5]
    axes = viz.lengths_figure([2, 2, 4]).axes[0]
    bars = {bar.get_x() + bar.get_width() / 2: bar.get_height() for bar in axes.patches}
    assert bars == {2: 2, 3: 0, 4: 1}
    assert viz.lengths_text([2, 2, 4]).splitlines() == [
        "3 spans, 2.7 tokens on average",
        "2 2 " + "█" * 40,
        "3 0",
        "4 1 " + "█" * 20,
    ]


def test_many_lengths_share_bars_and_none_is_lost():
    lengths = list(range(4, 129)) * 2
    axes = viz.lengths_figure(lengths).axes[0]
    assert len(axes.patches) <= 24 and sum(bar.get_height() for bar in axes.patches) == len(lengths)


def test_a_point_for_each_model():
    points = {"base": (0.01, -0.1), "magnet": (0.3, -2.7)}
    axes = viz.alignment_figure(points).axes[0]
    assert [tuple(dots.get_offsets()[0].tolist()) for dots in axes.collections] == list(points.values())
    assert viz.alignment_text(points).splitlines()[2] == "magnet      0.300      -2.700"


def test_the_parts_of_equation_5():
    anchors, candidates = torch.eye(2), torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    # Cosines are 1, 1/√2 in the first row and 0, 1/√2 in the second; τ = 0.5.
    shares = [math.exp(2), math.exp(math.sqrt(2))], [1, math.exp(math.sqrt(2))]
    own = shares[0][0] / sum(shares[0]), shares[1][1] / sum(shares[1])
    sscl = -(math.log(own[0]) + math.log(own[1])) / 2
    arguments = (2.0, 3.0, anchors, candidates)
    figure = viz.mixing_figure(*arguments, weights=(1, 4, 0.5), temperature=0.5)
    left, right, _ = figure.axes
    assert [bar.get_width() for bar in left.patches] == pytest.approx([2, 4 * sscl, 1.5], rel=1e-5)
    assert all(bar.get_facecolor()[:3] == pytest.approx(tuple(int(SEES.background[i : i + 2], 16) / 255
               for i in (1, 3, 5))) for bar in left.patches)  # fmt: skip
    assert np.asarray(right.images[0].get_array()).diagonal() == pytest.approx(own, rel=1e-5)
    text = viz.mixing_text(*arguments, weights=(1, 4, 0.5), temperature=0.5)
    assert f"SSCL 4 × {sscl:.3f} = {4 * sscl:.3f}" in text and f"total {3.5 + 4 * sscl:.3f} (nats)" in text


@pytest.mark.parametrize("kind", ["losses", "alignment"])
def test_nothing_to_draw_is_named(kind):
    with pytest.raises(ValueError, match="there is no"):
        viz.show(kind, {})


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="MSG has shape"):
        viz.losses_figure({"MNTP": [1, 2], "MSG": [1]})
    with pytest.raises(ValueError, match="there is no span"):
        viz.lengths_text([])
