"""The top of a page: what it is for, and which model it has."""

import gradio as gr

from ..loading import Loading
from . import notice


def header(demo: gr.Blocks, loading: Loading | None, title: str, purpose: str, path: str) -> None:
    """Write the title, the purpose and, where a page needs the model, what there is to say about that."""
    gr.Markdown(f"# {title}\n{purpose}")
    if loading is None:
        return
    note = notice.component()

    def notes():
        for sentence in loading.notes():
            yield notice.render(sentence)

    # Every open page waits here on its own while the model loads; none may hold up another.
    demo.load(notes, None, note, api_name=f"{path}_model", concurrency_limit=None, show_progress="hidden")
