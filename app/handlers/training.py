"""One training of an adapter of `tiny`: its folder, its process, and what has come of it so far.

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
from collections.abc import Iterator, Mapping
from pathlib import Path

from .. import limits
from . import infill
from .training_asked import Asked, own_lines, recipe_of
from .training_view import View

TRAINEE = (sys.executable, "-P", "-m", "magnet_lab.app.trainee")
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_TO_BEGIN, SECONDS_TO_STOP = 300, 60  # of a process, before it is taken to hang


class Training:
    """A visitor's training.

    Attributes:
        history, samples: what has come of it so far, see `View`.
        sentence: what is going on, for those who watch.
        going: whether it works, or waits for its turn.
        problem: what it ended of against its will.
        freed: whether it was given up, and left nothing behind.
    """

    def __init__(self, asked: Asked):
        from magnet_lab.training.recipe import dump

        self.asked = asked
        self.history: list[dict[str, float]] = []
        self.samples: list[tuple[int, list[infill.Piece]]] = []
        self.sentence = self.stopped_because = ""
        self.going = self.freed = False
        self.problem: Exception | None = None
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
    def is_stopping(self) -> bool:
        return self._stop.is_set()

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

    def begin(self) -> None:
        """Be ready to work, for the first time or again; a stop from now on is meant for that."""
        self.going, self.problem, self.stopped_because = True, None, ""
        self._first_step_at, self._steps_before = None, self.done
        self._stop.clear()

    def work(self) -> Iterator[None]:
        """Train to the end, to a stop, or until the time is over; yields whenever there may be something new.

        Closing it ends the process at once, without a checkpoint.

        Raises:
            ValueError: with a sentence, if it cannot go on.
        """
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
            while not self.freed:
                with contextlib.suppress(queue.Empty):
                    line = lines.get(timeout=SECONDS_BETWEEN_LOOKS)
                    if line is None:
                        break
                    problem = self._take(json.loads(line)) or problem
                self._watch_the_clock(begun)
                if self.is_stopping and not process.stdin.closed:
                    process.stdin.close()
                yield
            if not self.freed and process.wait() != 0:
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

    def view(self) -> View:
        ended = {} if self.going else {"can_go_on": self.done < self.asked.steps, "adapter": self.adapter()}
        return View(self.sentence, list(self.history), list(self.samples), self.going, **ended)

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
