"""A text with its blanks filled: what was written stands out from what was there."""

import html
from collections.abc import Sequence

import gradio as gr

from magnet_lab.viz.tokens import visible

from ..handlers.infill import Piece


def component(heading: str) -> gr.HTML:
    return gr.HTML(render([], heading), elem_classes=["filled-text"], apply_default_css=False)


def render(pieces: Sequence[Piece], heading: str) -> str:
    """The pieces of a text under a heading of their own."""
    text = "".join(map(_piece, pieces))
    body = f'<p dir="auto">{text}</p>' if text else '<p class="empty">Nothing yet.</p>'
    return f'<section aria-label="{html.escape(heading)}"><h3>{html.escape(heading)}</h3>{body}</section>'


def _piece(piece: Piece) -> str:
    text = "\n".join(html.escape(visible(line)) if line else "" for line in piece.text.split("\n"))
    if piece.kind == "context":
        return text
    # The marks are for those who hear the text, or copy it: colour and line say the same to the eye.
    kind = "span generated" if piece.kind == "generated" else "masked"
    return f'<mark class="token {kind}"><span class="aloud">[</span>{text}<span class="aloud">]</span></mark>'
