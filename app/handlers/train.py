"""The visitors' trainings: begun, watched, stopped, gone on with, and left.

A training goes on whether somebody looks or not. So a page that is loaded anew finds it again, by a key that stays with
the browser's tab. Who has closed all pages has some seconds to come back; then the training ends, and its folder goes.
"""

import contextlib
import threading
import time
from collections.abc import Iterator

from .. import limits
from .training import SECONDS_BETWEEN_LOOKS, Training
from .training_asked import Asked, check
from .training_line import Line, waiting
from .training_view import View

_line = Line()
_kept: dict[str, Training] = {}  # by visitor, the oldest first
_visitors: dict[str, str] = {}  # by the page that they have open; without a key, a page is a visitor of its own
_lock = threading.Lock()


def enter(page: str, visitor: str) -> Asked | None:
    """A visitor has opened a page: what they have asked for before, if there is a training of theirs."""
    with _lock:
        _visitors[page] = visitor
        training = _kept.get(visitor)
    return training.asked if training else None


def train(page: str, *inputs) -> Iterator[View]:
    """Begin a training, in place of an earlier one of the same visitor; a view now and again, until it ends.

    Args:
        page: the key of the page that asks for it.
        *inputs: as `check` takes them.

    Raises:
        ValueError: if it cannot be had, or has ended against its will.
    """
    training = Training(check(*inputs))
    with _lock:
        visitor = _visitors.setdefault(page, page)
    forget(visitor)
    try:
        _begin(training)
    except ValueError:
        training.free()
        raise
    _keep(visitor, training)
    yield from watch(page)


def go_on(page: str) -> Iterator[View]:
    """Go on with the training that a visitor has stopped; errors as `train`."""
    training = _training_of(page)
    if training is None:
        raise ValueError("there is no training of yours to go on with; begin one")
    if not training.going:
        if training.done >= training.asked.steps:
            raise ValueError(f"all {training.asked.steps} steps are made; begin a new training with more of them")
        _begin(training)
    yield from watch(page)


def watch(page: str) -> Iterator[View]:
    """What becomes of a visitor's training, if there is one; errors as `train`. To close it is to close the page."""
    training = _training_of(page)
    if training is None:
        return
    try:
        while training.going:
            yield training.view()
            time.sleep(SECONDS_BETWEEN_LOOKS)
    except GeneratorExit:
        leave(page)
        raise
    if training.freed:  # a newer one of the same visitor has taken its place
        return
    if training.problem is not None:
        raise training.problem
    yield training.view()


def stop(page: str) -> None:
    """Stop a visitor's training after the step that is being made."""
    if training := _training_of(page):
        training.stop("you stopped it")


def leave(page: str) -> None:
    """A page is closed, or about to be loaded anew."""
    with _lock:
        visitor = _visitors.pop(page, None)
        if visitor not in _kept:
            return
    timer = threading.Timer(limits.TRAINING_ALONE_SECONDS, _forget_unless_back, [visitor])
    timer.daemon = True  # the app need not wait for it
    timer.start()


def _forget_unless_back(visitor: str) -> None:
    with _lock:
        is_back = visitor in _visitors.values()
    if not is_back:
        forget(visitor)


def forget(visitor: str) -> None:
    """End a visitor's training at once, if there is one, and delete its folder."""
    with _lock:
        training = _kept.pop(visitor, None)
    if training is not None:
        training.free()
        _line.leave(training)


def _training_of(page: str) -> Training | None:
    with _lock:
        return _kept.get(_visitors.get(page, page))


def _keep(visitor: str, training: Training) -> None:
    with _lock:
        idle = [name for name, kept in _kept.items() if not kept.going]
        _kept[visitor] = training
        surplus = idle[: max(0, len(_kept) - limits.TRAININGS_KEPT)]
    for oldest in surplus:
        forget(oldest)


def _begin(training: Training) -> None:
    _line.join(training)
    training.begin()
    training.sentence = waiting(_line.before(training))
    threading.Thread(target=_work, args=[training], daemon=True).start()


def _work(training: Training) -> None:
    """Wait for its turn, and train."""
    try:
        while others := _line.before(training):
            if training.is_stopping or training.freed:
                training.sentence = "You left the line; begin again when you like."
                return
            training.sentence = waiting(others)
            time.sleep(2 * SECONDS_BETWEEN_LOOKS)
        training.sentence = waiting([])
        with contextlib.closing(training.work()) as work:
            for _ in work:
                training.sentence = _going(training)
        training.sentence = _ended(training)
    except Exception as problem:  # told by those who watch
        training.problem = problem
    finally:
        _line.leave(training)
        training.going = False


def _going(training: Training) -> str:
    if training.is_stopping:
        return "Stopping after this step, and writing the adapter."
    if training.seconds_a_step is None:
        return "tiny is being loaded, and the story filled before anything is learnt."
    return f"Step {training.done} of {training.asked.steps}; {training.seconds_left:.0f} s to go at most."


def _ended(training: Training) -> str:
    done, steps = training.done, training.asked.steps
    if done >= steps:
        return f"All {steps} steps are made. The adapter can be downloaded."
    why = training.stopped_because or "it was stopped"
    return f"Stopped after step {done} of {steps}: {why}. The adapter can be downloaded, or the training gone on with."
