"""What the page of training does: what may be asked, who waits for whom, what a process tells, and what is left."""

import io
import json
import math
import re
import sys
import time
import zipfile
from pathlib import Path

import pytest
import torch

from magnet_lab import Magnet
from magnet_lab.app import limits
from magnet_lab.app.handlers import train, training, training_asked, training_line, training_view
from magnet_lab.app.handlers.training import Training
from magnet_lab.training.recipe import dump, parse

STORY = "Tom had a red ball. [blank:3] He was very sad."
NAMES = ("big", "small", "red", "old", "sad", "fast", "wet", "shy")
LINES = "\n".join(f"The {name} dog ran home to eat its food." for name in NAMES)
ASKED = {"mntp": 1, "sscl": 0, "msg": 2, "steps": 3, "lr": 1e-3, "story": STORY, "own_text": ""}


def asked(**changes):
    return training_asked.check(**ASKED | changes)


@pytest.fixture(autouse=True)
def nobody():
    """Every test begins with nobody training."""
    for visitor in list(train._kept):
        train.forget(visitor)
    train._visitors.clear()
    yield
    for visitor in list(train._kept):
        train.forget(visitor)


# --- what is asked


def test_a_recipe_says_what_was_asked():
    recipe = training_asked.recipe_of(asked())
    (phase,) = recipe.phases
    assert (phase.mntp, phase.sscl, phase.msg, phase.steps) == (1, 0, 2, 3)
    assert recipe.model == "tiny" and recipe.optimizer.lr == 1e-3 and recipe.contrast is None
    assert recipe.corpus.paths == ["plain-stories.txt"]
    with_pairs = training_asked.recipe_of(asked(sscl=9, own_text=LINES))
    assert with_pairs.contrast.paths == ["sentences.tsv"] and with_pairs.corpus.paths == ["own.txt"]
    assert parse(dump(with_pairs)) == with_pairs


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"mntp": 0, "msg": 0}, "all three λ are 0"),
        ({"mntp": -1}, "λ₁ of MNTP is -1"),
        ({"sscl": math.nan}, "λ₂ of SSCL is no number"),
        ({"msg": 1e9}, "λ₃ of MSG is 1e+09"),
        ({"steps": 0}, "the number of steps is 0"),
        ({"steps": 101}, "between 1 and 100"),
        ({"steps": 1.5}, "whole number"),
        ({"lr": 1.0}, "the learning rate is 1"),
        ({"story": ""}, "the story is empty"),
        ({"story": "no blank"}, "has no blank"),
        ({"story": "a [blank] b [blank] c"}, "give it one blank"),
        ({"story": "a [blank:900] b"}, "give it one blank, of 64 tokens at most"),
        ({"story": "word " * 100 + "[blank]"}, "at most 300"),
        ({"own_text": "one line only of some words"}, "your text has 1 line(s); give at least 8"),
        ({"own_text": LINES + "\ntoo short"}, "line 9 of your text has 2 word(s)"),
        ({"own_text": "x" * 20_001}, "at most 20,000"),
    ],
)
def test_what_cannot_be_trained_gets_a_sentence(change, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        asked(**change)


# --- a process, and what it tells

TELLS = """
import json, sys, time
def tell(**what): print(json.dumps(what), flush=True)
"""


@pytest.fixture
def trainee(monkeypatch):
    """Puts a few lines in place of the process that trains."""
    for module in (train, training):
        monkeypatch.setattr(module, "SECONDS_BETWEEN_LOOKS", 0.02)

    def put(lines: str) -> None:
        monkeypatch.setattr(training, "TRAINEE", (sys.executable, "-c", TELLS + lines))

    return put


STEPS = """
tell(begins=0)
tell(step=0, fills=["before"])
for step in (1, 2, 3): tell(step=step, losses={"mntp": 4.0 - step, "msg": 5.0 - step})
tell(step=3, fills=["He ran"])
tell(seconds=1.0)
"""


def test_what_a_process_tells_is_shown(trainee):
    trainee(STEPS)
    last = list(train.train("a", *ASKED.values()))[-1]
    assert last.history == [{"mntp": 3.0, "msg": 4.0}, {"mntp": 2.0, "msg": 3.0}, {"mntp": 1.0, "msg": 2.0}]
    assert [step for step, _ in last.samples] == [0, 3]
    assert "".join(piece.text for piece in last.samples[1][1]) == "Tom had a red ball. He ran He was very sad."
    assert not last.going and not last.can_go_on and "All 3 steps are made" in last.sentence
    text = training_view.as_text(last)
    assert (
        "After step 3\nTom had a red ball. [He ran] He was very sad." in text and "MNTP" in text and "SSCL" not in text
    )


WAITS = "tell(begins=0)\ntell(step=1, losses={'mntp': 1.0})\nsys.stdin.read()\n"


def test_stop_asks_the_process_and_waits_for_it(trainee):
    trainee(WAITS + "tell(step=2, losses={'mntp': 1.0})")
    for view in train.train("a", *ASKED.values()):
        if view.going and len(view.history) == 1:
            train.stop("a")
    assert len(view.history) == 2 and view.can_go_on and "Stopped after step 2 of 3: you stopped it" in view.sentence


def test_time_is_limited(trainee, monkeypatch):
    monkeypatch.setattr(limits, "TRAINING_SECONDS", 0.1)
    trainee(WAITS)
    last = list(train.train("a", *ASKED.values()))[-1]
    assert "Stopped after step 1 of 3: 0.1 seconds are over" in last.sentence and last.can_go_on


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("tell(problem='no room is left'); sys.exit(1)", "the training ended early: no room is left"),
        ("import os; os.kill(os.getpid(), 9)", "its process was killed"),
        ("sys.exit(3)", "its process ended with 3"),
        ("time.sleep(60)", "the training did not begin"),
    ],
)
def test_a_process_that_fails_gives_a_sentence(trainee, monkeypatch, lines, sentence):
    if "sleep" in lines:
        monkeypatch.setattr(training, "SECONDS_TO_BEGIN", 0.5)
    trainee(lines)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        list(train.train("a", *ASKED.values()))
    assert not train._line._line


