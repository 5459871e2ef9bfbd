"""The widgets, driven from Python as a browser would drive them: a control's value is set, and the picture follows."""

import math
import os
import re
import threading

import ipywidgets
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from magnet_lab import widgets
from magnet_lab.training import recipe as recipes
from magnet_lab.training.loop import Trainer
from magnet_lab.viz.overview import example
from magnet_lab.viz.picture import Picture
from magnet_lab.widgets import explore, live
from magnet_lab.widgets.controls import slider

TOKENS = ["John", " was", " lifting", " there", "."]
TEXT = "Tom had a red ball. One day he lost it and was very sad."


def root(n: int) -> Picture:
    return Picture(Figure(), str(math.sqrt(n)))  # a ValueError below 0


def test_the_picture_follows_the_control():
    explorer = explore(root, n=slider("n", 4, -9, 9))
    assert repr(explorer) == "2.0"
    explorer.controls["n"].value = 9
    assert repr(explorer) == "3.0" and explorer.message.value == ""


def test_a_value_that_makes_no_picture_is_one_sentence_and_the_last_picture_stays():
    explorer = explore(root, n=slider("n", 4, -9, 9))
    explorer.controls["n"].value = -1
    assert repr(explorer) == "2.0" and explorer.message.value
    explorer.controls["n"].value = 1
    assert repr(explorer) == "1.0" and explorer.message.value == ""


@pytest.mark.parametrize("somebody", [False, True])
def test_the_picture_comes_first_and_controls_only_where_somebody_is(monkeypatch, somebody):
    shown = []
    monkeypatch.setattr("magnet_lab.widgets.controls.display", lambda thing, **_: shown.append(thing))
    monkeypatch.setattr("magnet_lab.widgets.controls.has_front_end", lambda: somebody)
    explorer = explore(root, n=slider("n", 4, -9, 9))
    explorer._ipython_display_()
    assert shown[0] is explorer.picture
    assert [type(thing) for thing in shown[1:]] == ([ipywidgets.VBox] if somebody else [])
    if somebody:
        assert shown[1].children == (explorer.controls["n"], explorer.message)


def test_outside_a_notebook_there_is_nobody():
    assert not live.has_front_end()


def shown_mask(explorer) -> np.ndarray:
    return np.asarray(explorer.picture.figure.axes[0].images[0].get_array())


def test_mask_explorer():
    explorer = widgets.mask_explorer(TOKENS)
    hand = np.array([[1, 0, 0, 1, 1], [1, 1, 0, 1, 1], [1, 1, 1, 1, 1], [1, 0, 0, 1, 1], [1, 0, 0, 1, 1]])
    assert (shown_mask(explorer) == hand).all()
    explorer.controls["layers"].value = 4
    assert (shown_mask(explorer) == hand).all()  # nothing leaks at any depth
    explorer.controls["leak"].value = True
    assert (shown_mask(explorer)[1] == [1, 1, 2, 1, 1]).all()  # "was" hears of "lifting" through the context
    explorer.controls["leak"].value = False
    explorer.controls["token"].value = 2
    assert explorer.picture.text.endswith("token 2 sees 0–4")
    explorer.controls["mode"].value = "causal"
    assert (shown_mask(explorer) == np.tri(5)).all()
    explorer.controls["mode"].value = "prefix"
    explorer.controls["span"].value = (3, 4)
    assert (shown_mask(explorer) == np.maximum(np.tri(5), [1, 1, 1, 0, 0])).all()


