"""Links to a page as it is filled in: its inputs stand in the query string, `generate?prefix=Tom&tokens=64`.

A page says which inputs those are, by the name that each has in the link:

    links.share(demo, {"prefix": prefix, "tokens": tokens})
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import gradio as gr

from .components import notice

# The values as they are now go into the address, and with it into the clipboard where the browser lets them. Nothing
# of it passes through the server. What is as it was when the page was made stays out, so that a link is short.
_SCRIPT = """
(...values) => {
  const names = %s, usual = %s, asked = new URLSearchParams(window.location.search), link = new URLSearchParams();
  if (asked.has('model') && !names.includes('model')) link.set('model', asked.get('model'));
  names.forEach((name, place) => {
    const value = values[place];
    if (value === null || value === undefined || JSON.stringify(value) === JSON.stringify(usual[place])) return;
    link.set(name, Array.isArray(value) ? value.join(',') : String(value));
  });
  const query = link.toString();
  const address = window.location.origin + window.location.pathname + (query ? '?' + query : '');
  window.history.replaceState(null, '', address);
  if (navigator.clipboard) navigator.clipboard.writeText(address).catch(() => {});
  return %s;
}
"""
_SAID = "The link stands in your browser's address line, and in the clipboard if the browser allows that."


def share(demo: gr.Blocks, inputs: Mapping[str, gr.components.Component], *, fill: bool = True) -> None:
    """Write a button that makes a link; and, with `fill`, let a link that is followed fill the inputs.

    Args:
        inputs: by their names in the link: text boxes, numbers, sliders, checkboxes, radios, checkbox groups, menus.
        fill: False where the page reads the query string itself.
    """
    button = gr.Button("Make a link to this page as it is", size="sm")
    said = notice.component()
    usual = [place.value for place in inputs.values()]
    script = _SCRIPT % tuple(map(json.dumps, (list(inputs), usual, notice.render(_SAID))))
    button.click(None, list(inputs.values()), said, js=script, api_visibility="private")
    if not fill:
        return

    def filled(request: gr.Request):
        query = request.query_params if request else {}
        found = [_value(place, query[name]) if name in query else None for name, place in inputs.items()]
        return [gr.skip() if value is None else value for value in found]

    demo.load(filled, None, list(inputs.values()), queue=False, show_progress="hidden", api_visibility="private")


def _value(place: gr.components.Component, text: str) -> Any:
    """What a link says for an input; None if that input cannot have it, so that it stays as it is."""
    if isinstance(place, gr.Checkbox):
        return {"true": True, "false": False}.get(text)
    if isinstance(place, gr.Number | gr.Slider):
        return _number(place, text)
    if isinstance(place, gr.CheckboxGroup):
        wanted, there = text.split(","), {value for _, value in place.choices}
        return [value for value in wanted if value in there] or None
    if isinstance(place, gr.Radio | gr.Dropdown):
        return text if text in [value for _, value in place.choices] else None
    return text.encode("utf-8", "replace").decode()


def _number(place: gr.Number | gr.Slider, text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    low, high = (bound if bound is not None else math.copysign(1e9, sign) for bound, sign in _bounds(place))
    if not low <= value <= high:
        return None
    return int(value) if value == int(value) else value


def _bounds(place: gr.Number | gr.Slider) -> tuple[tuple[float | None, int], tuple[float | None, int]]:
    return (place.minimum, -1), (place.maximum, 1)
