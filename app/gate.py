"""What comes in over the network, looked at before gradio reads it: its size, its form, the type of each input.

A page sends nothing that is refused here. A program can send anything, and gradio's own answer to a word where a number
belongs is an error without a sentence, and a traceback on the server.
"""

import json
import math
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import gradio as gr

from . import limits

_CALL = re.compile(r"/gradio_api/(?:(?:run|api|call|call/v2)/(?P<name>[^/]+)|queue/join|run/predict)/?$")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DEEPEST = 20  # brackets within brackets

# By the types of gradio's own description of its API. None stands for an input that is left empty.
_TYPES = {
    "string": ("a text", (str, type(None))),
    "number": ("a number", (int, float, type(None))),
    "integer": ("a number", (int, float, type(None))),
    "boolean": ("true or false", (bool, type(None))),
    "array": ("a list", (list,)),
}
_NEVER_EMPTY = (gr.Slider, gr.Checkbox)


class Gate:
    """ASGI middleware that answers a call which cannot be right with status 400 and a sentence.

    Args:
        app: what is behind it.
        demo: the built app, whose inputs are known.
    """

    def __init__(self, app: Callable, demo: gr.Blocks):
        self.app, self.demo = app, demo

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        match = _CALL.search(scope.get("path", "")) if scope["type"] == "http" and scope["method"] == "POST" else None
        if match is None:
            await self.app(scope, receive, send)
            return
        try:
            body = await _read(receive)
            self._check(match["name"], body)
        except ValueError as problem:
            await _refuse(send, str(problem))
            return
        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def again():
            return parts.pop() if parts else await receive()

        await self.app(scope, again, send)

    def _check(self, name: str | None, body: bytes) -> None:
        call = read_json(body)
        if not isinstance(call, dict):
            raise ValueError('the request is no JSON object; send {"data": [...]} with a value for each input')
        if "data" not in call:  # by name: gradio knows which is which
            check_files(call)
            return
        data = call["data"]
        if not isinstance(data, list):
            raise ValueError('"data" is no list; give it a value for each input, in their order')
        function = self._function(name, call.get("fn_index"))
        if function.cancels:
            return  # nothing of it is read
        inputs = [place for place in function.inputs if not place.skip_api]
        if len(data) not in (len(inputs), len(function.inputs)):
            raise ValueError(f"{len(data)} value(s) came for {len(inputs)} input(s); give one for each")
        inputs = inputs if len(data) == len(inputs) else function.inputs
        check_inputs(inputs, data)
        if not isinstance(call.get("fn_index"), int):
            check_choices(inputs, data)

    def _function(self, name: str | None, index):
        """What is called: by its number, as pages do, else by its name."""
        found = self.demo.fns.get(index) if isinstance(index, int) else None
        if found is None:
            found = next((each for each in self.demo.fns.values() if name and each.api_name == name), None)
        if found is None:
            raise ValueError(
                "there is nothing of this name to call here; the app's foot, 'Use via API', says what there is"
            )
        return found


def read_json(body: bytes):
    """What a request's body says.

    Raises:
        ValueError: with a sentence, if it is no JSON, or holds what no text and no number can.
    """
    try:
        found = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as problem:
        if str(problem).startswith("the request"):
            raise
        raise ValueError("the request is no JSON that can be read; mend it and send it again") from problem
    _check_values(found)
    return found


def _no_number(name: str):
    raise ValueError(f"the request holds {name}, which is no number; give one that is")