def test_objective_stepper(tiny_lab):
    explorer = widgets.objective_stepper(tiny_lab, TEXT, positive="Tom lost his ball.", seed=3)
    view, position = explorer.controls["view"], explorer.controls["position"]
    made = example(tiny_lab.tokenizer, TEXT, seed=3, positive="Tom lost his ball.")
    hidden = int(made.views.selected[0].nonzero()[0])
    assert position.value == hidden - 1  # it opens at the first thing that is asked
    words = explorer.picture.text.splitlines()
    assert words[0] == "xᵐ" and words[2].startswith(f"MNTP: output {hidden - 1} is asked for token {hidden}, ")

    # The loss, from transformers' own model and a mask written as a loop.
    spans = made.views.span_ids[0].tolist()
    allowed = [[s == 0 or (s == o and k <= q) for k, s in enumerate(spans)] for q, o in enumerate(spans)]
    with torch.no_grad():
        scores = tiny_lab.model(input_ids=made.views.input_ids, attention_mask=torch.tensor([[allowed]])).logits[0]
    loss = -scores[hidden - 1].log_softmax(-1)[made.ids[0, hidden]]
    assert f"{loss:.3f} nats" in words[2]
    assert sum(line.endswith("the true token") for line in words) == 1

    view.value = "x"
    position.value = position.max
    assert "SSCL reads the vector of this output" in explorer.picture.text
    last = made.x.ids
    with torch.no_grad():
        shares = tiny_lab.model(
            input_ids=torch.tensor([last]), attention_mask=torch.ones(1, 1, len(last), len(last), dtype=torch.bool)
        ).logits[0, -1].softmax(-1)  # fmt: skip
    bars = explorer.picture.figure.axes[0].child_axes[0].patches
    assert [bar.get_width() for bar in bars] == pytest.approx(shares.topk(6).values.tolist(), rel=1e-3)


def test_loss_mixer(tiny_lab):
    explorer = widgets.loss_mixer(tiny_lab, [TEXT, "The cat slept in the warm sun all day."])
    parts = [bar.get_width() for bar in explorer.picture.figure.axes[0].patches]
    explorer.controls["mntp_weight"].value = 2.0
    explorer.controls["sscl_weight"].value = 0.0
    doubled = [bar.get_width() for bar in explorer.picture.figure.axes[0].patches]
    assert doubled == pytest.approx([2 * parts[0], 0, parts[2]])
    own = []
    for temperature in (1.0, 0.01):
        explorer.controls["temperature"].value = temperature
        own.append(np.asarray(explorer.picture.figure.axes[1].images[0].get_array()).max(axis=1).mean())
    assert own[0] < own[1]  # a lower temperature chooses more sharply
    with pytest.raises(ValueError, match="give at least two"):
        widgets.loss_mixer(tiny_lab, [TEXT])


def test_infill_playground(tiny_lab):
    explorer = widgets.infill_playground(tiny_lab, "Tom had [blank:3] ball.")
    wanted = tiny_lab.infill("Tom had [blank:3] ball.", num_candidates=3).candidates
    assert explorer.picture.text.splitlines()[2:] == [
        f"{number}  {each.score:.2f}  {each.text}" for number, each in enumerate(wanted, start=1)
    ]
    shaded = re.findall("⟨(.*?)⟩", explorer.picture.text.splitlines()[1])
    assert shaded == [f"{math.exp(log_prob):.2f}" for log_prob in wanted[0].spans[0].log_probs]
    explorer.controls["text"].value = "no gap here"
    assert "the text has no blank" in explorer.message.value
    explorer.controls["text"].value = "A [blank:2] and a [blank:2]."
    assert explorer.message.value == "" and explorer.picture.text.splitlines()[1].count("⟨") == 4


def test_embedding_map(tiny_lab):
    sentences = ["The dog ran.", "A puppy ran.", "It rained."]
    explorer = widgets.embedding_map(tiny_lab, sentences)
    explorer.controls["picture"].value = "similarity"
    explorer.controls["pooling"].value = "mean"
    vectors = tiny_lab.encode(sentences, pooling="mean").numpy()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.asarray(explorer.picture.figure.axes[0].images[0].get_array()) == pytest.approx(unit @ unit.T, abs=1e-5)
    explorer.controls["sentences"].value = "alone"
    assert explorer.message.value == "write at least two sentences, one a line"


def test_controls_that_run_a_model_wait_until_they_are_let_go(tiny_lab):
    for explorer in (
        widgets.infill_playground(tiny_lab, "Tom had [blank:2] ball."),
        widgets.objective_stepper(tiny_lab, TEXT),
        widgets.embedding_map(tiny_lab, ["a dog", "a cat"]),
    ):
        for control in explorer.controls.values():
            assert control.description
            assert not getattr(control, "continuous_update", False)


def losses(count: int, closed: list, gate: threading.Event | None = None):
    try:
        for step in range(count):
            if gate:
                gate.wait(10)
            yield {"mntp": 3 - step / count} | ({"sscl": 1.0} if step else {})
    finally:
        closed.append(True)


