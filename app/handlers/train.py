"""An adapter of `tiny` trained while somebody watches: one training at a time, each in a process and folder of its own.

The model that the other pages answer with is not touched: `trainee.py` loads its own.
"""

import contextlib
import io
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import magnet_lab as ml

from .. import limits
from . import infill

if TYPE_CHECKING:
    from magnet_lab.viz.picture import Picture

OBJECTIVES = {"mntp": "MNTP", "sscl": "SSCL", "msg": "MSG"}  # as the paper orders and writes them
TRAINEE = (sys.executable, "-P", "-m", "magnet_lab.app.trainee")
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_TO_BEGIN, SECONDS_TO_STOP = 300, 60  # of a process, before it is taken to hang


@dataclass(frozen=True)
class Asked:
    """What a visitor wants trained.

    Attributes:
        mntp, sscl, msg: λ₁, λ₂ and λ₃ of Equation 5.
        story: with blanks, filled while it learns.
        own_text: a text a line in place of the bundled stories; empty for those.
    """

    mntp: float
    sscl: float
    msg: float
    steps: int
    lr: float
    story: str
    own_text: str = ""


@dataclass(frozen=True)
class View:
    """A training as it stands.

    Attributes:
        sentence: what is going on.
        history: the losses (nats) of each step, by objective.
        samples: the step after which the story was filled, 0 before the first, and the story in pieces.
        going: whether there is more to come.
        can_go_on: whether there are steps left to make.
        adapter: the PEFT folder as a zip file, once it has stopped.
    """

    sentence: str
    history: list[dict[str, float]] = field(default_factory=list)
    samples: list[tuple[int, list[infill.Piece]]] = field(default_factory=list)
    going: bool = True
    can_go_on: bool = False
    adapter: bytes | None = None


# --- what is asked


def check(mntp, sscl, msg, steps, lr, story: str, own_text: str) -> Asked:
    """What is asked, if it can be trained.

    Raises:
        ValueError: if not.
    """
    for name, weight in zip(("λ₁ of MNTP", "λ₂ of SSCL", "λ₃ of MSG"), (mntp, sscl, msg), strict=True):
        limits.check_number(name, weight, 0, limits.LAMBDA)
    if not mntp + sscl + msg > 0:
        raise ValueError("all three λ are 0, so there is nothing to learn; give at least one of them a weight")
    limits.check_number("the number of steps", steps, 1, limits.TRAINING_STEPS, whole=True)
    limits.check_number("the learning rate", lr, limits.LOWEST_RATE, limits.HIGHEST_RATE)
    limits.check_text("the story", story, limits.SAMPLE_CHARACTERS)
    _, blanks = ml.blanks.parse(story)
    if len(blanks) > 1 or blanks[0].longest > limits.BLANK_TOKENS:
        raise ValueError(f"the story is filled many times: give it one blank, of {limits.BLANK_TOKENS} tokens at most")
    if own_text and own_text.strip():
        _check_own(own_text)
    return Asked(float(mntp), float(sscl), float(msg), int(steps), float(lr), story, own_text or "")


def _check_own(text: str) -> None:
    limits.check_text("your text", text, limits.OWN_CHARACTERS)
    lines = own_lines(text)
    if len(lines) < limits.OWN_LINES:
        raise ValueError(
            f"your text has {len(lines)} line(s); give at least {limits.OWN_LINES}, a short text on each, or none"
        )
    for number, line in enumerate(lines, start=1):
        if len(line.split()) < limits.OWN_WORDS:
            raise ValueError(
                f"line {number} of your text has {len(line.split())} word(s); at least {limits.OWN_WORDS} are needed "
                "for something to be hidden and something left"
            )


