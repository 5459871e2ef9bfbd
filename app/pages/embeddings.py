"""Embeddings: sentences and words as vectors, and how alike they are."""

import gradio as gr

from ..components import notice, picture
from ..components.answers import answer, validator
from ..components.header import header
from ..handlers import embeddings
from ..loading import Loading

TITLE, PATH = "Embeddings", "embeddings"
PURPOSE = "Turn sentences and words into vectors that have seen all of their text, and compare them."

SENTENCES = """\
A man plays a guitar.
Someone is playing an instrument.
The cat sleeps on the sofa.
A kitten is taking a nap.
Shares fell sharply today.
The stock market lost value."""
WORDS = ("We sat on the bank of the river.", "The bank lent him some money.")
POOLINGS = [
    ("last token (the paper's)", "last"),
    ("mean of the text's tokens", "mean"),
    ("echo: text twice, causal mask", "echo"),
]


def page(demo: gr.Blocks, loading: Loading) -> None:
    header(demo, loading, TITLE, PURPOSE, PATH)
    model = {"concurrency_id": "model", "concurrency_limit": 1}
    with gr.Tab("Sentences"):
        _sentences(loading, model)
    with gr.Tab("Words"):
        _words(loading, model)


def _sentences(loading: Loading, model: dict) -> None:
    sentences = gr.Textbox(SENTENCES, label="Sentences, one a line", lines=6, max_lines=14)
    pooling = gr.Radio(POOLINGS, value="last", label="The sentence's vector is")
    go = gr.Button("Compare the sentences", variant="primary")
    with gr.Row():
        with gr.Column(min_width=320):
            heatmap = picture.component()
        with gr.Column(min_width=320):
            plane = picture.component()
    with gr.Accordion("Both pictures as text", open=False):
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], buttons=["copy"], max_lines=60)

    @answer
    def compare(sentences: str, pooling: str):
        view = embeddings.compare_sentences(loading.lab(), sentences, pooling)
        return (
            picture.render(view.heatmap, "Similarity of each two sentences"),
            picture.render(view.map, "Sentences on a plane, like ones close together"),
            view.text,
        )

    go.click(
        compare,
        [sentences, pooling],
        [heatmap, plane, twin],
        validator=validator(loading, lambda sentences, _: embeddings.read_sentences(sentences), None),
        api_name="compare_sentences",
        **model,
    )


def _words(loading: Loading, model: dict) -> None:
    gr.Markdown("A word's vector depends on its sentence: the same word can be unlike itself.")
    with gr.Row():
        first = gr.Textbox(WORDS[0], label="First sentence", min_width=260)
        second = gr.Textbox(WORDS[1], label="Second sentence", min_width=260)
    go = gr.Button("Compare the words", variant="primary")
    verdict = notice.component()
    heatmap = picture.component()
    with gr.Accordion("The picture as text", open=False):
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], buttons=["copy"], max_lines=60)

    @answer
    def compare(first: str, second: str):
        view = embeddings.compare_words(loading.lab(), first, second)
        return picture.render(view.heatmap, "Similarity of words"), notice.render(view.sentence), view.text

    go.click(
        compare,
        [first, second],
        [heatmap, verdict, twin],
        validator=validator(
            loading,
            lambda first, _: embeddings.read_words("the first sentence", first),
            lambda _, second: embeddings.read_words("the second sentence", second),
        ),
        api_name="compare_words",
        **model,
    )
