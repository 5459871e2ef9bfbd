"""Calling a function that may do anything: it may raise, never end, print its answer, or write over what it was given.

The function runs in a thread of its own, and what is raised in that thread from outside ends its loops. That works in a
notebook's kernel and on every system, where an alarm signal does not. A thread that is deep in a library's code hears
of it only later: it is left behind, and nobody waits for it.
"""

import contextlib
import copy
import ctypes
import inspect
import io
import linecache
import sys
import sysconfig
import threading
import time
import traceback
from pathlib import Path

import torch

TIME_LIMIT = 4.0  # seconds for all calls of one check; a right answer takes a small part of one
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platlib", "purelib")})
_OURS = str(Path(__file__).parents[2])


class NoAnswer(Exception):
    """The function came to no answer; the text says why, in a sentence for its author."""


class Seed(int):
    """Stands for a generator with this seed among a case's arguments; every call gets a fresh one."""


class Student:
    """A student's function, called with copies of its arguments and with a limit to the time it takes in all.

    Args:
        function: what was handed in.
        call: how it is called, such as `"mask(span_ids)"`.

    Attributes:
        name: `"mask"`.
        parameters: `["span_ids"]`.
        arguments: of the last call.
        printed: what the last call printed.

    Raises:
        NoAnswer: if this is no function, or one that cannot be called so.
    """

    def __init__(self, function, call: str):
        self.function, self.call = function, call
        self.name, parameters = call.removesuffix(")").split("(")
        self.parameters = parameters.split(", ")
        self.arguments: tuple = ()
        self.printed = ""
        self.seconds = TIME_LIMIT
        if not callable(function):
            raise NoAnswer(
                f"this is {a(function)} and no function; hand in the function itself, without calling it: "
                f"check.{self.name}(your_function)"
            )
        try:
            inspect.signature(function).bind(*self.parameters)
        except TypeError:
            raise NoAnswer(f"the function cannot be called as {call}: give it exactly these parameters") from None
        except ValueError:
            pass  # a function of C code that does not say what it takes

    def __call__(self, *arguments):
        """What the function returns for these arguments.

        Raises:
            NoAnswer: if it raises, does not end, returns nothing or changes its arguments.
        """
        self.arguments, self.printed = arguments, ""
        given = [_fresh(argument) for argument in arguments]
        thread = _Thread(self.function, given)
        started = time.monotonic()
        with _heard(thread) as printed:
            thread.start()
            thread.join(self.seconds)
            ended = not thread.is_alive()
            if not ended:
                thread.stop()
        self.seconds = max(0.0, self.seconds - (time.monotonic() - started))
        self.printed = printed.getvalue()
        if not ended:
            raise NoAnswer(
                f"no answer after {TIME_LIMIT:.0f} seconds: a loop never ends, or does far too much; see that what its "
                "condition asks about changes inside the loop"
            )
        if thread.error is not None:
            raise NoAnswer(_sentence(thread.error, self.function)) from None
        for name, argument, after in zip(self.parameters, arguments, given, strict=True):
            if not isinstance(argument, Seed) and not _unchanged(argument, after):
                raise NoAnswer(
                    f"the function changes its input {name} in place, and whoever called it goes on with the changed "
                    f"one; work on a copy: {name}.clone() for a tensor, list({name}) for a list"
                )
        if thread.result is None:
            if self.printed.strip():
                raise NoAnswer(
                    "the function prints its answer and returns nothing; what is printed no other code can use: "
                    "end with return in place of print"
                )
            raise NoAnswer("the function returns nothing (None); its last line must be return and the answer")
        return thread.result


def a(thing) -> str:
    """What kind of thing this is: "a tensor", "an int"."""
    name = {"Tensor": "tensor", "ndarray": "NumPy array"}.get(type(thing).__name__, type(thing).__name__)
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


class _Stopped(BaseException):
    """Raised in the student's thread from outside; no Exception, so that `except Exception` does not catch it."""


class _Thread(threading.Thread):
    """Runs a function and keeps what it returned or raised."""

    def __init__(self, function, arguments: list):
        super().__init__(daemon=True)
        self.function, self.arguments = function, arguments
        self.result, self.error = None, None

    def run(self) -> None:
        try:
            self.result = self.function(*self.arguments)
        except BaseException as error:  # exit() as well: nothing of a student's code may end the notebook
            self.error = error

    def stop(self) -> None:
        for _ in range(10):  # a bare `except:` in a loop catches even this, but not every time
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), ctypes.py_object(_Stopped))
            self.join(0.05)
            if not self.is_alive():
                return


class _Ear:
    """Stands for standard output: keeps what one thread writes, passes on what others do."""

    def __init__(self, thread: threading.Thread, outside):
        self.thread, self.outside, self.kept = thread, outside, io.StringIO()

    def write(self, text: str) -> int:
        return (self.kept if threading.current_thread() is self.thread else self.outside).write(text)

    def __getattr__(self, name: str):
        return getattr(self.outside, name)


@contextlib.contextmanager
def _heard(thread: threading.Thread):
    ear = _Ear(thread, sys.stdout)
    with contextlib.redirect_stdout(ear):
        yield ear.kept


def _fresh(argument):
    return torch.Generator().manual_seed(argument) if isinstance(argument, Seed) else copy.deepcopy(argument)


def _unchanged(before, after) -> bool:
    if isinstance(before, torch.Tensor):
        return before.shape == after.shape and torch.equal(before, after)
    if isinstance(before, list | tuple):
        pairs = zip(before, after, strict=False)
        return len(before) == len(after) and all(_unchanged(one, other) for one, other in pairs)
    return before == after


def _sentence(error: BaseException, function) -> str:
    """An exception with the student's own line, in place of a traceback through libraries."""
    if isinstance(error, NotImplementedError):
        return "not written yet: put your answer in the place of raise NotImplementedError"
    if isinstance(error, SystemExit):
        return "the function calls exit(), which would end the notebook; use return"
    own = getattr(inspect.unwrap(function, stop=lambda f: not hasattr(f, "__wrapped__")), "__code__", None)
    own_file = own.co_filename if own else None
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == own_file or not frame.filename.startswith((*_LIBRARIES, _OURS, "<frozen"))
    ]
    said = " ".join(str(error).split())
    said = said if len(said) <= 300 else said[:300] + " …"
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if not frames:
        return f"the function raises {what}"
    line = (frames[-1].line or linecache.getline(frames[-1].filename, frames[-1].lineno)).strip()
    place = f"its line `{line}`" if line else f"line {frames[-1].lineno} of its cell or file"
    return f"the function stops with an error at {place}: {what}"
