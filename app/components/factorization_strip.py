"""The row of one pass of UniLMv2: under each token its position and its step, and what is predicted at it now."""

import html
from collections.abc import Sequence

import gradio as gr

from magnet_lab.viz.tokens import visible

from ..handlers.factorization import StepToken

_STYLE = """
ol { display: flex; flex-wrap: wrap; gap: 10px 4px; margin: 0; padding: 4px 0; list-style: none; }
li { display: flex; flex-direction: column; align-items: center; gap: 2px; margin: 0; min-width: 2.6rem; }
li.now { border-block-end: 3px solid var(--body-text-color); padding-block-end: 3px; }
span.token { padding: 6px 6px; border-radius: 5px; border: 1px solid #6b7785; line-height: 1.3; white-space: pre; }
span.under { font-size: 0.7rem; line-height: 1.25; color: var(--body-text-color-subdued); }
span.predicts { font-size: 0.85rem; font-weight: 600; color: var(--body-text-color); }
.aloud { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
"""


def component() -> gr.HTML:
    return gr.HTML(elem_classes=["factorization"], css_template=_STYLE, apply_default_css=False)


def render(row: Sequence[StepToken], label: str) -> str:
    """A list of tokens; its label says to a screen reader what it is."""
    return f'<ol aria-label="{html.escape(label)}">{"".join(map(_item, row))}</ol>'


def _item(token: StepToken) -> str:
    told = f"step {token.step}" if token.step else "given"
    predicts = ""
    if token.predicts:
        said = f'<span class="aloud">predicted here: </span><bdi>{html.escape(visible(token.predicts))}</bdi>'
        predicts = f'<span class="predicts"><span aria-hidden="true">↓ </span>{said}</span>'
    return (
        f"<li{' class=now' if token.predicts else ''}>"
        f'<span class="token {token.kind}"><bdi>{html.escape(visible(token.shows))}</bdi></span>'
        f'<span class="under">place {token.position}</span><span class="under">{told}</span>{predicts}</li>'
    )
