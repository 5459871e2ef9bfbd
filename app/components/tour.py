"""The guided tour: what to do and what to look at, each step with a link to its page."""

import html
from collections.abc import Sequence

import gradio as gr

from ..handlers.start import Step

_STYLE = """
ol { margin: 0; padding-inline-start: 1.6em; list-style: decimal; line-height: 1.55; color: var(--body-text-color); }
li { margin-block-end: 8px; }
a { font-weight: 600; color: var(--link-text-color); text-decoration: underline; }
"""


def component(steps: Sequence[Step]) -> gr.HTML:
    items = "".join(map(_item, steps))
    return gr.HTML(f'<ol aria-label="Guided tour">{items}</ol>', css_template=_STYLE, apply_default_css=False)


def _item(step: Step) -> str:
    title, do, look = map(html.escape, (step.title, step.do, step.look))
    name = f'<a href="{html.escape(step.page)}">{title}</a>' if step.page else f"<strong>{title}</strong>"
    return f"<li>{name}: {do} <em>{look}</em></li>"