def _check_values(value, depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise ValueError(f"the request nests more than {_DEEPEST} brackets; send plain values")
    if isinstance(value, str) and _SURROGATE.search(value):
        raise ValueError("a text holds half of a character (a lone surrogate), so it cannot be read; type it again")
    if (isinstance(value, float) and not math.isfinite(value)) or (isinstance(value, int) and abs(value) > 2**53):
        raise ValueError("a number is far too large; give a smaller one")
    if isinstance(value, float) and 0 < abs(value) < 1e-6:  # to divide by it is to divide by nothing
        raise ValueError("a number is too close to 0; give 0 itself, or a larger one")
    if isinstance(value, dict):
        for key, each in value.items():
            _check_values(key, depth + 1)
            _check_values(each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            _check_values(each, depth + 1)


def check_inputs(inputs: Sequence, data: Sequence) -> None:
    """Raise a ValueError if one of the values is of another type than its input."""
    for place, value in zip(inputs, data, strict=True):
        check_files(value)
        if isinstance(place, gr.File | gr.UploadButton):
            files = value if place.file_count != "single" and isinstance(value, list) else [value]
            if not all(each is None or (isinstance(each, dict) and "path" in each) for each in files):
                raise ValueError(f"{place.label}: {_short(value)} is no file; upload one and give what comes back")
            continue
        kind = place.api_info().get("type") if hasattr(place, "api_info") and not isinstance(place, gr.State) else None
        if not isinstance(kind, str) or kind not in _TYPES or isinstance(place, gr.Radio):
            continue  # some describe theirs at length; a Radio says that all of its choices are texts
        what, types = _TYPES[kind]
        wrong = not isinstance(value, types) or (isinstance(value, bool) and bool not in types)
        if wrong or (value is None and isinstance(place, _NEVER_EMPTY)):
            label = getattr(place, "label", None) or "one of the inputs"
            raise ValueError(f"{label}: {_short(value)} is not {what}; give {what}")


def check_choices(inputs: Sequence, data: Sequence) -> None:
    """Raise a ValueError for a value that its input does not offer, as the page was built.

    Only of calls by name: what a page offers may have changed since, and gradio alone knows to what.
    """
    for place, value in zip(inputs, data, strict=True):
        if value is None:
            continue
        label = getattr(place, "label", None) or "one of the inputs"
        if isinstance(place, gr.Radio | gr.CheckboxGroup):
            there = [choice for _, choice in place.choices]
            for each in value if isinstance(place, gr.CheckboxGroup) else [value]:
                if each not in there:
                    raise ValueError(f"{label}: {_short(each)} is no choice; choose from {', '.join(map(str, there))}")
        elif isinstance(place, gr.Slider | gr.Number):
            low, high = place.minimum, place.maximum
            if (low is not None and value < low) or (high is not None and value > high):
                within = f"{low:g} or more" if high is None else f"at most {high:g}"
                within = within if low is None or high is None else f"a number between {low:g} and {high:g}"
                raise ValueError(f"{label} is {value:g}; give {within}")


def check_files(value) -> None:
    """Raise a ValueError if a value names a file that was not uploaded here."""
    if isinstance(value, dict):
        if "path" in value or "url" in value:
            path = value.get("path")
            if not isinstance(path, str) or not _is_uploaded(path):
                raise ValueError("the file was not uploaded here; upload it first and give the path that comes back")
        for each in value.values():
            check_files(each)
    elif isinstance(value, list):
        for each in value:
            check_files(each)


def _is_uploaded(path: str) -> bool:
    folder = Path(os.environ.get("GRADIO_TEMP_DIR") or Path(tempfile.gettempdir()) / "gradio").resolve()
    try:
        found = Path(path).resolve()
    except (OSError, ValueError):
        return False
    return found.is_file() and found.is_relative_to(folder)


def _short(value) -> str:
    said = json.dumps(value, ensure_ascii=False)
    return said if len(said) <= 40 else f"{said[:40]}…"


async def _read(receive: Callable) -> bytes:
    """The whole body; the rest of one that is too long is read and thrown away, so that the answer can be heard."""
    parts, size = [], 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size <= limits.REQUEST_BYTES:
            parts.append(part)
        if not message.get("more_body", False):
            break
    if size > limits.REQUEST_BYTES:
        raise ValueError(f"the request has {size:,} bytes; at most {limits.REQUEST_BYTES:,} are read, so shorten it")
    return b"".join(parts)


async def _refuse(send: Callable, sentence: str) -> None:
    body = json.dumps({"detail": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})
