"""Sentences for the reader, as typed: which model this is, what a token sees, what is wrong with an input."""

import html
from collections.abc import Sequence

import gradio as gr


def component(*, problem: bool = False) -> gr.HTML:
    """A place for sentences; with `problem`, one that takes no room until there is one."""
    return gr.HTML(elem_classes=["notice", "problem" if problem else "note"], apply_default_css=False)


def render(sentences: str | Sequence[str], *, problem: bool = False) -> str:
    """A paragraph for each sentence; screen readers are told of changes, at once of a problem."""
    sentences = [sentences] if isinstance(sentences, str) else sentences
    paragraphs = "".join(f'<p dir="auto">{html.escape(sentence)}</p>' for sentence in sentences if sentence)
    return f'<div role="{"alert" if problem else "status"}">{paragraphs}</div>'
