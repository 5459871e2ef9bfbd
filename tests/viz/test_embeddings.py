"""Heatmap and map, against vectors of which the answer is known."""

import numpy as np
import pytest

from magnet_lab.viz import map_figure, map_text, similarity_figure, similarity_text
from magnet_lab.viz.embeddings import project

NAMES = ["one", "two", "three"]
SIMILARITY = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 1.0]])


def test_the_heatmap_shows_every_number():
    figure = similarity_figure(SIMILARITY, NAMES)
    assert np.allclose(figure.axes[0].images[0].get_array(), SIMILARITY)
    assert [text.get_text() for text in figure.axes[0].texts[:3]] == ["1.00", "0.50", "0.00"]


def test_colours_span_what_occurs_between_different_things():
    image = similarity_figure(SIMILARITY, NAMES).axes[0].images[0]
    assert image.get_clim() == (0.0, 0.5)


def test_vectors_that_are_all_alike_are_told_apart_by_a_third_decimal():
    alike = np.array([[1, 0.991], [0.991, 1]])
    assert similarity_figure(alike, ["a", "b"]).axes[0].texts[1].get_text() == "0.991"


def test_the_heatmap_of_words_has_names_on_both_sides():
    axes = similarity_figure(SIMILARITY[:2], ["bank", "river"], ["the", "bank", "lent"]).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["bank", "river"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["the", "bank", "lent"]


def test_similarities_as_text():
    lines = similarity_text(SIMILARITY, NAMES).splitlines()
    assert lines[2].split() == ["2\u200e", "two", "0.50", "1.00", "0.25"]


def test_the_plane_keeps_what_lies_on_one():
    angles = np.array([0.1, 0.4, 0.5, 1.2])
    flat = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    turned, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))
    vectors = np.pad(flat, ((0, 0), (0, 6))) @ turned
    places, shares = project(vectors)
    distances = np.linalg.norm(flat[:, None] - flat[None], axis=-1)
    assert np.allclose(np.linalg.norm(places[:, None] - places[None], axis=-1), distances)
    assert shares.sum() == pytest.approx(1)


def test_length_does_not_move_a_point_since_cosine_does_not_see_it():
    vectors = np.random.default_rng(1).normal(size=(5, 16))
    assert np.allclose(project(vectors)[0], project(vectors * np.arange(1, 6)[:, None])[0])


@pytest.mark.parametrize("count", [1, 2, 24])
def test_the_map_takes_few_and_many_and_hides_no_label_behind_another(count):
    labels = [f"sentence number {number}" for number in range(count)]
    figure = map_figure(np.random.default_rng(2).normal(size=(count, 16)), labels)
    drawn = [text.get_text() for text in figure.axes[0].texts]
    assert drawn[:count] == [str(number) for number in range(1, count + 1)]
    boxes = [text.get_window_extent() for text in figure.axes[0].texts[count:]]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_equal_vectors_do_not_divide_by_zero():
    map_figure(np.ones((3, 4)), NAMES)
    assert np.isfinite(project(np.zeros((3, 4)))[0]).all()


def test_the_map_as_text_names_the_nearest():
    vectors = np.array([[1, 0.0], [0.9, 0.1], [0, 1]])
    assert "nearest: 2" in map_text(vectors, NAMES).splitlines()[0]
    assert "nearest" not in map_text(vectors[:1], NAMES[:1])


def test_sizes_that_do_not_match_are_named():
    with pytest.raises(ValueError, match=r"need \(2, 2\)"):
        similarity_figure(SIMILARITY, NAMES[:2])
    with pytest.raises(ValueError, match="3 vectors came with 2 labels"):
        map_figure(SIMILARITY, NAMES[:2])
