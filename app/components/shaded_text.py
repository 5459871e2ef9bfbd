"""A filled text with what was written shaded, token by token, by how likely its writer found it."""

import functools
import html
from collections.abc import Sequence

import gradio as gr

from magnet_lab.viz import palette
from magnet_lab.viz.tokens import visible

from ..handlers.infill import Filling, Shade, name

_STEPS = 5  # shades, so that each can be told from the next

_STYLE = """
.side-by-side { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); gap: 20px; }
mark.shade { padding: 2px 1px; box-shadow: inset 0 -2px 0 currentColor; }
.side-by-side section { border-block-start: 1px solid var(--border-color-primary); padding-block-start: 8px; }
.said { font-size: 0.9rem; line-height: 1.45; color: var(--body-text-color-subdued); }
.scale mark { padding: 2px 8px; margin-inline-end: 2px; }
"""


def component(content: str = "") -> gr.HTML:
    return gr.HTML(content, elem_classes=["filled-text"], css_template=_STYLE, apply_default_css=False)


def scale() -> str:
    """The shades in a row, with the probabilities that they stand for."""
    marks = "".join(
        f'<mark class="shade" style="{_colours(step)}">{step / _STEPS:.1f}–{(step + 1) / _STEPS:.1f}</mark>'
        for step in range(_STEPS)
    )
    return f'<p class="scale">Probability of a token: {marks}</p>'


def render(shades: Sequence[Shade], heading: str) -> str:
    """One text under a heading of its own."""
    if not shades:
        return ""
    heading = html.escape(heading)
    body = f'{scale()}<p dir="auto">{"".join(map(_stretch, shades))}</p>'
    return f'<section aria-label="{heading}"><h3>{heading}</h3>{body}</section>'


def render_each(fillings: Sequence[Filling]) -> str:
    """A section for each system, in a grid."""
    return f'{scale()}<div class="side-by-side">{"".join(map(_section, fillings))}</div>'


def _section(filling: Filling) -> str:
    heading = html.escape(name(filling.system))
    text = f'<p dir="auto">{"".join(map(_stretch, filling.shades))}</p>' if filling.shades else ""
    said = f'<p class="said">{html.escape(filling.sentence)}</p>'
    return f'<section aria-label="{heading}"><h3>{heading}</h3>{text}{said}</section>'


def _stretch(shade: Shade) -> str:
    text, probability = shade
    written = "\n".join(html.escape(visible(line)) if line else "" for line in text.split("\n"))
    if probability is None:
        return written
    step = min(_STEPS - 1, int(probability * _STEPS))
    return f'<mark class="shade" style="{_colours(step)}" title="{probability:.3f}">{written}</mark>'


@functools.cache
def _colours(step: int) -> str:
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    middle = (step + 0.5) / _STEPS
    ink = palette.INK if middle >= 0.5 else "#FFFFFF"
    return f"background: {to_hex(mpl.colormaps[palette.WEIGHTS](middle))}; color: {ink}"
