"""The pictures of Figure 4 and their text twins, against views written by hand."""

import math

import pytest
import torch

from magnet_lab.decoder import text_ids
from magnet_lab.views import NO_LABEL, Views
from magnet_lab.viz.views import contrast_figure, contrast_text, id_texts, kinds, targets, views_figure, views_text

TOKENS = ["<s>", "The", " cat", " sat", " on", " it", "."]
READ = ["<s>", "The", " cat", " sat", " on", "_", "."]
N = NO_LABEL
# "cat sat" is missing: asked of the positions before each. "it" is hidden: asked of "on".
MADE = Views(
    input_ids=torch.tensor([[0, 1, 2, 3, 4, 9, 6]]),
    span_ids=torch.tensor([[0, 0, 1, 1, 0, 0, 0]]),
    mntp_labels=torch.tensor([[N, N, N, N, 5, N, N]]),
    msg_labels=torch.tensor([[N, 2, 3, N, N, N, N]]),
    selected=torch.tensor([[False, False, False, False, False, True, False]]),
)
SIMILARITY = torch.tensor([[0.9, 0.1, -0.2], [0.3, 0.5, 0.4], [0.0, 0.7, 0.6]])
NAMES = ["one", "two", "three"]


def test_each_position_is_asked_for_the_token_after_it():
    assert targets(MADE) == ["", "MSG", "MSG", "", "MNTP", "", ""]
    assert kinds(MADE) == ["context", "context", "span", "span", "context", "masked", "context"]


def test_views_as_text():
    assert views_text(TOKENS, READ, MADE).splitlines() == [
        "position  reads  predicts  by",
        "0         <s>    ·",
        "1         The    2 cat     MSG",
        "2         [cat]  3 sat     MSG",
        "3         [sat]  ·",
        "4         on     5 it      MNTP",
        "5         ▢_     ·",
        "6         .      ·",
    ]


def test_the_picture_has_what_is_predicted_under_what_is_read():
    axes = views_figure(TOKENS, READ, MADE).axes[0]
    places = {}
    for text in axes.texts:
        places.setdefault(text.get_text(), []).append(text.get_position())
    assert len(places["cat"]) == len(places["sat"]) == 2 and len(places["it"]) == 1
    columns = {text: [x for x, _ in found] for text, found in places.items()}
    assert sorted(columns["cat"]) == [1.5, 2.5]  # predicted at 1, read at 2
    assert columns["it"] == [4.5] and columns["_"] == [5.5]
    assert columns["3 · MSG"] == [2.5] and columns["5 · MNTP"] == [4.5]


def test_a_long_text_goes_on_in_further_lines():
    length = 20
    made = Views(
        *(torch.zeros(1, length, dtype=torch.long) for _ in range(2)),
        *(torch.full((1, length), N) for _ in range(2)),
        selected=torch.zeros(1, length, dtype=torch.bool),
    )
    axes = views_figure(["x"] * length, ["x"] * length, made).axes[0]
    assert len([text for text in axes.texts if text.get_text() == "reads"]) == 3


def test_ids_say_what_the_text_says(tiny_lab):
    tokenizer = tiny_lab.tokenizer
    for text in ("The dog ran.", " two  spaces", "\u202e${x} <s> é", "a 👩‍🔬 b", "漢字"):
        ids = text_ids(tokenizer, text)
        said = id_texts(tokenizer, ids)
        assert "".join(said) == text and len(said) == len(ids)
    assert id_texts(tokenizer, [0, *text_ids(tokenizer, "Tom")])[0] == "<s>"


def test_a_character_of_several_tokens_goes_to_the_first(tiny_lab):
    ids = text_ids(tiny_lab.tokenizer, "😀!")
    assert len(ids) > 2
    assert id_texts(tiny_lab.tokenizer, ids) == ["😀", *[""] * (len(ids) - 2), "!"]
    # Cut off by another token, its parts are shown as what they are.
    assert len(id_texts(tiny_lab.tokenizer, [ids[0], ids[-1]])) == 2


def shares(row: int, temperature: float) -> list[float]:
    terms = [math.exp(float(value) / temperature) for value in SIMILARITY[row]]
    return [term / sum(terms) for term in terms]


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_a_row_of_the_contrast_is_equation_3s_softmax(temperature):
    figure = contrast_figure(SIMILARITY, NAMES, row=1, temperature=temperature)
    assert [bar.get_width() for bar in figure.axes[0].patches] == pytest.approx(shares(1, temperature), abs=1e-6)
    assert f"{-math.log(shares(1, temperature)[1]):.3f} nats" in figure.get_suptitle()


def test_the_contrast_as_text():
    lines = contrast_text(SIMILARITY, NAMES, row=1, temperature=0.1).splitlines()
    first, own, _ = shares(1, 0.1)
    assert lines[1].split()[:4] == ["1", "one", "0.300", f"{first:.3f}"]
    assert lines[2].split()[:4] == ["2", "two", "0.500", f"{own:.3f}"] and lines[2].endswith("its own")
    assert lines[2].count("█") == round(40 * own)


@pytest.mark.parametrize("row, temperature, words", [(3, 0.1, "no sentence 4"), (0, 0, "not above 0")])
def test_a_row_or_a_temperature_that_is_none_is_named(row, temperature, words):
    with pytest.raises(ValueError, match=words):
        contrast_text(SIMILARITY, NAMES, row=row, temperature=temperature)


def test_sizes_that_do_not_match_are_named():
    with pytest.raises(ValueError, match="6 tokens came with views of 7"):
        views_text(TOKENS[:6], READ, MADE)
    with pytest.raises(ValueError, match="2 names"):
        contrast_figure(SIMILARITY, NAMES[:2], row=0, temperature=0.1)
    two = Views(*(torch.cat([part, part]) for part in vars(MADE).values()))
    with pytest.raises(ValueError, match="batch holds 2"):
        views_figure(TOKENS, READ, two)


@pytest.mark.parametrize("token", ["$x^2$", "\\frac{", "<b>", "\x00", "😀", ""])
def test_any_token_can_be_drawn(token, tmp_path, recwarn):
    views_figure([token] * 7, [token] * 7, MADE).savefig(tmp_path / "views.png")
    contrast_figure(SIMILARITY, [token] * 3, row=0, temperature=0.1).savefig(tmp_path / "row.png")
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]
