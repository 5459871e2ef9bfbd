"""Several modes side by side: masks and lines, against the rule written out as a loop."""

import numpy as np
import pytest

from magnet_lab.viz import four_modes, links_figure, links_text, modes_figure, modes_text, show

TOKENS = ["John", " was", " lifting", " there", "."]
SPANS = [(1, 3)]
MODES = four_modes(5, SPANS)


def rule(span_ids) -> np.ndarray:
    """The rule of Section 3.1, in words."""
    mask = np.zeros((len(span_ids), len(span_ids)), dtype=bool)
    for query, own in enumerate(span_ids):
        for key, other in enumerate(span_ids):
            mask[query, key] = other == 0 or (own == other and key <= query)
    return mask


def test_four_modes_are_figure_2_and_a_prefix_lm():
    assert MODES == {
        "causal": [1, 1, 1, 1, 1],
        "bidirectional": [0, 0, 0, 0, 0],
        "prefix LM": [0, 0, 1, 1, 1],
        "MAGNET": [0, 1, 1, 0, 0],
    }


@pytest.mark.parametrize("length", [5, 14])  # one line of panels, and two
def test_each_panel_shows_its_mask(length):
    modes = four_modes(length, [(1, 3)])
    figure = modes_figure(["x"] * length, modes)
    assert [axes.get_xlabel() for axes in figure.axes] == list(modes)
    for axes, span_ids in zip(figure.axes, modes.values(), strict=True):
        assert (np.asarray(axes.images[0].get_array()) == rule(span_ids)).all()


def test_the_text_shows_the_same_masks():
    assert modes_text(TOKENS, {"MAGNET": MODES["MAGNET"], "causal": MODES["causal"]}).splitlines()[1:] == [
        "            MAGNET      causal",
        "0 John      ■ · · ■ ■   ■ · · · ·",
        "1 was       ■ ■ · ■ ■   ■ ■ · · ·",
        "2 lifting   ■ ■ ■ ■ ■   ■ ■ ■ · ·",
        "3 there     ■ · · ■ ■   ■ ■ ■ ■ ·",
        "4 .         ■ · · ■ ■   ■ ■ ■ ■ ■",
        "MAGNET: spans 1–2; causal: spans 0–4",
    ]


def test_a_line_for_all_that_is_read_and_black_within_spans_alone():
    figure = links_figure(TOKENS, MODES)
    for axes, span_ids in zip(figure.axes, MODES.values(), strict=True):
        drawn = {(int(line.get_xdata()[1]), int(line.get_xdata()[0])): line.get_color() for line in axes.lines}
        assert set(drawn) == {tuple(pair) for pair in np.argwhere(rule(span_ids)).tolist()}
        assert {key for (_, key), colour in drawn.items() if colour == "#111111"} == {
            key for key, span in enumerate(span_ids) if span
        }


def test_lines_in_words():
    assert links_text(TOKENS, {"MAGNET": MODES["MAGNET"]}).splitlines() == [
        "MAGNET",
        "   0 John      reads context 0, 3–4",
        "   1 [was]     reads context 0, 3–4, own span 1",
        "   2 [lifting] reads context 0, 3–4, own span 1–2",
        "   3 there     reads context 0, 3–4",
        "   4 .         reads context 0, 3–4",
    ]


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="5 tokens came with 2 span ids of MAGNET"):
        modes_figure(TOKENS, {"MAGNET": [0, 1]})
    with pytest.raises(ValueError, match="there is no mode to draw"):
        links_text(TOKENS, {})


def test_both_come_from_show():
    assert repr(show("modes", TOKENS, MODES, title="One rule")).startswith("One rule\nrows: query")
    assert show("links", TOKENS, MODES).png().startswith(b"\x89PNG")
