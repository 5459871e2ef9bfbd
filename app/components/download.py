"""A link that keeps a file: its content lies in the page, so that no file is left on the server for others to find."""

import base64
import html
import mimetypes

import gradio as gr

_STYLE = "a { color: var(--link-text-color); text-decoration: underline; }"


def component() -> gr.HTML:
    return gr.HTML(css_template=_STYLE, apply_default_css=False)


def render(*files: tuple[str, str, bytes]) -> str:
    """A link for each file: what it says, the file's name, its content."""
    return " · ".join(_link(*file) for file in files)


def _link(words: str, name: str, content: bytes) -> str:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    address = f"data:{kind};base64,{base64.b64encode(content).decode()}"
    return f'<a href="{address}" download="{html.escape(name)}">{html.escape(words)}</a>'
