"""What the page of continuations does: who writes what, and what of it counts as said before."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnet_lab.app import limits
from magnet_lab.app.components import continuations
from magnet_lab.app.handlers import generate
from magnet_lab.app.handlers.generate import Continuation, repeats
from magnet_lab.baselines import MaskFilling
from magnet_lab.evaluation import reproduce
from magnet_lab.evaluation.experiment import Figure, Result

PREFIX = "Tom had a big red ball that he loved."
HOSTILE = "<s></s><img src=x onerror=alert(1)> ${alert(1)} {{x}} \u202e 😀"


# --- what is repeated


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("one two three one two three", [("one two three one two three", "new")]),  # no run of four comes twice
        ("a b c d x a b c d y", [("a b c d x ", "new"), ("a b c d", "run"), (" y", "new")]),
        ("a b c d e x A B  c d e", [("a b c d e x ", "new"), ("A B  c d e", "run")]),  # two runs that overlap
        ("He ran. She sat. he ran. Ok.", [("He ran. She sat. ", "new"), ("he ran.", "sentence"), (" Ok.", "new")]),
        ("The dog ran home. The dog ran home.", [("The dog ran home. ", "new"), ("The dog ran home.", "sentence")]),
    ],
)
def test_what_was_said_before_is_marked(text, pieces):
    assert [(piece.text, piece.kind) for piece in repeats(text)] == pieces


@given(st.lists(st.sampled_from(["a", "b", "c", "A", "a.", "b!"]), max_size=24).map(" ".join))
def test_marks_are_what_the_measures_count(text):
    """Word by word, by looking back through the whole text for every run and every sentence."""
    words = list(re.finditer(r"\S+", text))
    said = [word[0].lower() for word in words]
    runs = set()
    for start in range(len(said) - 3):
        if any(said[other : other + 4] == said[start : start + 4] for other in range(start)):
            runs |= {start, start + 1, start + 2, start + 3}
    sentences = [[]]
    for place, word in enumerate(words):
        sentences[-1].append(place)
        if word[0][-1] in ".!":
            sentences.append([])
    sentences = [tuple(sentence) for sentence in sentences if sentence]
    again = [
        sentence
        for number, sentence in enumerate(sentences)
        if any([said[p] for p in sentence] == [said[p] for p in other] for other in sentences[:number])
    ]
    expected = {place: "run" for place in runs} | {place: "sentence" for sentence in again for place in sentence}
    found, position = {}, 0
    for piece in repeats(text):
        for place, word in enumerate(words):
            if position <= word.start() < position + len(piece.text) and piece.kind != "new":
                found[place] = piece.kind
        position += len(piece.text)
    assert position == len(text) and found == expected
    one = Continuation("base", text)
    if len(said) > 3:
        starts = [s for s in range(len(said) - 3) if any(said[o : o + 4] == said[s : s + 4] for o in range(s))]
        assert one.rep_4 == pytest.approx(len(starts) / (len(said) - 3))
        assert one.rep_sen == pytest.approx(len(again) / len(sentences))
        assert f"Of its {len(said) - 3} runs of four words, {len(starts)} were" in one.sentence
        assert f"of its {len(sentences)} sentence(s), {len(again)} (" in one.sentence


@given(st.text(max_size=80))
def test_pieces_joined_are_the_text(text):
    assert "".join(piece.text for piece in repeats(text)) == text


def test_too_little_repeats_nothing():
    assert "Too little" in Continuation("base", "Oh no.").sentence


def test_repetitions_have_marks_in_plain_text():
    assert Continuation("base", "a b c d x a b c d. Ok. a b c d Ok.").marked == "a b c d x a b c d. Ok. [a b c d] Ok."
    assert Continuation("base", "Ok. No. Ok.").marked == "Ok. No. ⟦Ok.⟧"


# --- writing


def test_who_can_write():
    assert generate.systems("tiny") == ["base", "magnet", "llm2vec", "mntp", "mask filling"]
    assert generate.systems("llama-2-7b") == ["base"]  # nobody has learned to fill masks


def test_each_writes_what_it_writes_alone(tiny_lab):
    views = list(generate.go_on(tiny_lab, PREFIX, ["mask filling", "base", "magnet"], tokens=12))
    last = views[-1]
    assert [one.system for one in last] == ["base", "magnet", "mask filling"] and all(one.done for one in last)
    assert last[0].text == tiny_lab.generate(PREFIX, max_new_tokens=12)
    assert last[1].text == tiny_lab.use("magnet").generate(PREFIX, max_new_tokens=12)
    assert last[2].text == MaskFilling(tiny_lab, adapter="mntp").generate(PREFIX, max_new_tokens=12)
    assert len({one.text for one in last}) == 3
    assert len(views) > 6 and not any(one.done for one in views[0])
    assert views[0][1].text == ""  # one after the other


def test_filling_masks_stops_where_it_is_short(tiny_lab, monkeypatch):
    monkeypatch.setattr(limits, "MASK_FILLING_TOKENS", 3)
    (one,) = list(generate.go_on(tiny_lab, PREFIX, ["mask filling"], tokens=20))[-1]
    assert one.text == MaskFilling(tiny_lab, adapter="mntp").generate(PREFIX, max_new_tokens=3)


def test_a_seed_repeats_a_draw(tiny_lab):
    draws = [list(generate.go_on(tiny_lab, PREFIX, ["base", "mask filling"], 8, 1.5, seed))[-1] for seed in (7, 7, 8)]
    assert draws[0] == draws[1]
    assert all(first.text != other.text for first, other in zip(draws[0], draws[2], strict=True))


def test_closing_ends_the_work(tiny_lab, monkeypatch):
    closed, stream = [], tiny_lab.generate(PREFIX, stream=True)

    def watched(*_, **__):
        try:
            yield from stream
        finally:
            closed.append(True)

    monkeypatch.setattr("magnet_lab.model.Magnet.generate", watched)
    steps = generate.go_on(tiny_lab, PREFIX, ["base"])
    next(steps)
    steps.close()
    stream.close()
    assert closed == [True]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"prefix": ""}, "the beginning is empty"),
        ({"prefix": "word " * 10_000}, "at most 2,000"),
        ({"chosen": []}, "tick at least one"),
        ({"chosen": ["../../etc"]}, "cannot write with tiny; choose from base, magnet, llm2vec, mntp, mask filling"),
        ({"chosen": ["echo"]}, "'echo' cannot write with tiny"),
        ({"tokens": 0}, "number of tokens"),
        ({"tokens": 10**9}, "number of tokens"),
        ({"tokens": 1.5}, "number of tokens"),
        ({"temperature": math.nan}, "the temperature"),
        ({"seed": -1}, "the seed"),
    ],
)
def test_what_cannot_be_gone_on_with_gets_a_sentence(tiny_lab, change, sentence):
    asked = {"prefix": PREFIX, "chosen": ["base"], "tokens": 8} | change
    with pytest.raises(ValueError, match=re.escape(sentence)):
        next(generate.go_on(tiny_lab, **asked))


def test_hostile_beginnings_are_shown_as_typed(tiny_lab):
    view = list(generate.go_on(tiny_lab, HOSTILE, ["base"], tokens=8))[-1]
    view.append(Continuation("magnet", f"{HOSTILE} {HOSTILE}", done=True))
    markup = continuations.render(HOSTILE, view)
    assert "<img" not in markup and "<s>" not in markup and "\u202e" not in markup
    assert "again:" in markup  # the second time counts


def test_a_repeated_sentence_is_said_aloud():
    markup = continuations.render("", [Continuation("base", "Ok. Ok.", done=True)])
    assert re.search(r'<mark class="token masked"><span class="aloud">\[sentence again: </span>Ok\.', markup)


# --- measured


def test_without_a_measurement_the_papers_numbers_stand_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(reproduce, "SHIPPED", tmp_path)
    found = {one.id: one for one in generate.measured("tiny")}["figure5"]
    assert found.figure is None and "magnet-lab reproduce figure5" in found.sentence
    assert ["MAGNET (paper)", "0.0151", "0.205", "0.0737", "0.257"] in found.rows


def test_a_measurement_that_ships_is_shown_beside_the_paper(monkeypatch, tmp_path):
    monkeypatch.setattr(reproduce, "SHIPPED", tmp_path)
    rows = {
        "base": {"Wikitext Rep-4": Figure(0.25, 0.2, 0.3, 64)},
        "MAGNET": {"Wikitext Rep-4": Figure(0.5, 0.4, 0.6, 64)},
    }
    made = Result("figure5", "tiny", "samples", False, 0, "a machine", {}, None, rows)
    made.save(tmp_path / "tiny" / "figure5.json")
    found = {one.id: one for one in generate.measured("tiny")}["figure5"]
    column = found.columns.index("Wikitext Rep-4")
    assert [row[column] for row in found.rows] == ["0.25 (0.2–0.3)", "0.5 (0.4–0.6)", "0.0601", "0.475", "0.205"]
    assert found.figure is not None and "0.25" in found.twin and "samples" in found.sentence
