"""A figure on a page, with words for those who cannot see it and a link to keep it."""

import base64
import html
import io
from typing import TYPE_CHECKING

import gradio as gr

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def component() -> gr.HTML:
    return gr.HTML(elem_classes=["picture"], apply_default_css=False)


def render(figure: "Figure", name: str) -> str:
    """The figure as an image that needs no second request; `name` says what it shows, its full twin stands as text."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    address = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    name, width = html.escape(name), round(figure.get_figwidth() * 80)
    # Made smaller where there is less room, but not so small that nobody can read it: then it scrolls.
    size = f"width: {width}px; min-width: min({0.65 * width:.0f}px, 32rem)"
    return (
        f'<figure><img src="{address}" alt="{name}, shown as text further down" style="{size}">'
        f'<figcaption><a href="{address}" download="{name}.png">Download picture</a></figcaption></figure>'
    )
