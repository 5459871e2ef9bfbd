"""What a model finds likely at each position, beside the token that is really there."""

import html
from collections.abc import Sequence

import gradio as gr

from magnet_lab.viz.tokens import visible

from ..handlers.objectives import TOP, Prediction

_CLASS = {"MNTP": "masked", "MSG": "span"}


def component(name: str) -> gr.HTML:
    return gr.HTML(render([], name), elem_classes=["predictions"], css_template=_CSS, apply_default_css=False)


def render(rows: Sequence[Prediction], name: str) -> str:
    """A table, best guess first; one that is right is framed. It scrolls by itself, by the arrow keys too."""
    name = html.escape(name)
    if not rows:
        return f'<section aria-label="{name}"><p>Nothing yet.</p></section>'
    heads = ["position", "to predict", "p(true)", "place", *(f"{place}." for place in range(1, TOP + 1))]
    head = "".join(f'<th scope="col">{text}</th>' for text in heads)
    body = "".join(map(_row, rows))
    return (
        f'<div role="region" tabindex="0" aria-label="{name}"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


_CSS = """
div[role=region] { overflow-x: auto; }
div[role=region]:focus-visible { outline: 3px solid var(--body-text-color); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; color: var(--body-text-color); font-size: 0.9rem; }
th, td { padding: 4px 8px; border-bottom: 1px solid var(--border-color-primary); }
th, td { text-align: start; white-space: nowrap; }
th { font-weight: 600; }
.token { padding: 1px 5px; border-radius: 4px; white-space: pre; }
.token.masked { outline: 2px dashed var(--body-text-color); outline-offset: 1px; }
.name { font-size: 0.75rem; }
.right { display: inline-block; border: 2px solid currentColor; border-radius: 5px; padding: 0 4px; font-weight: 700; }
.share { font-size: 0.8rem; font-variant-numeric: tabular-nums; }
"""


def _row(row: Prediction) -> str:
    cells = [
        f'<th scope="row">{row.position} {_text(row.reads)}</th>',
        f'<td><span class="token {_CLASS[row.objective]}">{_text(row.true)}</span> '
        f'<span class="name">{row.objective}</span></td>',
        f'<td class="share">{row.probability:.3f}</td>',
        f'<td class="share">{row.rank}</td>',
    ]
    for place, (text, share) in enumerate(row.top, start=1):
        is_true = place == row.rank
        said = f'<span class="right">{_text(text)}<span class="aloud"> (the true one)</span></span>'
        cells.append(f'<td>{said if is_true else _text(text)} <span class="share">{share:.2f}</span></td>')
    return f"<tr>{''.join(cells)}</tr>"


def _text(text: str) -> str:
    return f"<bdi>{html.escape(visible(text)).strip() or '␣'}</bdi>"
