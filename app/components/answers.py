"""From the handlers' ValueErrors to sentences on a page: beside the input where it can be told, else above the page."""

import contextlib
import functools
import html
import inspect
import time
from collections.abc import Callable

import gradio as gr

from .. import limits
from ..loading import Loading

_OURS = ValueError("something went wrong here that is a mistake of the app's, not yours; try another input")


def answer(handler: Callable) -> Callable:
    """The same handler, or generator of them, with its ValueErrors shown as a message.

    A generator is stopped, with a sentence, when it has had its time: others wait for the model.
    """

    @functools.wraps(handler)
    def once(*inputs):
        with _told():
            return handler(*inputs)

    @functools.wraps(handler)
    def stream(*inputs):
        with _told(), contextlib.closing(handler(*inputs)) as views:
            begun = time.monotonic()
            for view in views:
                yield view
                if time.monotonic() - begun > limits.SECONDS_A_REQUEST:
                    raise ValueError(
                        f"this took longer than {limits.SECONDS_A_REQUEST:g} seconds, and others wait for the model; "
                        "what is written so far stays, so ask for less at a time"
                    )

    return stream if inspect.isgeneratorfunction(handler) else once


def validator(loading: Loading, *checks: Callable | None) -> Callable:
    """A check of an event's inputs before it queues: one check for each input, given all of them; None for no check.

    It must not wait, as the request that joins the queue waits for it: until the libraries are there, nothing is
    checked before its turn.
    """

    def validate(*inputs):
        return [_validated(check if loading.has_libraries else None, inputs) for check in checks]

    return validate


def _validated(check: Callable | None, inputs: tuple) -> dict:
    try:
        if check is not None:
            check(*inputs)
    except ValueError as problem:
        return gr.validate(False, str(problem))
    return gr.validate(True, "")


@contextlib.contextmanager
def _told():
    try:
        yield
    except gr.Error:
        raise
    except ValueError as problem:
        raise _error(problem) from problem
    except Exception as problem:  # a mistake of ours: the server's log has it, the reader a sentence
        raise _error(_OURS, print_exception=True) from problem


def _error(problem: ValueError, *, print_exception: bool = False) -> gr.Error:
    # The message is shown as HTML, and may quote what was typed.
    return gr.Error(html.escape(str(problem)), print_exception=print_exception)