def is_running(process) -> bool:
    return process.poll() is None


def begun(page):
    """A training whose first step is made: its views, the training, its folder and its process."""
    views = train.train(page, *ASKED.values())
    while not next(views).history:
        pass
    one = train._training_of(page)
    return views, one, Path(one._folder.name), one._process


def wait_until(condition, seconds=2):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


@pytest.mark.parametrize("how", ["closed", "left", "begun anew"])
def test_a_page_that_is_closed_leaves_nothing(trainee, monkeypatch, how):
    monkeypatch.setattr(limits, "TRAINING_ALONE_SECONDS", 0.2)
    trainee(WAITS)
    views, _, folder, process = begun("a")
    assert folder.is_dir() and is_running(process)
    if how == "closed":
        views.close()
        assert is_running(process)  # the page may be on its way back
    elif how == "left":
        train.leave("a")
    else:
        another = train.train("a", *ASKED.values())
        next(another)
        assert list(views) == []  # ends without a word
        another.close()
    wait_until(lambda: not folder.exists() and not is_running(process))
    wait_until(lambda: not train._line._line and not train._kept)


def test_a_page_that_is_loaded_anew_finds_its_training(trainee, monkeypatch):
    monkeypatch.setattr(limits, "TRAINING_ALONE_SECONDS", 0.2)
    trainee(WAITS)
    assert train.enter("old", "key") is None and list(train.watch("old")) == []
    views, one, folder, _ = begun("old")
    views.close()
    train.leave("old")
    assert train.enter("stranger", "another key") is None and list(train.watch("stranger")) == []
    assert train.enter("new", "key") == asked()
    time.sleep(0.4)  # nobody ends what somebody came back to
    watched = train.watch("new")
    assert next(watched).history == [{"mntp": 1.0}] and folder.is_dir()
    train.stop("stranger")
    assert not one.is_stopping
    train.stop("new")
    last = list(watched)[-1]
    assert not last.going and last.can_go_on
    assert list(train.watch("new")) == [last]  # and once more, after it has ended
    train.leave("new")
    wait_until(lambda: not folder.exists())


def test_one_of_two_pages_is_closed(trainee, monkeypatch):
    monkeypatch.setattr(limits, "TRAINING_ALONE_SECONDS", 0.05)
    trainee(WAITS)
    train.enter("one", "key")
    train.enter("two", "key")
    views, _, folder, _ = begun("one")
    views.close()
    time.sleep(0.3)
    assert folder.is_dir() and next(train.watch("two")).history


def test_a_restart_forgets_what_its_checkpoint_does_not_know(trainee):
    trainee("tell(begins=0)\nfor n in (1, 2): tell(step=n, losses={'mntp': n})\ntell(problem='x')\nsys.exit(1)")
    with pytest.raises(ValueError, match="ended early"):
        list(train.train("a", *ASKED.values()))
    trainee("tell(begins=1)\nfor n in (2, 3): tell(step=n, losses={'mntp': 10 * n})")
    assert list(train.go_on("a"))[-1].history == [{"mntp": 1}, {"mntp": 20}, {"mntp": 30}]
    with pytest.raises(ValueError, match="all 3 steps are made"):
        next(train.go_on("a"))
    with pytest.raises(ValueError, match="no training of yours"):
        next(train.go_on("b"))


