"""Training while its losses are drawn, with a button that stops it."""

import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import ipywidgets
from IPython.display import Markdown, display
from tqdm import tqdm

from magnet_lab import viz
from magnet_lab.viz.picture import Picture
from magnet_lab.widgets.controls import has_front_end

if TYPE_CHECKING:
    from magnet_lab.training.loop import Trainer


class LiveTraining:
    """A training that goes on while its losses are drawn.

    Attributes:
        history: one dictionary of losses (nats) a step.
        error: what ended the training against its will, or None.
    """

    def __init__(self, losses: Iterable[dict[str, float]], total: int | None, every: float):
        self.history: list[dict[str, float]] = []
        self.error: BaseException | None = None
        self._losses, self._total, self._every = iter(losses), total, every
        self._asked_to_stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._shown = None
        self._button = ipywidgets.Button(description="Stop", icon="stop")
        self._button.on_click(lambda _: self._asked_to_stop.set())
        self._status = ipywidgets.Label()

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def picture(self) -> Picture | None:
        """The losses so far; an objective that joined later has gaps before. None before the first step."""
        history = list(self.history)  # the thread may add to it meanwhile
        names = list(dict.fromkeys(name for step in history for name in step))
        runs = {name: [step.get(name, float("nan")) for step in history] for name in names}
        return viz.show("losses", runs) if runs else None

    def stop(self) -> "LiveTraining":
        """End after the step that is being made, and wait for that."""
        self._asked_to_stop.set()
        return self.wait()

    def wait(self) -> "LiveTraining":
        """Until the training has ended.

        Raises:
            whatever ended it against its will.
        """
        if self._thread is not None:
            self._thread.join()
        if self.error is not None:
            raise self.error
        return self

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._in_thread, daemon=True)
        self._thread.start()

    def _in_thread(self) -> None:
        drawn = 0.0
        try:
            for _ in self._steps():
                if time.monotonic() - drawn >= self._every:  # a picture takes a tenth of a second, a step may take less
                    self._draw()
                    drawn = time.monotonic()
        except BaseException as error:  # raised again by `wait`
            self.error = error
        self._button.disabled = True
        self._draw()

    def _in_front(self) -> None:
        try:
            for losses in (bar := tqdm(self._steps(), total=self._total, unit="step")):
                bar.set_postfix({name: f"{loss:.3f}" for name, loss in losses.items()})
        except KeyboardInterrupt:
            pass  # what is there stays

    def _steps(self) -> Iterator[dict[str, float]]:
        try:
            for losses in self._losses:
                self.history.append(losses)
                yield losses
                if self._asked_to_stop.is_set():
                    return
        finally:
            if hasattr(self._losses, "close"):
                self._losses.close()  # a generator tidies up behind itself, also when it is stopped

    def _draw(self) -> None:
        of = f" of {self._total}" if self._total else ""
        self._status.value = f"step {len(self.history)}{of}" + (f", then: {self.error}" if self.error else "")
        if self._shown is not None and self.history:
            self._shown.update(self.picture)

    def _ipython_display_(self) -> None:
        self._shown = display(self.picture or Markdown("*no step yet*"), display_id=True)
        if has_front_end():
            display(ipywidgets.HBox([self._button, self._status]))

    def __repr__(self) -> str:
        return repr(self.picture)


def live_training(
    source: "Trainer | Iterable[dict[str, float]]", *, total: int | None = None, every: float = 1.0
) -> LiveTraining:
    """Train, and watch the losses fall.

    In front of a person the training runs in a thread: the notebook stays free, and a button stops it after a step.
    Without one it runs to its end with a progress bar. Let it end, or `.stop()` it, before its model is used.

    Args:
        source: a `Trainer`, which starts from its checkpoint where there is one and leaves one when it ends or is
            stopped, so that `.run()` finishes it; or anything that yields a dictionary of losses (nats) a step.
        total: steps, where the source does not say.
        every: seconds between two pictures.

    Returns:
        `LiveTraining`; the last line of a cell shows it.
    """
    if hasattr(source, "recipe"):
        source, total = source.steps(source.resume()), source.recipe.steps
    training = LiveTraining(source, total, every)
    if has_front_end():
        training._start()
    else:
        training._in_front()
    return training
