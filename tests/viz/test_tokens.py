"""Tokens as a reader sees them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnet_lab.viz import ranges, strip_text, token_texts, visible

HOSTILE = "<s></s><img src=x onerror=alert(1)> ${x} \x07\x1b[0m \u202eabc 😀 עברית\t\n"


def test_tokens_joined_are_the_text(tiny_lab):
    for text in ("The dog ran.", HOSTILE, " leading", "trailing ", "\n", "漢字 and e\u0301"):
        assert "".join(token_texts(tiny_lab.tokenizer, text)) == text


@given(st.text(max_size=60))
def test_tokens_of_any_text_joined_are_the_text(tiny_lab, text):
    tokens = token_texts(tiny_lab.tokenizer, text)
    assert "".join(tokens) == text
    assert len(tokens) == len(tiny_lab.tokenizer(text, add_special_tokens=False)["input_ids"])


def test_control_tokens_are_text(tiny_lab):
    assert len(token_texts(tiny_lab.tokenizer, "<s>")) > 1


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a b", "a b"),
        ("\n", "↵"),
        ("\t", "⇥"),
        ("\x00", "‹U+0000›"),
        ("\u202e", "‹U+202E›"),
        ("", "⋯"),
        ("👩‍🔬", "👩‍🔬"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(text, seen):
    assert visible(text) == seen


def test_a_strip_marks_its_spans_and_masked_tokens():
    tokens = ["John", " was", " at", " the", " gym", "."]
    assert strip_text(tokens, [0] * 6) == "John was at the gym."
    assert strip_text(tokens, [0, 0, 1, 1, 1, 0]) == "John was [at the gym]."
    assert strip_text(tokens, [0, 1, 2, 2, 0, 0], masked=[5]) == "John [was] [at the] gym▢."
    assert strip_text(tokens, [-1, 0, 0, 1, 1, 1]) == " was at [the gym.]"


def test_a_strip_wants_one_number_a_token():
    with pytest.raises(ValueError, match="2 tokens came with 1 span ids"):
        strip_text(["a", "b"], [0])


@pytest.mark.parametrize(
    ("indices", "words"), [([], "nothing"), ([3], "3"), ([0, 1, 2], "0–2"), ([0, 1, 4, 6, 7], "0–1, 4, 6–7")]
)
def test_indices_in_words(indices, words):
    assert ranges(indices) == words
