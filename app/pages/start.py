"""Start: the one idea, and where to try it."""

import gradio as gr

from ..components import picture
from ..components.header import header
from ..handlers import start
from ..loading import Loading

TITLE, PATH = "One decoder, three modes", "start"
PURPOSE = (
    "A language model reads a text through an **attention mask**: a table of who may look at whom. The same model, "
    "with the same weights, writes on, understands or fills in; all that changes is that table."
)

MODES = {
    "generate": "causal mask. Every token sees itself and what stands before it, so that the next one can be written.",
    "encode": "bidirectional mask. Every token sees every token, so that a vector knows the whole sentence.",
    "infill": "MAGNET mask. The missing span `[ ]` sees all around it and its own past, so that it fits what follows.",
}


def page(demo: gr.Blocks, loading: Loading, others) -> None:
    """Write the page, with a link to each of the `others`."""
    header(demo, loading, TITLE, PURPOSE, PATH)
    places = []
    with gr.Row():
        for mode, words in MODES.items():
            with gr.Column(min_width=260):
                places.append(picture.component())
                gr.Markdown(f"**{mode}** · {words}")
    gr.Markdown(
        "Rows look, columns are seen: ■ may look, · may not. One rule makes all three: *look at every context token, "
        "and within your own span at yourself and what came before*."
    )
    # Links in Markdown would open a new tab.
    links = "".join(f'<li><a href="{other.PATH}">{other.TITLE}</a> · {other.PURPOSE}</li>' for other in others)
    gr.HTML(f'<ul class="pages">{links}</ul>', apply_default_css=False)
    with gr.Accordion("The masks as text", open=False):
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], max_lines=60)

    def draw():
        loading.libraries()
        figures, text = start.three_masks()
        pictures = [picture.render(figure, f"The mask to {mode}") for figure, mode in zip(figures, MODES, strict=True)]
        return *pictures, text

    demo.load(draw, None, [*places, twin], queue=False, show_progress="hidden", api_name="start")