def test_training_without_a_front_end_runs_to_its_end(capsys):
    closed = []
    training = widgets.live_training(losses(5, closed), total=5)
    assert len(training.history) == 5 and closed and not training.running
    assert "5/5" in capsys.readouterr().err  # a progress bar
    mntp, sscl = training.picture.figure.axes[0].lines
    assert mntp.get_ydata().tolist() == pytest.approx([3 - step / 5 for step in range(5)])
    assert np.isnan(sscl.get_ydata()).tolist() == [True] + [False] * 4


def test_the_button_stops_a_training_between_two_steps(monkeypatch):
    monkeypatch.setattr(live, "has_front_end", lambda: True)
    closed, gate = [], threading.Event()
    training = widgets.live_training(losses(50, closed, gate))
    assert training.running and not training.history  # the cell is done while the training waits
    training._button.click()
    gate.set()
    training.wait()
    assert not training.running and closed and training._button.disabled and len(training.history) == 1


def test_what_ends_a_training_is_said_and_raised(monkeypatch):
    def breaks():
        yield {"mntp": 1.0}
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(live, "has_front_end", lambda: True)
    training = widgets.live_training(breaks())
    with pytest.raises(RuntimeError, match="the disk is full"):
        training.wait()
    assert "the disk is full" in training._status.value and len(training.history) == 1


@pytest.fixture
def trainer(tmp_path, monkeypatch):
    """Makes trainers of three short steps on the bundled model, into a folder."""
    monkeypatch.setenv("MAGNET_LAB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "stories.txt").write_text(
        "Tom had a red ball. He lost it in the park.\nA girl found it. They played.\n"
    )
    text = f"""
model: tiny
corpus: {{paths: ["{tmp_path}/stories.txt"], pack: false}}
phases: [{{steps: 3, mntp: 1, msg: 1}}]
spans: {{shortest: 2, longest: 4}}
lora: {{r: 4, alpha: 8}}
batch: 2
length: 24
"""
    return lambda folder: Trainer(recipes.parse(text), tmp_path / folder)


def test_a_stopped_trainer_can_be_run_to_its_end(tmp_path, trainer):
    """The steps are the trainer's own, and what was stopped goes on as if it had not been."""
    whole = trainer("whole")
    expected = [whole.step(number) for number in range(3)]
    stopped = trainer("stopped")
    steps = stopped.steps(stopped.resume())
    got = [next(steps), next(steps)]
    steps.close()
    assert [path.name for path in (tmp_path / "stopped").glob("checkpoint-*")] == ["checkpoint-000002"]
    training = widgets.live_training(trainer("stopped"))
    assert [*got, *training.history] == [pytest.approx(losses, rel=1e-4) for losses in expected]
    trainer("stopped").run()
    assert (tmp_path / "stopped" / "adapter_model.safetensors").is_file()


CELL = """
from magnet_lab import widgets
explorer = widgets.mask_explorer(["a", " b", " c"])
explorer
"""


@pytest.mark.slow
def test_in_a_kernel():
    """A program that runs cells, as nbclient does, allows no questions and gets the picture alone. A front end gets the
    controls too, and the picture that it has is drawn anew when one is moved."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", env=os.environ | {"OMP_NUM_THREADS": "1"})

    def run(code: str, somebody: bool) -> list[tuple[str, dict]]:
        messages = []
        options = {"output_hook": messages.append, "stdin_hook": lambda _: None, "timeout": 120}
        client.execute_interactive(code, allow_stdin=somebody, **options)
        return [(each["msg_type"], each["content"]) for each in messages if "display" in each["msg_type"]]

    try:
        saved, live = run(CELL, somebody=False), run(CELL, somebody=True)
        moved = run("explorer.controls['mode'].value = 'causal'", somebody=True)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    for shown in (saved, live):
        assert shown[0][0] == "display_data" and shown[0][1]["data"].keys() == {"image/png", "text/plain"}
    views = ["application/vnd.jupyter.widget-view+json" in content["data"] for _, content in (*saved[1:], *live[1:])]
    assert len(saved) == 1 and views == [True]
    kinds = [kind for kind, _ in moved]
    assert kinds == ["update_display_data"]
    assert moved[0][1]["transient"]["display_id"] == live[0][1]["transient"]["display_id"]
    assert moved[0][1]["data"]["text/plain"].splitlines()[2].split() == ["0", "[a]", "■", "·", "·"]
