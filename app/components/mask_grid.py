"""A mask as a table of cells: closed ones can be clicked, or walked along with the arrow keys, to be made visible."""

import html
from collections.abc import Sequence

import gradio as gr

from magnet_lab.viz import palette
from magnet_lab.viz.tokens import visible

from ..handlers import leaks

GLYPHS = {leaks.CLOSED: "·", leaks.OPEN: "■", leaks.HEARS: "○", leaks.ANSWER: "✕", leaks.OPENED: "◆"}
WORDS = {
    leaks.CLOSED: "closed",
    leaks.OPEN: "may look",
    leaks.HEARS: "hears of it now, through other tokens",
    leaks.ANSWER: "is to predict it, and knows it now",
    leaks.OPENED: "made visible",
}
_PAIRS = {
    leaks.CLOSED: palette.BLOCKED,
    leaks.OPEN: palette.SEES,
    leaks.HEARS: palette.REACHED,
    leaks.ANSWER: palette.MASKED.light,
    leaks.OPENED: palette.Pair("#FFFFFF", "#111111"),
}

# One stop for the tab key; from there the arrow keys go to the next closed cell in their direction.
_SCRIPT = """
const cell = button => [Number(button.dataset.query), Number(button.dataset.key)];
element.addEventListener('click', event => {
  const button = event.target.closest('button');
  if (!button) return;
  const [query, key] = cell(button);
  trigger('pick', {query, key});
});
element.addEventListener('keydown', event => {
  const step = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0]}[event.key];
  if (!step || !event.target.dataset.query) return;
  event.preventDefault();
  const size = element.querySelectorAll('tbody tr').length;
  let [query, key] = cell(event.target), next = null;
  while (!next && query >= 0 && key >= 0 && query < size && key < size) {
    query += step[0]; key += step[1];
    next = element.querySelector(`button[data-query="${query}"][data-key="${key}"]`);
  }
  if (!next) return;
  element.querySelectorAll('button').forEach(button => { button.tabIndex = button === next ? 0 : -1; });
  next.focus();
});
"""

_STYLE = """
div[role=region] { overflow: auto; max-height: 42rem; }
div[role=region]:focus-visible { outline: 3px solid var(--body-text-color); }
table { border-collapse: collapse; color: var(--body-text-color); font-size: 0.85rem; line-height: 1; }
.keys { margin: 0 0 6px; line-height: 1.9; color: var(--body-text-color); }
.key { white-space: nowrap; }
th { font-weight: 400; text-align: start; white-space: nowrap; padding: 0 6px 0 0; }
thead th { padding: 0 0 3px; text-align: center; color: var(--body-text-color-subdued); }
td { padding: 1px; }
.cell { display: block; box-sizing: border-box; width: 24px; height: 24px; padding: 0; border: 0; border-radius: 3px;
  font: inherit; line-height: 24px; text-align: center; }
.key .cell { display: inline-block; width: 20px; height: 20px; line-height: 20px; vertical-align: middle; }
.key .cell.opened { line-height: 14px; }
button.cell { cursor: pointer; }
button.cell:hover { outline: 2px solid currentColor; }
button.cell:focus-visible { outline: 3px solid #0072b2; outline-offset: 0; }
.cell.answer { outline: 2px dashed #d55e00; outline-offset: -2px; font-weight: 700; }
.cell.opened { border: 3px solid #d55e00; line-height: 18px; }
""" + "\n".join(
    f".cell.{kind} {{ background: {pair.background}; color: {pair.text}; }}" for kind, pair in _PAIRS.items()
)


def component() -> gr.HTML:
    """A place for a grid; its event `pick` brings the `query` and the `key` of a closed cell."""
    return gr.HTML(elem_classes=["mask-grid"], js_on_load=_SCRIPT, css_template=_STYLE, apply_default_css=False)


def render(tokens: Sequence[str], cells: Sequence[Sequence[str]], *, clickable: bool = True) -> str:
    """A mask's cells, `[query][key]`, each one of the words of `handlers.leaks`; with the keys to them that occur."""
    names = [html.escape(visible(token).strip() or "␣") for token in tokens]
    head = "".join(f'<th scope="col" title="{name}">{place}</th>' for place, name in enumerate(names))
    stop = next(((q, k) for q, line in enumerate(cells) for k, cell in enumerate(line) if cell == leaks.CLOSED), None)
    body = ""
    for query, line in enumerate(cells):
        written = "".join(
            f"<td>{_cell(names, query, key, cell, clickable, (query, key) == stop)}</td>"
            for key, cell in enumerate(line)
        )
        body += f'<tr><th scope="row">{query} <bdi>{names[query]}</bdi></th>{written}</tr>'
    occurring = [kind for kind in GLYPHS if any(kind in line for line in cells)]
    keys = " · ".join(f'<span class="key">{_glyph(kind)} {WORDS[kind]}</span>' for kind in occurring)
    label = "The mask, cell by cell: rows look, columns are seen"
    return (
        f'<p class="keys">Rows look, columns are seen. {keys}</p><div role="region" tabindex="0" aria-label="{label}">'
        f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(names: list[str], query: int, key: int, kind: str, clickable: bool, is_stop: bool) -> str:
    words = f"row {query} {names[query]}, column {key} {names[key]}: {WORDS[kind]}"
    if kind != leaks.CLOSED or not clickable:
        return f'{_glyph(kind, words)}<span class="aloud">{WORDS[kind]}</span>'
    return (
        f'<button type="button" class="cell {kind}" tabindex="{0 if is_stop else -1}" data-query="{query}" '
        f'data-key="{key}" title="{words}" aria-label="{words}">{GLYPHS[kind]}</button>'
    )


def _glyph(kind: str, words: str = "") -> str:
    title = f' title="{words}"' if words else ""
    return f'<span class="cell {kind}" aria-hidden="true"{title}>{GLYPHS[kind]}</span>'
