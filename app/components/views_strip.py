"""A view of a text: its tokens in a row, and under each what its position is to predict."""

import html
from collections.abc import Sequence

import gradio as gr

from magnet_lab.viz.tokens import visible

from ..handlers.objectives import Position
from . import token_strip

_CLASS = {"MNTP": "masked", "MSG": "span", "SSCL": "context"}  # of what is predicted


def component(*, pick: bool = False) -> gr.HTML:
    """A place for a view; with `pick`, a token can be chosen as on a token strip."""
    if pick:
        strip = token_strip.component()
        strip.css_template = _CSS
        return strip
    return gr.HTML(elem_classes=["token-strip"], css_template=_CSS, apply_default_css=False)


def render(positions: Sequence[Position], label: str, *, pick: bool = False) -> str:
    """A list of positions; its label says to a screen reader what it is."""
    stop = next((index for index, position in enumerate(positions) if position.picked), 0)
    items = "".join(_item(position, index == stop, pick) for index, position in enumerate(positions))
    return f'<ol class="view" aria-label="{html.escape(label)}">{items}</ol>'


_CSS = """
ol.view { gap: 8px 3px; }
ol.view li { gap: 2px; justify-content: flex-start; }
ol.view li::after { order: 1; }
ol.view span.token { padding: 2px 5px; border-radius: 5px; line-height: 1.3; white-space: pre; }
ol.view span.read { min-height: 34px; padding: 6px 5px; border: 1px solid #6b7785; }
ol.view .task { order: 2; display: flex; flex-direction: column; align-items: center; gap: 2px; font-size: 0.85rem; }
ol.view .task .masked { outline: 2px dashed var(--body-text-color); outline-offset: 1px; margin: 2px; }
ol.view .task .name { font-size: 0.7rem; line-height: 1.2; }
"""


def _item(position: Position, is_stop: bool, pick: bool) -> str:
    text, words = html.escape(visible(position.text)), html.escape(position.words)
    task = ""
    if position.objective:
        predicted = html.escape(visible(position.predicts))
        # Said already by the words of the token itself.
        task = (
            f'<span class="task" aria-hidden="true"><span class="name">{position.objective} ↓</span>'
            f'<span class="token {_CLASS[position.objective]}"><bdi>{predicted}</bdi></span></span>'
        )
    if not pick:
        aloud = f'<span class="aloud">{words}</span>' if task else ""  # said once, not of every token
        return (
            f'<li title="{words}"><span class="token read {position.kind}"><bdi>{text}</bdi></span>{aloud}{task}</li>'
        )
    attributes = {
        "class": f"token {position.kind}",
        "tabindex": 0 if is_stop else -1,
        "title": words,
        "aria-label": f"{text.strip()} · {words}",
        "aria-pressed": str(position.picked).lower(),
    }
    written = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    return f'<li><button type="button" {written}><bdi>{text}</bdi></button>{task}</li>'