def own_lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def recipe_of(asked: Asked):
    """The recipe of a visitor's training: that of `tiny`, its batches smaller, so that a step takes a second."""
    from dataclasses import replace

    from magnet_lab.data.rows import Corpus
    from magnet_lab.training import recipe as recipes

    usual = recipes.load("tiny")
    contrast = replace(usual.contrast, batch=12, length=40)
    return replace(
        usual,
        corpus=Corpus(["own.txt"] if asked.own_text.strip() else ["plain-stories.txt"], pack=False),
        phases=[recipes.Phase(asked.steps, mntp=asked.mntp, sscl=asked.sscl, msg=asked.msg)],
        spans=replace(usual.spans, longest=24),
        contrast=contrast if asked.sscl else None,
        optimizer=replace(usual.optimizer, lr=asked.lr, warmup=min(5, asked.steps), schedule="constant"),
        batch=8,
        length=64,
        save_every=20,
        samples=[],
    )


# --- one training


class Training:
    """A visitor's training: its folder, what has come of it so far, and its process while it goes on."""

    def __init__(self, asked: Asked):
        from magnet_lab.training.recipe import dump

        self.asked = asked
        self.history: list[dict[str, float]] = []
        self.samples: list[tuple[int, list[infill.Piece]]] = []
        self.stopped_because = ""
        self.freed = False
        self._folder = tempfile.TemporaryDirectory(prefix="magnet-lab-training-", ignore_cleanup_errors=True)
        self._process: subprocess.Popen | None = None
        self._stop = threading.Event()
        self._first_step_at: float | None = None
        self._steps_before = 0
        folder = Path(self._folder.name)
        (folder / "recipe.yaml").write_text(dump(recipe_of(asked)), encoding="utf-8")
        (folder / "sample.txt").write_text(asked.story, encoding="utf-8")
        (folder / "own.txt").write_text("\n".join(own_lines(asked.own_text)), encoding="utf-8")

    @property
    def done(self) -> int:
        return len(self.history)

    @property
    def seconds_a_step(self) -> float | None:
        made = self.done - self._steps_before
        return None if self._first_step_at is None or not made else (time.monotonic() - self._first_step_at) / made

    @property
    def seconds_left(self) -> float:
        """At most, where it is not known better."""
        if self.seconds_a_step is None:
            return limits.TRAINING_SECONDS
        spent = time.monotonic() - self._first_step_at
        return max(0.0, min((self.asked.steps - self.done) * self.seconds_a_step, limits.TRAINING_SECONDS - spent))

    def work(self) -> Iterator[None]:
        """Train to the end, to a stop, or until the time is over; yields whenever there may be something new.

        Closing it ends the process at once, without a checkpoint.

        Raises:
            ValueError: with a sentence, if it cannot go on.
        """
        self.stopped_because, self._first_step_at, self._steps_before = "", None, self.done
        self._stop.clear()
        lines, folder = queue.Queue(), self._folder.name
        with (Path(folder) / "errors.txt").open("w") as errors:
            self._process = process = subprocess.Popen(
                TRAINEE,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                cwd=folder,
                env=_environment(folder),
            )
        threading.Thread(target=_read_into, args=(process.stdout, lines), daemon=True).start()
        try:
            begun, problem = time.monotonic(), ""
            while True:
                with contextlib.suppress(queue.Empty):
                    line = lines.get(timeout=SECONDS_BETWEEN_LOOKS)
                    if line is None:
                        break
                    problem = self._take(json.loads(line)) or problem
                self._watch_the_clock(begun)
                if self._stop.is_set() and not process.stdin.closed:
                    process.stdin.close()
                yield
            if process.wait() != 0 and not self.freed:
                raise ValueError(f"the training ended early: {problem or self._killed(process.returncode)}")
        finally:
            self.kill()

    def stop(self, because: str = "") -> None:
        """Let it end after the step that is being made, with a checkpoint and an adapter."""
        self.stopped_because = self.stopped_because or because
        self._stop.set()

    def kill(self) -> None:
        """End the process now, if there is one."""
        process = self._process
        if process is None:
            return
        process.kill()
        process.wait()
        with contextlib.suppress(OSError):  # what was not sent will not be read
            process.stdin.close()
        self._process = None

    def free(self) -> None:
        """Leave nothing behind."""
        self.freed = True
        self.kill()
        self._folder.cleanup()

    def adapter(self) -> bytes | None:
        """The PEFT folder as a zip file, made anew at every end."""
        folder = Path(self._folder.name) / "adapter"
        if not folder.is_dir():
            return None
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.iterdir()):
                archive.write(path, f"magnet-tiny-{self.done}-steps/{path.name}")
        return buffer.getvalue()

    def view(self, sentence: str, *, going: bool = True) -> View:
        ended = {} if going else {"can_go_on": self.done < self.asked.steps, "adapter": self.adapter()}
        return View(sentence, list(self.history), list(self.samples), going, **ended)

    def _take(self, told: Mapping) -> str:
        """Keep what the process tells; returns what it says is wrong."""
        if "begins" in told:  # a process that was ended at once may have told of more than its checkpoint knows
            self._steps_before = told["begins"]
            del self.history[told["begins"] :]
            self.samples = [sample for sample in self.samples if sample[0] <= told["begins"]]
            self._first_step_at = time.monotonic()
        elif "losses" in told:
            self.history.append(told["losses"])
        elif "fills" in told:
            self.samples.append((told["step"], infill.fill(self.asked.story, told["fills"])))
        return told.get("problem", "")

    def _watch_the_clock(self, begun: float) -> None:
        now = time.monotonic()
        if self._first_step_at is None and now - begun > SECONDS_TO_BEGIN:
            raise ValueError("the training did not begin: the machine is too busy; try again later")
        if self._first_step_at is not None and now - self._first_step_at > limits.TRAINING_SECONDS:
            self.stop(f"{limits.TRAINING_SECONDS:g} seconds are over, which is what one visitor has at a time")
            if now - self._first_step_at > limits.TRAINING_SECONDS + SECONDS_TO_STOP:
                raise ValueError("the training did not stop when it was asked to, so it was ended; begin a new one")

    def _killed(self, code: int) -> str:
        killed = code == -getattr(signal, "SIGKILL", 9)
        return "its process was killed, perhaps for want of memory" if killed else f"its process ended with {code}"


