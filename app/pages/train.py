"""Train: an adapter of `tiny` learns while its losses are drawn, and can be taken home."""

import contextlib
import dataclasses
import re
import time

import gradio as gr

from .. import limits, links
from ..components import download, filled_text, notice, picture
from ..components.answers import validator
from ..components.header import header
from ..handlers import train, training_asked, training_view
from ..loading import Loading

TITLE, PATH = "Train", "train"
PURPOSE = (
    "Watch a decoder learn to look both ways: the bundled model tiny gets a new adapter, with the three objectives "
    "weighed as you like. The other pages keep the model that they have."
)

ABOUT = (
    "A step takes 8 stories for **MNTP** (hidden words) and **MSG** (missing stretches), and 12 pairs of sentences for "
    "**SSCL** (a sentence and its paraphrase). The total is λ₁ MNTP + λ₂ SSCL + λ₃ MSG (Equation 5). What is trained "
    "is a LoRA adapter, 16 directions for each matrix; the weights beneath it stay as they are. The bundled adapter of "
    "`tiny` took 900 larger steps: a hundred show how it begins. A training goes on while this page is "
    "loaded anew, and ends soon after it is closed."
)
STORY = "Tom had a red ball. [blank] He was very sad."
# Whose training it is when a page is loaded anew: no more than a number that nobody can guess, and that the tab keeps.
KEY, IS_KEY = "magnet-lab-training", re.compile("[0-9a-f]{32}")
KEPT_KEY = f"""
() => {{
  const made = () => [...crypto.getRandomValues(new Uint8Array(16))].map(n => n.toString(16).padStart(2, '0')).join('');
  sessionStorage.setItem('{KEY}', sessionStorage.getItem('{KEY}') || made());
  return [sessionStorage.getItem('{KEY}')];
}}
"""
SAMPLES, SECONDS_BETWEEN_PICTURES = "The story, as it is filled while tiny learns", 1.5


def page(demo: gr.Blocks, loading: Loading) -> None:
    header(demo, None, TITLE, PURPOSE, PATH)
    gr.Markdown(ABOUT)
    with gr.Row():
        lambdas = [
            gr.Slider(0, limits.LAMBDA, value=1, step=0.1, label=label, min_width=200)
            for label in ("λ₁ of MNTP", "λ₂ of SSCL", "λ₃ of MSG")
        ]
    with gr.Row():
        steps = gr.Slider(1, limits.TRAINING_STEPS, value=min(40, limits.TRAINING_STEPS), step=1, label="Steps")
        rate = gr.Number(
            1e-3,
            label="Learning rate",
            minimum=limits.LOWEST_RATE,
            maximum=limits.HIGHEST_RATE,
            step=1e-4,
            info="0.001 is the recipe's. 0.01 is too much: try it.",
        )
    story = gr.Textbox(STORY, label="Story to fill while it learns", lines=2, max_lines=4, info="With one [blank].")
    with gr.Accordion("Train on my own text", open=False):
        own = gr.Textbox(
            label="Your text, one short text a line",
            lines=6,
            max_lines=12,
            info=f"At least {limits.OWN_LINES} lines of {limits.OWN_WORDS} words, at most {limits.OWN_CHARACTERS:,} "
            "characters; empty for the bundled stories. It is kept for this training alone, and deleted soon after "
            "the page is closed. SSCL keeps to bundled sentences, which have paraphrases.",
        )
    with gr.Row():
        begin = gr.Button("Train", variant="primary", min_width=120)
        stop = gr.Button("Stop", variant="stop", min_width=120)
        further = gr.Button("Go on", visible=False, min_width=120)
    status = notice.component()
    files = download.component()
    gr.Markdown("## Losses")
    losses = picture.component()
    gr.Markdown("## Samples")
    samples = filled_text.component(SAMPLES)
    with gr.Accordion("Losses and samples as text", open=False):
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], buttons=["copy"], max_lines=60)

    def shown(views):
        """Each view on the page; the picture is drawn when there is time for it, as it takes a tenth of a second."""
        drawn_at, drawn = 0.0, None
        with contextlib.closing(views):
            try:
                for view in views:
                    content, files, now = [gr.skip()] * 3, gr.skip(), time.monotonic()
                    there = len(view.history), len(view.samples)
                    if not view.going or (there != drawn and now - drawn_at >= SECONDS_BETWEEN_PICTURES):
                        drawn_at, drawn = now, there
                        figure = training_view.picture(view.history)
                        losses = picture.render(figure.figure, "Losses by step") if figure else ""
                        content = [losses, _samples(view), training_view.as_text(view)]
                    if not view.going:
                        files = _files(view)
                    yield notice.render(view.sentence), *content, files, gr.update(visible=view.can_go_on)
            except ValueError as problem:  # told where it goes on to be seen, as what there is stays
                yield notice.render(str(problem), problem=True), *[gr.skip()] * 5

    def opened(request: gr.Request | None) -> str:
        return (request and request.session_hash) or "nobody"

    def run(mntp: float, sscl: float, msg: float, steps: int, rate: float, story: str, own: str, request: gr.Request):
        yield [notice.render("…"), "", _samples(training_view.View("")), "", "", gr.update(visible=False)]
        loading.libraries()
        yield from shown(train.train(opened(request), mntp, sscl, msg, steps, rate, story, own))

    def run_on(request: gr.Request):
        loading.libraries()
        yield from shown(train.go_on(opened(request)))

    def halt(request: gr.Request):
        train.stop(opened(request))

    def come_back(key: str, request: gr.Request):
        """What was asked for, if the page was loaded anew while it is trained, or after."""
        asked = train.enter(opened(request), key) if IS_KEY.fullmatch(key or "") else None
        return [gr.skip()] * len(inputs) if asked is None else list(dataclasses.astuple(asked))

    def look_on(request: gr.Request):
        yield [gr.skip()] * len(outputs)
        yield from shown(train.watch(opened(request)))

    def leave(request: gr.Request):
        train.leave(opened(request))

    inputs = [*lambdas, steps, rate, story, own]
    outputs = [status, losses, samples, twin, files, further]
    # Visitors wait for their turn in the handler, which can say why and how long, and away from the model's queue.
    place = {"concurrency_id": "training", "concurrency_limit": None, "show_progress": "hidden"}
    begin.click(
        run,
        inputs,
        outputs,
        # Told beside the story, as sliders show no message.
        validator=validator(loading, *[None] * 5, training_asked.check, None),
        api_name="train",
        **place,
    )
    further.click(run_on, None, outputs, api_name="train_on", **place)
    stop.click(halt, None, None, queue=False, show_progress="hidden", api_name="train_stop")
    key = gr.Textbox(visible=False)
    back = demo.load(come_back, key, inputs, js=KEPT_KEY, queue=False, show_progress="hidden", api_visibility="private")
    back.then(look_on, None, outputs, api_visibility="private", **place)
    demo.unload(leave)
    names = ("mntp", "sscl", "msg", "steps", "rate", "story")
    links.share(demo, dict(zip(names, inputs, strict=False)))


def _samples(view: training_view.View) -> str:
    if not view.samples:
        return filled_text.render([], SAMPLES)
    return "".join(filled_text.render(pieces, training_view.sample_name(step)) for step, pieces in view.samples)


def _files(view: training_view.View) -> str:
    if view.adapter is None:
        return ""
    steps = len(view.history)
    size = len(view.adapter) / 1e6
    return download.render(
        (f"Download the adapter after {steps} steps ({size:.1f} MB)", f"magnet-tiny-{steps}-steps.zip", view.adapter)
    )
