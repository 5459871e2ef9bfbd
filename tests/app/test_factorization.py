"""The page's factorization, each step against the rule in words."""

import re

import pytest

from magnet_lab.app.components import factorization_strip
from magnet_lab.app.handlers import factorization

SENTENCE = "The girl lost her red ball in the park."
HOSTILE = "<s><img src=x> ${x}"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("method", ["PAR", "AR", "AE"])
def test_each_step_shows_what_the_rule_lets_be_seen(method, seed, monkeypatch):
    """The rule in words, token by token, against the mask as it is written out."""
    monkeypatch.setattr("magnet_lab.viz.masks.mask_figure", lambda *_: None)  # a picture takes half a second
    words = [*SENTENCE[:-1].split(), "."]
    first = factorization.step(SENTENCE, method, seed, 1)
    hidden = sorted(place for block in first.order for place in block)
    assert first.steps == (1 if method == "AE" else len(first.order))
    assert method != "AR" or all(len(block) == 1 for block in first.order)
    told = []
    for number in range(1, first.steps + 1):
        view = factorization.step(SENTENCE, method, seed, number)
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
    assert factorization.step(SENTENCE, method, seed, 16).row == view.row  # beyond the last step


def test_what_a_step_cannot_show_gets_a_sentence():
    for inputs, sentence in [
        (("one two", "PAR", 0, 1), "give 3 to 16"),
        ((SENTENCE, "XX", 0, 1), "there is no method 'XX'; choose one of PAR, AR, AE"),
        ((SENTENCE, "PAR", -1, 1), "the seed is -1"),
        ((SENTENCE, "PAR", 0, 0), "the step is 0"),
    ]:
        with pytest.raises(ValueError, match=re.escape(sentence)):
            factorization.step(*inputs)


def test_hostile_words_are_shown_as_typed():
    markup = factorization_strip.render(factorization.step(HOSTILE, "AE", 0, 1).row, "row")
    assert "<img" not in markup and "&lt;" in markup
