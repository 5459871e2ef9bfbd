"""The page's prefix LM: masks and leaks against loops, and the small models against whole passes."""

import re

import pytest
import torch

from magnet_lab.app.handlers import prefix_lm
from magnet_lab.relatives import demo

SIX = "The dog ran home to eat"


def test_the_documents_pairs():
    """Six words, three of them prefix: 36, 21 and 24 pairs, and 33 under the chapter's mask."""
    view = prefix_lm.draw_masks(SIX, 3, 2)
    assert "all 36 in both directions, 21 from left to right, and 24 with a prefix of 3" in view.sentences[0]
    assert "lets 33 pairs attend, not 24" in view.leaks[0]


@pytest.mark.parametrize("prefix", [1, 3, 5])
@pytest.mark.parametrize("layers", [1, 2, 4])
def test_what_leaks_is_what_a_walk_through_the_layers_finds(prefix, layers):
    tokens = SIX.split()
    size = len(tokens)

    def sees(query, key):  # as the chapter's code has it
        return query < prefix or key < prefix or key <= query

    expected = []
    for query in range(prefix, size):
        reached = {query}
        for _ in range(layers):
            reached = {key for place in reached for key in range(size) if sees(place, key)}
        later = sorted(key for key in reached if key > query)
        if later:
            words = str(later[0]) if len(later) == 1 else f"{later[0]}–{later[-1]}"
            expected.append(f"“{tokens[query]}” ({query}) of {words}")
    told = prefix_lm.draw_masks(SIX, prefix, layers).leaks[-1]
    assert re.findall(r"“\w+” \(\d\) of \d(?:–\d)?", told) == expected
    assert ("no word of the target hears" in told) == (not expected)


def test_a_prefix_leaves_a_target():
    view = prefix_lm.draw_masks(SIX, 16, 1)
    assert view.prefix == 5 and view.length == 6


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        (("", 1, 1), "the text is empty"),
        (("one", 1, 1), "has 1 words and marks"),
        (("word " * 40, 1, 1), "give 2 to 16"),
        (("x" * 301, 1, 1), "at most 300"),
        ((SIX, 0, 1), "the prefix is 0"),
        ((SIX, 3, 99), "the number of layers is 99"),
    ],
)
def test_masks_that_cannot_be_drawn_get_a_sentence(inputs, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        prefix_lm.draw_masks(*inputs)


@pytest.mark.parametrize("name", prefix_lm.MODELS)
def test_a_prefix_is_gone_on_with_word_by_word(name):
    """Greedily, by a loop over whole passes, the mask written out by its rule."""
    writer = prefix_lm.writer_of(name)
    ids = writer.tokenizer("Tom found a small", add_special_tokens=False)["input_ids"]
    row, count = list(ids), len(ids)
    while len(row) < demo.LENGTH:
        size = len(row)
        mask = torch.zeros(1, 1, size, size, dtype=torch.bool)
        for query in range(size):
            for key in range(size):
                of_prefix = name == "prefix-printed" and query < count
                mask[0, 0, query, key] = key < count or (key <= query and query >= count) or of_prefix
        states = writer.model.embeddings(torch.tensor([row]))
        with torch.no_grad():
            for block in writer.model.blocks:
                states, _ = block(states, mask)
            row.append(int(writer.model.output(states)[0, -1].argmax()))
    found, _ = prefix_lm.go_on("Tom found a small")
    pieces = found[prefix_lm.MODELS[name]]
    assert [piece.kind for piece in pieces] == ["context", "generated"]
    assert pieces[1].text == (demo.written(writer.tokenizer, row[count:]) or "(the end of the story)")


def test_prefixes_that_cannot_be_gone_on_with_get_a_sentence():
    for inputs, sentence in [
        (("",), "the prefix is empty"),
        (("a " * 30,), "so give 1 to 22"),
        (("a", 9), "temperature"),
    ]:
        with pytest.raises(ValueError, match=re.escape(sentence)):
            prefix_lm.go_on(*inputs)


def test_the_page_says_what_was_measured():
    assert all(re.fullmatch(r"\d\.\d\d", cell) for row in prefix_lm.measured() for cell in row[1:])