def _read_into(stream, lines: queue.Queue) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _environment(folder: str) -> dict[str, str]:
    """What the process knows of the world: its own cache, which goes with its folder, and no threads for others."""
    return {**os.environ, "MAGNET_LAB_CACHE": str(Path(folder) / "cache"), "OMP_NUM_THREADS": "1"}


# --- all visitors' trainings


class Turns:
    """Who trains, and who waits, in the order of coming."""

    def __init__(self):
        self._line: list[Training] = []
        self._lock = threading.Lock()

    def join(self, training: Training) -> None:
        with self._lock:
            if len(self._line) > limits.TRAININGS_WAITING:
                raise ValueError(
                    f"{len(self._line)} trainings are going on or waiting already, one after the other; "
                    "try again in a few minutes"
                )
            self._line.append(training)

    def leave(self, training: Training) -> None:
        with self._lock, contextlib.suppress(ValueError):
            self._line.remove(training)

    def before(self, training: Training) -> list[Training]:
        """Whose turn comes first; empty when it is this one's."""
        with self._lock:
            return self._line[: self._line.index(training)] if training in self._line else []


_turns = Turns()
_kept: dict[str, Training] = {}  # by visitor
_lock = threading.Lock()


def train(visitor: str, *inputs) -> Iterator[View]:
    """Begin a visitor's training, in place of an earlier one of theirs; a view whenever there may be something new.

    Args:
        visitor: the key of their visit.
        *inputs: as `check` takes them.

    Raises:
        ValueError: if it cannot be had, or has ended against its will.
    """
    training = Training(check(*inputs))
    forget(visitor)
    _keep(visitor, training)
    yield from _in_turn(visitor, training)