# --- who waits for whom


def test_one_at_a_time_in_the_order_of_coming(trainee):
    trainee(WAITS)
    first = train.train("a", *ASKED.values())
    while not next(first).history:
        pass
    second, third = train.train("b", *ASKED.values()), train.train("c", *ASKED.values())
    assert "another visitor's is at step 1 of 3. Yours begins by itself, in" in next(second).sentence
    assert "1 more wait(s) before you" in next(third).sentence
    assert train._kept["b"]._process is None
    train.stop("b")  # has had enough of waiting
    left = list(second)[-1]
    assert "You left the line" in left.sentence and not left.going
    again = train.go_on("b")  # behind the third now
    assert "1 more wait(s) before you" in next(again).sentence
    train.stop("a")
    list(first)
    while not (view := next(third)).history:
        pass
    assert "another visitor's" not in view.sentence
    train.stop("c")
    list(third)
    while not (view := next(again)).history:
        pass
    assert view.going


def test_a_full_line_is_said(trainee, monkeypatch):
    monkeypatch.setattr(limits, "TRAININGS_WAITING", 1)
    trainee(WAITS)
    views = [train.train(visitor, *ASKED.values()) for visitor in "abc"]
    next(views[0]), next(views[1])
    with pytest.raises(ValueError, match=r"2 trainings are going on or waiting already"):
        next(views[2])
    assert list(train._kept) == ["a", "b"]
    for each in views:
        each.close()


def test_the_wait_is_no_longer_than_it_says():
    """The one in front by its own pace, everybody between by the most that a visitor may have."""
    first, second = Training(asked()), Training(asked())
    first._first_step_at = time.monotonic() - 10
    first.history.append({"mntp": 1.0})  # one step in ten seconds, two to go
    seconds = int(re.search(r"in (\d+) s at the latest", training_line.waiting([first, second]))[1])
    assert seconds == pytest.approx(20 + limits.TRAINING_SECONDS, abs=1)
    for each in (first, second):
        each.free()


def test_only_so_many_are_kept(trainee, monkeypatch):
    monkeypatch.setattr(limits, "TRAININGS_KEPT", 2)
    trainee(STEPS)
    for visitor in "abc":
        list(train.train(visitor, *ASKED.values()))
    assert list(train._kept) == ["b", "c"]


# --- the real thing


@pytest.fixture(scope="module")
def real():
    """Three steps of the real process, stopped after the first and gone on with: the last view."""
    before = torch.get_rng_state()
    inputs = ASKED | {"sscl": 1, "own_text": LINES}
    for view in train.train("real", *inputs.values()):
        if view.going and len(view.history) == 1:
            train.stop("real")
    stopped = view
    if stopped.can_go_on:
        *_, view = train.go_on("real")
    training = train._kept.pop("real")
    assert torch.equal(torch.get_rng_state(), before)  # a seeded draw of another visitor would not notice
    yield stopped, view, training
    training.free()


@pytest.mark.slow
def test_stopped_and_gone_on_with_is_one_training(real, tmp_path, monkeypatch):
    """Against the loop itself, in one go and in this process."""
    from magnet_lab.training.loop import Trainer

    stopped, last, training = real
    assert 1 <= len(stopped.history) < 3 and stopped.adapter
    monkeypatch.chdir(training._folder.name)
    monkeypatch.setenv("MAGNET_LAB_CACHE", str(tmp_path))
    reference = list(Trainer(training_asked.recipe_of(training.asked), tmp_path / "out").steps(0))
    assert len(last.history) == 3
    for made, expected in zip(last.history, reference, strict=True):
        assert made == pytest.approx(expected, rel=1e-3)
    assert last.samples[0][0] == 0 and last.samples[-1][0] == 3


@pytest.mark.slow
def test_the_adapter_is_a_plain_peft_folder(real, tmp_path, tiny_lab):
    _, last, training = real
    with zipfile.ZipFile(io.BytesIO(last.adapter)) as archive:
        assert all(name.startswith("magnet-tiny-3-steps/") for name in archive.namelist())
        archive.extractall(tmp_path)
    folder = tmp_path / "magnet-tiny-3-steps"
    lab = Magnet.from_pretrained("tiny", adapter=str(folder), device="cpu", dtype=torch.float32)
    ids = torch.tensor([[1, 2, 3]])
    assert not torch.equal(lab.model(ids).logits, tiny_lab.model(ids).logits)  # it has learnt something
    assert json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"] == "tiny"
    written = "".join(path.read_text() for path in folder.iterdir() if path.suffix in (".json", ".md"))
    assert training._folder.name not in written and "3 steps of 8 rows" in written
