"""From the handlers' ValueErrors to sentences on a page: beside the input where it can be told, else above the page."""

import functools
import html
import inspect
from collections.abc import Callable

import gradio as gr

from ..loading import Loading


def answer(handler: Callable) -> Callable:
    """The same handler, or generator of them, with its ValueErrors shown as a message."""

    @functools.wraps(handler)
    def once(*inputs):
        try:
            return handler(*inputs)
        except ValueError as problem:
            raise _error(problem) from problem

    @functools.wraps(handler)
    def stream(*inputs):
        try:
            yield from handler(*inputs)
        except ValueError as problem:
            raise _error(problem) from problem

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


def _error(problem: ValueError) -> gr.Error:
    # The message is shown as HTML, and may quote what was typed.
    return gr.Error(html.escape(str(problem)), print_exception=False)
