"""The top of a page: what it is for, which model it has, and which it can have instead."""

import gradio as gr

from ..menu import KEEP, Menu
from . import notice


def header(demo: gr.Blocks, loading: Menu | None, title: str, purpose: str, path: str) -> None:
    """Write the title, the purpose and, where a page needs the model, what there is to say about that."""
    gr.Markdown(f"# {title}\n{purpose}")
    if loading is None:
        return
    note = notice.component()

    def notes():
        for sentence in loading.notes():
            yield notice.render(sentence) + loading.links()

    # Every open page waits here on its own while the model loads; none may hold up another.
    demo.load(notes, None, note, api_name=f"{path}_model", concurrency_limit=None, show_progress="hidden")
    if len(loading.names) > 1:
        demo.load(None, js=KEEP, api_visibility="private")
