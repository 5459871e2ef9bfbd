"""Embeddings: sentences and words as vectors of several systems, and how alike they are to each."""

import gradio as gr

from .. import limits, links, precomputed
from ..components import notice, picture, table
from ..components.answers import answer, validator
from ..components.header import header
from ..handlers import embeddings
from ..loading import Loading

TITLE, PATH = "Embeddings", "embeddings"
PURPOSE = "Turn sentences and words into vectors that have seen all of their text, and compare them."

WORDS = ("We sat on the bank of the river.", "The bank lent him some money.")
POOLINGS = [
    ("each system's own (LLM2Vec: mean, MAGNET and the base model: last token)", "own"),
    ("last token", "last"),
    ("mean of the text's tokens", "mean"),
]
ABOUT = (
    "**Base model**: causal mask, as it came. **Echo**: the same, but it reads the text twice, and the second copy has "
    "seen the first. **LLM2Vec** and **MAGNET**: an adapter, and the bidirectional mask."
)
NEAREST = "The nearest other sentence to each, by each system (cosine similarity)"

_SIDE_BY_SIDE = """
.side-by-side { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); gap: 20px; }
h3 { margin: 0 0 4px; font-size: 1rem; font-weight: 600; color: var(--body-text-color); }
"""


def page(demo: gr.Blocks, loading: Loading) -> None:
    header(demo, loading, TITLE, PURPOSE, PATH)
    model = {"concurrency_id": "model", "concurrency_limit": 1}
    with gr.Tab("Sentences"):
        inputs = _sentences(demo, loading, model)
    with gr.Tab("Words"):
        inputs |= _words(demo, loading, model)
    links.share(demo, inputs)


def _sentences(demo: gr.Blocks, loading: Loading, model: dict) -> dict:
    """Sentences compared; returns the inputs by name."""
    gr.Markdown(ABOUT)
    sentences = gr.Textbox("\n".join(embeddings.SENTENCES), label="Sentences, one a line", lines=6, max_lines=14)
    with gr.Row():
        upload = gr.UploadButton(
            "Take them from a file (.txt, .csv)", file_types=[".txt", ".csv"], size="sm", min_width=220
        )
        gr.Markdown(
            f"A text file with a sentence on each line, or a CSV file with a column “sentence”; at most "
            f"{limits.SENTENCES} sentences."
        )
    wrong = notice.component(problem=True)
    chosen = _chosen(demo, loading)
    pooling = gr.Radio(POOLINGS, value="own", label="The sentence's vector is")
    go = gr.Button("Compare the sentences", variant="primary")
    note = notice.component()
    nearest = table.component()
    pictures = _pictures()
    with gr.Accordion("The pictures as text", open=False):
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], buttons=["copy"], max_lines=60)

    def shown(sentences: list[str], compared: list[embeddings.Compared]):
        return (
            table.render(NEAREST, *embeddings.nearest_table(sentences, compared)),
            _side_by_side(compared),
            embeddings.as_text(compared),
        )

    def example():
        loading.libraries()
        kept = precomputed.similarities(loading.name)
        if kept is None:
            return [gr.skip()] * 4
        vectors = {name: embeddings.vectors_of(values) for name, values in kept.similarities.items()}
        compared = [embeddings.compare_vectors(name, found, embeddings.SENTENCES) for name, found in vectors.items()]
        told = f"An example, compared beforehand by {kept.model}."
        return notice.render(told), *shown(embeddings.SENTENCES, compared)

    @answer
    def compare(sentences: str, pooling: str, chosen: list[str]):
        read = embeddings.read_sentences(sentences)
        for compared in embeddings.compare_sentences(loading.lab(), sentences, pooling, chosen):
            yield notice.render(""), *shown(read, compared)

    def read(path: str):
        try:
            return notice.render("", problem=True), embeddings.read_upload(path)
        except ValueError as problem:
            return notice.render(str(problem), problem=True), gr.skip()

    outputs = [note, nearest, pictures, twin]
    demo.load(example, None, outputs, queue=False, show_progress="hidden", api_name="embeddings_example")
    upload.upload(read, upload, [wrong, sentences], queue=False, api_name="read_sentences")
    go.click(
        compare,
        [sentences, pooling, chosen],
        outputs,
        validator=validator(
            loading,
            lambda sentences, *_: embeddings.read_sentences(sentences),
            None,
            lambda _, __, chosen: embeddings.check_systems(chosen, loading.name),
        ),
        api_name="compare_sentences",
        **model,
    )
    return {"sentences": sentences, "chosen": chosen, "pooling": pooling}


def _words(demo: gr.Blocks, loading: Loading, model: dict) -> dict:
    """Words compared; returns the inputs by name."""
    gr.Markdown("A word's vector depends on its sentence: the same word can be unlike itself.")
    with gr.Row():
        first = gr.Textbox(WORDS[0], label="First sentence", min_width=260)
        second = gr.Textbox(WORDS[1], label="Second sentence", min_width=260)
    chosen = _chosen(demo, loading, embeddings.OF_WORDS)
    go = gr.Button("Compare the words", variant="primary")
    verdict = notice.component()
    pictures = _pictures()
    with gr.Accordion("The pictures as text", open=False):
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], buttons=["copy"], max_lines=60)

    @answer
    def compare(first: str, second: str, chosen: list[str]):
        for compared in embeddings.compare_words(loading.lab(), first, second, chosen):
            said = notice.render([one.sentence for one in compared])
            yield _side_by_side(compared), said, embeddings.as_text(compared)

    go.click(
        compare,
        [first, second, chosen],
        [pictures, verdict, twin],
        validator=validator(
            loading,
            lambda first, *_: embeddings.read_words("the first sentence", first),
            lambda _, second, __: embeddings.read_words("the second sentence", second),
            lambda _, __, chosen: embeddings.check_systems(chosen, loading.name, embeddings.OF_WORDS),
        ),
        api_name="compare_words",
        **model,
    )
    return {"first": first, "second": second, "who": chosen}


def _chosen(demo: gr.Blocks, loading: Loading, known=tuple(embeddings.NAMES)) -> gr.CheckboxGroup:
    """A menu of the systems that the model can be; of a model that a visitor chose instead, when the page opens."""
    usual = loading.name

    def offered(model: str) -> dict:
        names = [name for name in embeddings.systems(model) if name in known]
        absent = embeddings.absent(model) or None
        return {"choices": [(embeddings.NAMES[name], name) for name in names], "value": names, "info": absent}

    chosen = gr.CheckboxGroup(label="Who encodes", **offered(usual))
    demo.load(
        lambda: gr.skip() if loading.name == usual else gr.update(**offered(loading.name)),
        None,
        chosen,
        queue=False,
        show_progress="hidden",
        api_visibility="private",
    )
    return chosen


def _pictures() -> gr.HTML:
    return gr.HTML(elem_classes=["picture"], css_template=_SIDE_BY_SIDE, apply_default_css=False)


def _side_by_side(compared: list[embeddings.Compared]) -> str:
    """A heading and the pictures of each system, in a grid."""
    sections = ""
    for one in compared:
        name = embeddings.NAMES[one.system]
        what = "sentences" if one.map is not None else "words"
        drawn = picture.render(one.heatmap, f"{name}: similarity of each two {what}")
        if one.map is not None:
            drawn += picture.render(one.map, f"{name}: sentences on a plane, like ones close together")
        sections += f'<section aria-label="{name}"><h3>{name}</h3>{drawn}</section>'
    return f'<div class="side-by-side">{sections}</div>'
