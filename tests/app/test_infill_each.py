"""Every system on one story: who writes what, who cannot, what is shaded, and that a stop ends it."""

import math
import threading
import warnings

import pytest

from magnet_lab.app.handlers import infill, stoppable
from magnet_lab.baselines import BASELINES
from magnet_lab.infilling import Candidate, Span

STORY = "Tom went to the park. [blank] He was very sad."


def test_the_systems_are_those_of_the_paper_and_the_models_adapters():
    asked = {name for name in BASELINES if name.split(",")[0] in ("unidirectional", "zero-shot", "five-shot")}
    assert set(infill.ASKED.values()) == asked and len(asked) == 6
    assert not any("," in name for name in infill.systems("small"))  # what a link puts between them
    assert infill.systems("llama-2-7b") == [*infill.ASKED]
    assert infill.systems("small") == infill.systems("tiny") == [*infill.ASKED, "magnet", "llm2vec"]
    assert "LLM2Vec" in infill.absent("llama-2-7b") and infill.absent("tiny") == ""


def test_each_fills_the_story_in_its_turn(tiny_lab):
    chosen = ["magnet", "unidirectional", "contextual"]
    views = list(infill.fill_by_each(tiny_lab, STORY, chosen))
    last = views[-1]
    assert [one.system for one in last] == ["unidirectional", "contextual", "magnet"]
    results = [BASELINES[name](tiny_lab).infill(STORY) for name in ("unidirectional", "zero-shot, contextual")]
    results.append(tiny_lab.use("magnet").infill(STORY))
    for one, result in zip(last, results, strict=True):
        assert "".join(text for text, _ in one.shades) == result.text and one.done
        assert f"perplexity {math.exp(-result.score):.3g}" in one.sentence
        assert f"\n{one.shades[0][0]} " in infill.as_text([one]) and "⟨" in infill.as_text([one])
    # One after the other: nobody begins before the one on the left is done.
    for view in views:
        begun = [bool(one.done or one.sentence.startswith("Writing")) for one in view]
        assert begun == sorted(begun, reverse=True)
        assert not any(one.sentence.startswith("Writing") and not all(a.done for a in view[:place])
                       for place, one in enumerate(view))  # fmt: skip


def test_a_system_that_cannot_says_why_and_the_next_has_its_turn(tiny_lab):
    *_, last = infill.fill_by_each(tiny_lab, "She ate [blank:2] for [blank:2].", ["line-by-line", "magnet"])
    assert last[0].done and "the text has 2 blanks" in last[0].sentence and not last[0].shades
    assert last[1].done and last[1].shades


@pytest.mark.parametrize(
    ("story", "chosen", "temperature", "sentence"),
    [
        ("", ["magnet"], 0, "the story is empty"),
        (STORY, [], 0, "tick at least one"),
        (STORY, ["mntp"], 0, "with tiny; choose from"),
        (STORY, ["<b>"], 0, "cannot fill blanks"),
        (STORY, ["magnet"], math.nan, "the temperature"),
    ],
)
def test_what_cannot_be_filled_gets_a_sentence(tiny_lab, story, chosen, temperature, sentence):
    with pytest.raises(ValueError, match=sentence):
        next(infill.fill_by_each(tiny_lab, story, chosen, temperature))


def test_a_seed_repeats_what_all_write(tiny_lab):
    texts = []
    for seed in (3, 3, 4):
        *_, last = infill.fill_by_each(tiny_lab, STORY, ["unidirectional"], 1.5, seed)
        texts.append(last[0].shades)
    assert texts[0] == texts[1] != texts[2]


# --- shades


def test_a_fill_is_shaded_by_the_probabilities_of_its_tokens():
    span = Span(" He ran.", (1, 2, 3), (" He", " ran", "."), (math.log(0.5), math.log(0.25), 0.0))
    shades = infill.shade("Tom came. [blank] Bye.", Candidate("", (span,)))
    assert [text for text, _ in shades] == ["Tom came.", " He", " ran", ".", " Bye."]
    assert [p for _, p in shades] == [None, pytest.approx(0.5), pytest.approx(0.25), pytest.approx(1.0), None]


def test_of_a_token_that_says_more_than_the_fill_only_the_fill_is_shown():
    span = Span("He ran.", (1, 2, 3), (' "He', " ran", '."'), (0.0, 0.0, 0.0))
    assert [text for text, _ in infill.shade("[blank] Bye.", Candidate("", (span,)))] == ["He", " ran", ".", " Bye."]


def test_a_space_that_only_the_blank_has_goes_to_the_first_token():
    span = Span(" He ran.", (1, 2, 3), ("He", " ran", ".\n"), (0.0, math.log(0.5), 0.0))
    shades = infill.shade("Tom came. [blank] Bye.", Candidate("", (span,)))
    assert shades == [("Tom came.", None), (" He", 1.0), (" ran", pytest.approx(0.5)), (".", 1.0), (" Bye.", None)]


def test_a_fill_whose_tokens_are_not_its_text_is_shaded_as_one():
    span = Span(" 😀", (1, 2), (" �", "�"), (math.log(0.5), math.log(0.125)))
    assert infill.shade("A [blank]", Candidate("", (span,)))[1] == (" 😀", pytest.approx(0.25))


def test_the_usual_fill_is_shaded_too(tiny_lab):
    *_, last = infill.infill(tiny_lab, STORY)
    best = tiny_lab.infill(STORY).candidates[0]
    assert "".join(text for text, _ in last.shades) == best.text
    written = [p for _, p in last.shades if p is not None]
    assert written == pytest.approx([math.exp(log_prob) for log_prob in best.spans[0].log_probs], abs=1e-5)


# --- stopping


def test_closing_stops_at_the_next_pass(tiny_lab):
    seen = []
    watch = tiny_lab.model.get_decoder().register_forward_hook(lambda *_: seen.append(1))
    ended = threading.Event()

    def work():
        try:
            while True:
                tiny_lab.encode(["a", "b"])
        finally:
            ended.set()

    try:
        steps = stoppable.run(tiny_lab, work)
        while next(steps) < 2:
            pass
        steps.close()
        passes = len(seen)
        assert ended.is_set() and passes >= 2
        tiny_lab.encode(["a"])  # the model is free, for everybody
        assert len(seen) == passes + 1
    finally:
        watch.remove()
    assert not tiny_lab.model.get_decoder()._forward_pre_hooks


def test_results_warnings_and_errors_come_back(tiny_lab):
    def ends(work):
        steps = stoppable.run(tiny_lab, work)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value

    def warned():
        warnings.warn("only three of five", stacklevel=1)
        return 7

    assert ends(warned) == (7, ["only three of five"])
    with pytest.raises(ValueError, match="no such thing"):
        ends(lambda: (_ for _ in ()).throw(ValueError("no such thing")))
