"""Long calls of a model that cannot be streamed: their progress counted in passes, and stopped at the next one."""

import threading
import warnings
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from magnet_lab.model import Magnet

Result = TypeVar("Result")

SECONDS = 0.25  # between two looks at how far it is


class _Stopped(Exception):
    """Ends the work in its own thread."""


def run(lab: "Magnet", work: Callable[[], Result]) -> Generator[int, None, tuple[Result, list[str]]]:
    """Do some work that calls a model, in a thread of its own.

    Yields how many forward passes were made, now and again; closing the generator ends the work before the next pass.

    Returns:
        What the work returned, and the warnings that it gave.
    """
    passes, stop = 0, threading.Event()
    found: list = []

    def before_pass(*_) -> None:
        nonlocal passes
        if threading.get_ident() != worker.ident:
            return  # somebody else's pass through the same weights
        if stop.is_set():
            raise _Stopped
        passes += 1

    def do() -> None:
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = work()
            found.append((result, [str(one.message) for one in caught if one.category is UserWarning]))
        except BaseException as problem:  # raised again where the result is waited for
            found.append(problem)

    worker = threading.Thread(target=do, daemon=True)
    hook = lab.model.get_decoder().register_forward_pre_hook(before_pass)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(SECONDS)
            yield passes
    finally:
        stop.set()
        worker.join()
        hook.remove()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]
