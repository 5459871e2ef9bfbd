"""Infill: fill the blanks of a story with both sides in view, next to what the left side alone makes of them, or what
other systems do."""

import contextlib
import time

import gradio as gr

from .. import limits, links, precomputed
from ..components import filled_text, notice, shaded_text
from ..components.answers import answer, validator
from ..components.header import header
from ..handlers import infill
from ..loading import Loading

TITLE, PATH = "Infill", "infill"
PURPOSE = "Write a story with blanks in it; the model fills them with both sides in view."

BOTH, LEFT = "With both sides in view (infill)", "With the left side only in view (ordinary generation)"

EXAMPLES = [
    infill.STORY,
    "John was at the gym. [blank] He couldn't get the barbell off his chest.",
    "She ate [blank:3] for breakfast and [blank:1-4] for lunch.",
    "Lily was scared of the dark. [blank:8-16] Now she sleeps well every night.",
]
BEST = "The best one, token by token"
USUAL = ("unidirectional", "line-by-line", "five-shot", "magnet", "llm2vec")  # ticked, where they are there


def page(demo: gr.Blocks, loading: Loading) -> None:
    header(demo, loading, TITLE, PURPOSE, PATH)
    story = gr.Textbox(
        EXAMPLES[0],
        label="Story",
        lines=4,
        max_lines=14,
        info="[blank] has a length of the model's choosing, [blank:12] twelve tokens, [blank:8-16] eight to sixteen.",
    )
    examples = gr.Examples(EXAMPLES, story, label="Examples")
    with gr.Accordion("Options", open=False), gr.Row():
        candidates = gr.Slider(1, limits.CANDIDATES, value=3, step=1, label="Candidates", min_width=180)
        temperature = gr.Slider(0, limits.TEMPERATURE, value=0, step=0.1, label="Temperature", min_width=180)
        seed = gr.Number(0, label="Seed", precision=0, minimum=0, min_width=100)
        in_turn = gr.Checkbox(label="One blank after the other, each seeing the last", min_width=200)
    with gr.Row():
        go = gr.Button("Fill the blanks", variant="primary")
        stop = gr.Button("Stop", variant="stop")
    with gr.Row():
        with gr.Column(min_width=300):
            filled = filled_text.component(BOTH)
        with gr.Column(min_width=300):
            left_only = filled_text.component(LEFT)
    table = gr.Dataframe(
        headers=infill.CANDIDATE_COLUMNS,
        datatype=["number", "str", "number"],
        label="Candidates, best first. Score: mean log-probability of a token, 0 is certain",
        interactive=False,
        wrap=True,
        column_widths=["12%", "62%", "26%"],
    )
    best = shaded_text.component()
    gr.Markdown(
        "## Your own answer\nHow likely does the model find what *you* would write there? One line for each blank."
    )
    own = gr.Textbox("He lost his ball.", label="Your answer", lines=2)
    score = gr.Button("Score my answer")
    verdict = notice.component()
    scores = gr.Dataframe(
        headers=infill.SCORE_COLUMNS, datatype=["str", "number", "number"], label="Your answer, read in two ways",
        interactive=False, wrap=True, column_widths=["40%", "34%", "26%"],
    )  # fmt: skip

    @answer
    def run(story: str, candidates: int, temperature: float, seed: int, in_turn: bool):
        shown_at = 0.0
        with contextlib.closing(infill.infill(loading.lab(), story, candidates, temperature, seed, in_turn)) as views:
            for view in views:
                if view.done or time.monotonic() - shown_at >= limits.SECONDS_BETWEEN_FRAMES:
                    shown_at = time.monotonic()
                    yield (
                        filled_text.render(view.filled, BOTH),
                        filled_text.render(view.left_only, LEFT),
                        view.candidates,
                        shaded_text.render(view.shades, BEST),
                    )

    @answer
    def rate(story: str, own: str):
        rows, sentence = infill.score_answer(loading.lab(), story, own)
        return rows, notice.render(sentence)

    model = {"concurrency_id": "model", "concurrency_limit": 1}
    options = [story, candidates, temperature, seed, in_turn]

    def check(story: str, *_) -> None:
        infill.check_story(story, loading.lab_now)

    checks = validator(loading, check, None, None, None, None)
    event = {"fn": run, "inputs": options, "outputs": [filled, left_only, table, best], "validator": checks, **model}
    running = [
        go.click(**event, api_name="infill"),
        examples.load_input_event.then(**event, api_visibility="private"),
    ]
    stop.click(None, cancels=running)
    score.click(
        rate,
        [story, own],
        [scores, verdict],
        validator=validator(loading, check, infill.check_answer),
        api_name="score_infill",
        **model,
    )
    chosen = _by_each(demo, loading, story, temperature, seed, model)
    links.share(
        demo,
        {
            "story": story,
            "candidates": candidates,
            "temperature": temperature,
            "seed": seed,
            "in_turn": in_turn,
            "own": own,
            "chosen": chosen,
        },
    )


def _by_each(demo: gr.Blocks, loading: Loading, story, temperature, seed, model: dict) -> gr.CheckboxGroup:
    """The same story filled by every system, one after the other; returns where they are chosen."""
    usual = loading.name  # a visitor may have chosen another model

    def offered(model: str) -> dict:
        names = infill.systems(model)
        return {"choices": [(infill.name(name), name) for name in names], "info": infill.absent(model) or None}

    gr.Markdown(
        "## Every system, side by side\nThe same story, filled by the base model as it came, by the base model asked "
        "in words (the paper's four prompts, and one of them with five solved examples), and by its adapters."
    )
    chosen = gr.CheckboxGroup(
        value=[name for name in infill.systems(usual) if name in USUAL],
        label="Who fills the blanks of the story above",
        **offered(usual),
    )
    with gr.Row():
        go = gr.Button("Fill by each", variant="primary")
        stop = gr.Button("Stop the systems", variant="stop")
    note = notice.component()
    fillings = shaded_text.component()
    with gr.Accordion("All of them as text", open=False):
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], buttons=["copy"], max_lines=60)

    def example():
        loading.libraries()
        menu = gr.skip() if loading.name == usual else gr.update(**offered(loading.name))
        kept = precomputed.fillings(loading.name)
        if kept is None:
            return menu, *[gr.skip()] * 3
        told = f"An example, filled beforehand by {kept.model}: {infill.STORY}"
        return menu, notice.render(told), shaded_text.render_each(kept.fillings), infill.as_text(kept.fillings)

    @answer
    def run(story: str, chosen: list[str], temperature: float, seed: int):
        shown_at = 0.0
        with contextlib.closing(infill.fill_by_each(loading.lab(), story, chosen, temperature, seed)) as views:
            for view in views:
                if all(one.done for one in view) or time.monotonic() - shown_at >= limits.SECONDS_BETWEEN_FRAMES:
                    shown_at = time.monotonic()
                    yield notice.render(""), shaded_text.render_each(view), infill.as_text(view)

    def check(*inputs) -> None:
        infill.check_systems(*inputs, loading.name, loading.lab_now)

    outputs = [note, fillings, twin]
    demo.load(example, None, [chosen, *outputs], queue=False, show_progress="hidden", api_name="infill_example")
    running = go.click(
        run,
        [story, chosen, temperature, seed],
        outputs,
        validator=validator(loading, check, None, None, None),
        api_name="infill_by_each",
        **model,
    )
    stop.click(None, cancels=running)
    return chosen
