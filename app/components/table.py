"""A table for reading, with row headers that a screen reader says, and which scrolls sideways on a phone."""

import html
from collections.abc import Container, Sequence

import gradio as gr

# Without a width of its own a cell of prose would take a line for each word on a phone.
_STYLE = """
.scroll { overflow-x: auto; }
.scroll.low { max-height: 24rem; overflow-y: auto; }
.scroll:focus-visible { outline: 3px solid var(--link-text-color); }
table { border-collapse: collapse; font-size: 0.9rem; line-height: 1.4; }
caption { text-align: start; font-weight: 600; padding-block-end: 4px; }
th, td { padding: 5px 12px 5px 0; text-align: start; vertical-align: top; }
tr { border-block-end: 1px solid var(--border-color-primary); }
th { font-weight: 600; }
thead tr { border-block-end-color: var(--body-text-color-subdued); }
td { min-width: 6.5rem; font-variant-numeric: tabular-nums; }
tr.papers th, tr.papers td { font-style: italic; font-weight: 400; color: var(--body-text-color-subdued); }
"""


def component() -> gr.HTML:
    return gr.HTML(elem_classes=["reading-table"], css_template=_STYLE, apply_default_css=False)


def render(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    papers: Container[int] = (),
    *,
    tall: bool = True,
) -> str:
    """Cells as typed; the first of each row names it.

    Args:
        caption: what the table shows.
        papers: places of the rows that the paper printed, set apart from ours.
        tall: whether all rows are shown at once; else the table scrolls in itself.
    """
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in columns)
    head = f"<thead><tr>{head}</tr></thead>" if any(columns) else ""
    body = "".join(_row(row, place in papers) for place, row in enumerate(rows))
    caption = html.escape(caption)
    # What scrolls can be reached with the keys, and then has to have a name.
    return (
        f'<div class="scroll{"" if tall else " low"}" tabindex="0" role="region" aria-label="{caption}">'
        f"<table><caption>{caption}</caption>{head}<tbody>{body}</tbody></table></div>"
    )


def _row(row: Sequence[str], is_papers: bool) -> str:
    name, *cells = map(html.escape, row)
    written = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr{" class=papers" if is_papers else ""}><th scope="row">{name}</th>{written}</tr>'
