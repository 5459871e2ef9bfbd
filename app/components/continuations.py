"""Continuations of one beginning, side by side: what was said before stands out, and is counted."""

import html
from collections.abc import Sequence

import gradio as gr

from magnet_lab.viz.tokens import visible

from ..handlers.generate import Continuation, Piece, name

# The token classes of the house, for those who see; words for those who hear.
_CLASS = {"run": "span", "sentence": "masked"}
_ALOUD = {"run": "again:", "sentence": "sentence again:"}

_CSS = """
mark.masked { outline: 2px dashed var(--body-text-color); outline-offset: 0; }
.side-by-side { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); gap: 20px; }
.given { opacity: 0.8; }
.meters { display: grid; grid-template-columns: auto 1fr auto; gap: 4px 10px; align-items: center; margin: 10px 0 4px; }
.meters .bar { height: 12px; border: 1px solid var(--body-text-color); border-radius: 3px; }
.meters .bar span { display: block; height: 100%; background: #e69f00; }
.meters .number { font-variant-numeric: tabular-nums; font-weight: 600; }
p.counted { font-size: 0.9rem; line-height: 1.45; }
"""


def component() -> gr.HTML:
    return gr.HTML(
        '<p class="empty">Nothing yet.</p>',
        elem_classes=["continuations", "filled-text"],
        css_template=_CSS,
        apply_default_css=False,
    )


def legend() -> gr.HTML:
    """What the marks and the two numbers mean."""
    return gr.HTML(
        f'<p><mark class="token {_CLASS["run"]}">Underlined</mark>: four words in a row that were said before, counted '
        f'by <strong>Rep-4</strong>. <mark class="token {_CLASS["sentence"]}">Dashed</mark>: a whole sentence that was '
        "said before, counted by <strong>Rep-Sen</strong>. Both are shares of what the model itself wrote: 0 is none "
        "of it, and capitals do not count.</p>",
        elem_classes=["filled-text"],
        css_template=_CSS,
        apply_default_css=False,
    )


def render(prefix: str, continuations: Sequence[Continuation]) -> str:
    """A section for each continuation, its beginning before it."""
    return f'<div class="side-by-side">{"".join(_section(prefix, one) for one in continuations)}</div>'


def _section(prefix: str, one: Continuation) -> str:
    heading = html.escape(name(one.system))
    if not one.text and not one.done:
        body = '<p class="empty">Waiting for its turn.</p>'
    else:
        written = "".join(map(_piece, one.pieces))
        body = f'<p dir="auto"><span class="given">{_lines(prefix)}</span>{written}{"" if one.done else " …"}</p>'
        body += f'<div class="meters">{_meter("Rep-4", one.rep_4)}{_meter("Rep-Sen", one.rep_sen)}</div>'
        body += f'<p class="counted">{html.escape(one.sentence)}</p>'
    return f'<section aria-label="{heading}"><h3>{heading}</h3>{body}</section>'


def _piece(piece: Piece) -> str:
    if piece.kind == "new":
        return _lines(piece.text)
    aloud = f'<span class="aloud">[{_ALOUD[piece.kind]} </span>'
    return f'<mark class="token {_CLASS[piece.kind]}">{aloud}{_lines(piece.text)}<span class="aloud">]</span></mark>'


def _meter(measure: str, value: float) -> str:
    # The number beside it says the same.
    return (
        f'<span>{measure}</span><span class="bar" aria-hidden="true"><span style="width: {value:.1%}"></span></span>'
        f'<span class="number">{value:.3f}</span>'
    )


def _lines(text: str) -> str:
    return "\n".join(html.escape(visible(line)) if line else "" for line in text.split("\n"))