def go_on(visitor: str) -> Iterator[View]:
    """Go on with the training that a visitor has stopped; errors as `train`."""
    training = _kept.get(visitor)
    if training is None:
        raise ValueError("there is no training of yours to go on with; begin one")
    if training.done >= training.asked.steps:
        raise ValueError(f"all {training.asked.steps} steps are made; begin a new training with more of them")
    yield from _in_turn(visitor, training)


def stop(visitor: str) -> None:
    """Stop a visitor's training after the step that is being made."""
    if training := _kept.get(visitor):
        training.stop("you stopped it")


def forget(visitor: str) -> None:
    """End a visitor's training at once, if there is one, and delete its folder: their page is closed."""
    with _lock:
        training = _kept.pop(visitor, None)
    if training is not None:
        training.free()
        _turns.leave(training)


def _keep(visitor: str, training: Training) -> None:
    with _lock:
        idle = [name for name, kept in _kept.items() if kept._process is None]
        _kept[visitor] = training
        surplus = idle[: max(0, len(_kept) - limits.TRAININGS_KEPT)]
    for oldest in surplus:
        forget(oldest)


def _in_turn(visitor: str, training: Training) -> Iterator[View]:
    _turns.join(training)
    try:
        while others := _turns.before(training):
            if training._stop.is_set():
                yield training.view("You left the line; begin again when you like.", going=False)
                return
            yield training.view(waiting(others))
            time.sleep(2 * SECONDS_BETWEEN_LOOKS)
        yield training.view("A process of its own begins, and loads tiny: some seconds.")
        with contextlib.closing(training.work()) as work:
            for _ in work:
                yield training.view(going(training))
        if training.freed:  # a newer one of the same visitor has taken its place
            return
        yield training.view(ended(training), going=False)
    except GeneratorExit:  # the page is closed
        if _kept.get(visitor) is training:
            forget(visitor)
        raise
    finally:
        _turns.leave(training)


# --- in words and pictures


def waiting(others: Sequence[Training]) -> str:
    """Why somebody waits, and how long at most."""
    first, *more = others
    seconds = first.seconds_left + len(more) * limits.TRAINING_SECONDS
    behind = f" {len(more)} more wait(s) before you." if more else ""
    return (
        "One training at a time, so that the other pages stay quick: another visitor's is at step "
        f"{first.done} of {first.asked.steps}.{behind} Yours begins by itself, in {seconds:.0f} s at the latest."
    )


def going(training: Training) -> str:
    if training._stop.is_set():
        return "Stopping after this step, and writing the adapter."
    if training.seconds_a_step is None:
        return "tiny is being loaded, and the story filled before anything is learnt."
    return f"Step {training.done} of {training.asked.steps}; {training.seconds_left:.0f} s to go at most."


def ended(training: Training) -> str:
    done, steps = training.done, training.asked.steps
    if done >= steps:
        return f"All {steps} steps are made. The adapter can be downloaded."
    why = training.stopped_because or "it was stopped"
    return f"Stopped after step {done} of {steps}: {why}. The adapter can be downloaded, or the training gone on with."


def picture(history: Sequence[Mapping[str, float]]) -> "Picture | None":
    """The losses so far, a line for each objective; None before the first step."""
    if not history:
        return None
    runs = {name: [step[key] for step in history] for key, name in OBJECTIVES.items() if key in history[0]}
    return ml.viz.show("losses", runs)


def as_text(view: View) -> str:
    """Losses and samples in plain characters, what was written in brackets."""
    drawn = picture(view.history)
    parts = [drawn.text] if drawn else []
    for step, pieces in view.samples:
        story = "".join(piece.text if piece.kind == "context" else f"[{piece.text}]" for piece in pieces)
        parts.append(f"{sample_name(step)}\n{story}")
    return "\n\n".join(parts)


def sample_name(step: int) -> str:
    return f"After step {step}" if step else "Before the first step"
