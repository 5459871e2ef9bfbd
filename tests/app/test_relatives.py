"""What the page of the relatives does: masks and leaks against loops, a factorization against the rule in words."""

import re

import pytest
import torch

from magnet_lab.app import limits
from magnet_lab.app.components import factorization_strip
from magnet_lab.app.handlers import relatives
from magnet_lab.relatives import demo

SIX = "The dog ran home to eat"
SENTENCE = "The girl lost her red ball in the park."
HOSTILE = "<s><img src=x> ${x}"


# --- prefix LM


def test_the_documents_pairs():
    """Six words, three of them prefix: 36, 21 and 24 pairs, and 33 under the chapter's mask."""
    view = relatives.prefix_masks(SIX, 3, 2)
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
    told = relatives.prefix_masks(SIX, prefix, layers).leaks[-1]
    assert re.findall(r"“\w+” \(\d\) of \d(?:–\d)?", told) == expected
    assert ("no word of the target hears" in told) == (not expected)


def test_a_prefix_leaves_a_target():
    view = relatives.prefix_masks(SIX, 16, 1)
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
        relatives.prefix_masks(*inputs)


# --- UniLMv2


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("method", ["PAR", "AR", "AE"])
def test_each_step_shows_what_the_rule_lets_be_seen(method, seed, monkeypatch):
    """The rule in words, token by token, against the mask as it is written out."""
    monkeypatch.setattr("magnet_lab.viz.masks.mask_figure", lambda *_: None)  # a picture takes half a second
    words = [*SENTENCE[:-1].split(), "."]
    first = relatives.step(SENTENCE, method, seed, 1)
    hidden = sorted(place for block in first.order for place in block)
    assert first.steps == (1 if method == "AE" else len(first.order))
    assert method != "AR" or all(len(block) == 1 for block in first.order)
    told = []
    for number in range(1, first.steps + 1):
        view = relatives.step(SENTENCE, method, seed, number)
        assert view.order == first.order
        row = [("[M]" if place in hidden else word, place, 0, "") for place, word in enumerate(words)]
        if method == "AE":
            row = [(shows, place, 0, words[place] if place in hidden else "") for shows, place, _, _ in row]
        else:
            for step, block in enumerate(view.order[:number], start=1):
                row += [("[P]", place, step, words[place] if step == number else "") for place in block]
                row += [(words[place], place, step, "") for place in block]
        assert [(token.shows, token.position, token.step, token.predicts) for token in view.row] == row
        for (shows, _, step, _), line in zip(row, view.text.splitlines()[-len(row) :], strict=True):
            cells = line.split()[-len(row) :]
            for (key_shows, _, key_step, _), cell in zip(row, cells, strict=True):
                earlier = key_step < step and key_shows != "[P]"
                of_its_own = key_step == step and (key_shows == "[P]") == (shows == "[P]")
                assert (cell == "■") == (key_step == 0 or earlier or of_its_own)
        told += [word for _, _, _, word in row if word]
    assert sorted(told) == sorted(words[place] for place in hidden)  # each hidden word is predicted once
    assert relatives.step(SENTENCE, method, seed, 16).row == view.row  # beyond the last step


def test_what_a_step_cannot_show_gets_a_sentence():
    for inputs, sentence in [
        (("one two", "PAR", 0, 1), "give 3 to 16"),
        ((SENTENCE, "XX", 0, 1), "there is no method 'XX'; choose one of PAR, AR, AE"),
        ((SENTENCE, "PAR", -1, 1), "the seed is -1"),
        ((SENTENCE, "PAR", 0, 0), "the step is 0"),
    ]:
        with pytest.raises(ValueError, match=re.escape(sentence)):
            relatives.step(*inputs)


def test_hostile_words_are_shown_as_typed():
    markup = factorization_strip.render(relatives.step(HOSTILE, "AE", 0, 1).row, "row")
    assert "<img" not in markup and "&lt;" in markup


# --- models


def test_points_on_the_line_are_restored_one_by_one():
    first, second = "He was late for work.", "She found the dog in the park."
    found, about = relatives.restore(first, second)
    model = relatives.restorer()
    ends = [model.encode([sentence])[0] for sentence in (first, second)]
    assert [one.share for one in found] == sorted(relatives.POINTS) and len(found) > 3
    for one in found:
        vector = torch.stack([(1 - one.share) * a + one.share * b for a, b in zip(*ends, strict=True)])
        assert one.text == model.restore(vector[None])[0]
    assert found[0].first == 100 and found[-1].second == 100  # these two come back whole
    assert "192 numbers" in about[-1]
    (alone,), _ = relatives.restore(first)
    assert alone.text == found[0].text and alone.second is None


def test_what_the_restorer_does_not_know_is_said():
    _, about = relatives.restore("The zyzzyva ran home.")
    assert "lost on the way in: “zyzzyva”" in about[0]
    _, about = relatives.restore("The dog ran home and the cat ran home and the girl ran.")
    assert "has 14 words and marks. The model has learnt from 4 to 9" in about[0]


@pytest.mark.parametrize("name", relatives.PREFIX_MODELS)
def test_a_prefix_is_gone_on_with_word_by_word(name):
    """Greedily, by a loop over whole passes, the mask written out by its rule."""
    writer = relatives.prefix_writer(name)
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
    found, _ = relatives.go_on("Tom found a small")
    pieces = found[relatives.PREFIX_MODELS[name]]
    assert [piece.kind for piece in pieces] == ["context", "generated"]
    assert pieces[1].text == (demo.written(writer.tokenizer, row[count:]) or "(the end of the story)")


def test_prefixes_that_cannot_be_gone_on_with_get_a_sentence():
    for inputs, sentence in [
        (("",), "the prefix is empty"),
        (("a " * 30,), "so give 1 to 22"),
        (("a", 9), "temperature"),
    ]:
        with pytest.raises(ValueError, match=re.escape(sentence)):
            relatives.go_on(*inputs)


def test_the_page_says_what_was_measured():
    assert re.search(r"R-L \d\d\. Of sentences of any length", relatives.restorer_measured())
    assert all(re.fullmatch(r"\d\.\d\d", cell) for row in relatives.prefix_measured() for cell in row[1:])


def test_a_model_that_is_missing_gets_a_sentence():
    def load():
        return demo.load_restorer(demo.FOLDER / "nowhere")

    with pytest.raises(ValueError, match="makes it in minutes"):
        relatives.loaded(load)
    assert limits.RELATIVES_WORDS < 24  # a mask of more has no glyphs
