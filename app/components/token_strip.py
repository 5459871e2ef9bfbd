"""A text as a row of tokens that can be clicked, and walked along with the arrow keys."""

import html
from collections.abc import Sequence

import gradio as gr

from magnet_lab.viz.tokens import visible

from ..handlers.masks import Token

# Listeners sit on the element, so that they outlive the tokens in it.
_SCRIPT = """
const tokens = () => [...element.querySelectorAll('button')];
element.addEventListener('click', event => {
  const token = event.target.closest('button');
  if (token) trigger('pick', {index: tokens().indexOf(token)});
});
element.addEventListener('keydown', event => {
  const all = tokens(), here = all.indexOf(document.activeElement);
  const there = {ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: all.length - 1}[event.key];
  if (here < 0 || !all[there]) return;
  event.preventDefault();
  all.forEach((token, index) => { token.tabIndex = index === there ? 0 : -1; });
  all[there].focus();
});
"""


def component() -> gr.HTML:
    """A place for a strip; its event `pick` brings the index of the token chosen by click, Enter or space."""
    return gr.HTML(elem_classes=["token-strip"], js_on_load=_SCRIPT, apply_default_css=False)


def render(tokens: Sequence[Token], label: str) -> str:
    """A list of tokens; its label says to a screen reader what it is."""
    # One stop for the tab key, at the picked token; the arrow keys go on from there.
    stop = next((index for index, token in enumerate(tokens) if token.picked), 0)
    items = "".join(_item(token, index == stop) for index, token in enumerate(tokens))
    return f'<ol aria-label="{html.escape(label)}">{items}</ol>'


def _item(token: Token, is_stop: bool) -> str:
    text, words = html.escape(visible(token.text)), html.escape(token.words)
    attributes = {
        "class": f"token {token.kind}",
        "tabindex": 0 if is_stop else -1,
        "title": words,
        "aria-label": f"{text.strip()} · {words}",
        "aria-pressed": str(token.picked).lower(),
    }
    written = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    return f'<li><button type="button" {written}><bdi>{text}</bdi></button></li>'
