"""Generate: one beginning, gone on with by a model in several forms, and what each says twice."""

import contextlib
import time

import gradio as gr

from .. import limits, links
from ..components import continuations, notice, picture
from ..components.answers import answer, validator
from ..components.header import header
from ..handlers import adapters, generate
from ..loading import Loading

TITLE, PATH = "Generate", "generate"
PURPOSE = (
    "Let a model write on, as it came and after it was adapted: one that has learned to look both ways may lose the "
    "thread, and say the same again and again."
)

EXAMPLES = [
    "Once upon a time",
    "Tom had a big red ball that he loved.",
    "One day, Lily and Ben went to the park with their mom.",
    "The castle on the hill was",
]
USUAL = (adapters.BASE, "llm2vec", "magnet")  # ticked, where they are there: Figure 5's


def page(demo: gr.Blocks, loading: Loading) -> None:
    header(demo, loading, TITLE, PURPOSE, PATH)
    names = generate.systems(loading.name)
    prefix = gr.Textbox(EXAMPLES[0], label="Beginning", lines=2, max_lines=8)
    examples = gr.Examples(EXAMPLES, prefix, label="Examples")
    chosen = gr.CheckboxGroup(
        [(generate.name(name), name) for name in names],
        value=[name for name in names if name in USUAL],
        label="Who writes",
        info=f"Filling masks takes a whole pass for each token, so it stops at {limits.MASK_FILLING_TOKENS} of them.",
    )
    with gr.Accordion("Options", open=False), gr.Row():
        tokens = gr.Slider(8, limits.NEW_TOKENS, value=128, step=8, label="Tokens at most", min_width=180)
        temperature = gr.Slider(
            0, limits.TEMPERATURE, value=0, step=0.1, label="Temperature (0: always the likeliest)", min_width=180
        )
        seed = gr.Number(0, label="Seed", precision=0, minimum=0, min_width=100)
    with gr.Row():
        go = gr.Button("Write on", variant="primary")
        stop = gr.Button("Stop", variant="stop")
    continuations.legend()
    written = continuations.component()
    with gr.Accordion("The continuations as text", open=False):
        twin = gr.Textbox(
            show_label=False,
            interactive=False,
            elem_classes=["twin"],
            buttons=["copy"],
            max_lines=60,
            info="[ ] four words again, ⟦ ⟧ a sentence again",
        )

    @answer
    def run(prefix: str, chosen: list[str], tokens: int, temperature: float, seed: int):
        shown_at = 0.0
        steps = generate.go_on(loading.lab(), prefix, chosen, tokens, temperature, seed)
        with contextlib.closing(steps):
            for view in steps:
                if all(one.done for one in view) or time.monotonic() - shown_at >= limits.SECONDS_BETWEEN_FRAMES:
                    shown_at = time.monotonic()
                    yield continuations.render(prefix, view), generate.as_text(prefix, view)

    def check(*inputs) -> None:
        generate.check(*inputs, loading.name)

    event = {
        "fn": run,
        "inputs": [prefix, chosen, tokens, temperature, seed],
        "outputs": [written, twin],
        "validator": validator(loading, check, None, None, None, None),
        "concurrency_id": "model",
        "concurrency_limit": 1,
    }
    running = [
        go.click(**event, api_name="generate"),
        examples.load_input_event.then(**event, api_visibility="private"),
    ]
    stop.click(None, cancels=running)
    links.share(demo, {"prefix": prefix, "chosen": chosen, "tokens": tokens, "temperature": temperature, "seed": seed})
    _measured(demo, loading)


def _measured(demo: gr.Blocks, loading: Loading) -> None:
    """The paper's measurements of repetition, and the model's own where they come with the project."""
    gr.Markdown("## Measured on many beginnings")
    places = []
    for _ in generate.FIGURES:
        with gr.Column(visible=False) as column:
            title, sentence = gr.Markdown(), notice.component()
            table = gr.Dataframe(label="Repetition, 0 to 1", interactive=False, wrap=True)
            drawing = picture.component()
            twin = gr.Textbox(label="The picture as text", interactive=False, elem_classes=["twin"], buttons=["copy"])
        places.append((column, title, sentence, table, drawing, twin))

    def show():
        loading.libraries()
        found = {one.id: one for one in generate.measured(loading.name)}
        shown = []
        for name in generate.FIGURES:
            if (one := found.get(name)) is None:
                shown += [gr.update(visible=False), *[gr.skip()] * 5]
                continue
            drawn = "" if one.figure is None else picture.render(one.figure, one.title)
            shown += [
                gr.update(visible=True),
                f"### {one.title}",
                notice.render(one.sentence),
                gr.update(value=one.rows, headers=one.columns),
                drawn,
                gr.update(value=one.twin, visible=bool(one.twin)),
            ]
        return shown

    demo.load(
        show,
        None,
        [place for places_of_one in places for place in places_of_one],
        queue=False,
        show_progress="hidden",
        api_name="generate_measured",
    )
