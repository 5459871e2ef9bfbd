"""Who trains, and who waits: one at a time, in the order of coming, so that the other pages stay quick."""

import contextlib
import threading
from collections.abc import Sequence

from .. import limits
from .training import Training


class Line:
    """Everybody who trains or waits; the first one trains."""

    def __init__(self):
        self._line: list[Training] = []
        self._lock = threading.Lock()

    def join(self, training: Training) -> None:
        """Stand behind the others.

        Raises:
            ValueError: if there are too many.
        """
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


def waiting(others: Sequence[Training]) -> str:
    """Why somebody waits, and how long at most; or that nobody is before them."""
    if not others:
        return "A process of its own begins, and loads tiny: some seconds."
    first, *more = others
    seconds = first.seconds_left + len(more) * limits.TRAINING_SECONDS
    behind = f" {len(more)} more wait(s) before you." if more else ""
    return (
        "One training at a time, so that the other pages stay quick: another visitor's is at step "
        f"{first.done} of {first.asked.steps}.{behind} Yours begins by itself, in {seconds:.0f} s at the latest."
    )
