"""The picture of a mask and its text twin, against masks written by hand."""

import numpy as np
import pytest

from magnet_lab.viz import mask_figure, mask_text

TOKENS = ["The", " cat", " sat", "."]
SPAN_IDS = [0, 1, 1, 0]
# Context sees context; the span sees the context and its own past.
MASK = np.array([[1, 0, 0, 1], [1, 1, 0, 1], [1, 1, 1, 1], [1, 0, 0, 1]], dtype=bool)


def shown(figure) -> np.ndarray:
    return np.asarray(figure.axes[0].images[0].get_array())


def test_figure_shows_the_mask_with_queries_as_rows():
    figure = mask_figure(MASK, TOKENS, SPAN_IDS)
    assert (shown(figure) == MASK).all()
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["The", "[cat]", "[sat]", "."]
    assert axes.get_ylabel() == "query (who looks)" and axes.get_xlabel() == "key (what is seen)"


def test_figure_has_a_glyph_in_every_cell_of_a_small_mask_and_none_in_a_large_one():
    glyphs = [text.get_text() for text in mask_figure(MASK, TOKENS).axes[0].texts]
    assert glyphs.count("■") == MASK.sum() and glyphs.count("·") == (~MASK).sum()
    large = mask_figure(np.ones((25, 25), dtype=bool), ["x"] * 25)
    assert not large.axes[0].texts


def test_text_says_the_same():
    assert mask_text(MASK, TOKENS, SPAN_IDS).splitlines() == [
        "rows: query (who looks); columns: key (what is seen); · does not see · ■ sees",
        "        0 1 2 3",
        "0 The   ■ · · ■",
        "1 [cat] ■ ■ · ■",
        "2 [sat] ■ ■ ■ ■",
        "3 .     ■ · · ■",
    ]


def test_what_only_comes_through_others_is_a_third_thing():
    reach = MASK.copy()
    reach[0, 1] = True
    assert mask_text(MASK, TOKENS, reach=reach).splitlines()[2] == "0 The ■ ○ · ■"
    assert shown(mask_figure(MASK, TOKENS, reach=reach))[0, 1] == 2


def test_a_token_is_framed_in_its_row_and_column():
    frames = [patch.get_bbox().bounds for patch in mask_figure(MASK, TOKENS, token=2).axes[0].patches]
    assert frames == [(-0.5, 1.5, 4, 1), (1.5, -0.5, 1, 4)]


@pytest.mark.parametrize("token", ["$x^2$", "\\frac{", "<b>", "\x00", "\n", "😀", "漢", "שלום", "", " "])
def test_any_token_can_be_drawn(token, tmp_path, recwarn):
    figure = mask_figure(np.ones((1, 1), dtype=bool), [token])
    figure.savefig(tmp_path / "mask.png")
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


def test_sizes_that_do_not_match_are_named():
    with pytest.raises(ValueError, match=r"3 tokens need \(3, 3\)"):
        mask_figure(MASK, TOKENS[:3])
    with pytest.raises(ValueError, match="4 tokens came with 2 span ids"):
        mask_text(MASK, TOKENS, [0, 1])


def test_the_largest_mask_of_the_app_still_fits_its_labels():
    figure = mask_figure(np.ones((96, 96), dtype=bool), ["word"] * 96)
    assert max(figure.get_size_inches()) < 13
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()][:3] == ["0", "8", "16"]
