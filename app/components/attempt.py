"""ValueErrors of events that do not queue: told on the page, as one that is raised fails the whole request."""

import functools
from collections.abc import Callable

import gradio as gr

from . import notice


def attempt(handler: Callable, outputs: int) -> Callable:
    """The same handler with one output before its own `outputs`: what is wrong, for a place of `notice`'s.

    If something is, the others stay as they are.
    """

    @functools.wraps(handler)
    def attempted(*inputs):
        try:
            found = handler(*inputs)
        except ValueError as problem:
            return notice.render(str(problem), problem=True), *[gr.skip()] * outputs
        return notice.render("", problem=True), *(found if isinstance(found, tuple) else (found,))

    return attempted
