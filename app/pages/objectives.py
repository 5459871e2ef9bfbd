"""Objectives: Figure 4 walked through on a text of one's own, from its three views to the total loss."""

import gradio as gr

from .. import limits, links
from ..components import notice, picture, predictions_table, views_strip
from ..components.answers import answer, validator
from ..components.header import header
from ..handlers import adapters, objectives
from ..loading import Loading

TITLE, PATH = "Objectives", "objectives"
PURPOSE = "Follow a text of yours through training: three views of it, what each position is to predict, three losses."

TEXT = (
    "One day, Tom and Lily went to the big park. They saw a small dog. The dog was sad because it did not have a ball."
)
PAIRS = """\
Tom was very happy because he found a big shell.
The small rabbit was scared of the dog. | A tiny bunny feared the dog.
One day, Lily and Ben went to the shop.
He did not see the small bird near the road.
Mom was angry with the two boys. | The boys made their mother mad."""

ABOUT_X = (
    "**x**, the text, and **x⁺**, the same in other words: everything is context, so every token sees every token. \
The state of the last token, `</s>` or the like, is the sentence's vector. **SSCL** brings the two vectors together."
)
ABOUT_XM = "**xᵐ**: spans of the text are missing (underlined), and a fifth of the rest is hidden (dashed): of the \
hidden tokens about 80 % become the mask token, 10 % a random one, and 10 % stay. One pass serves two objectives. \
**MNTP** asks for the hidden tokens, **MSG** for those of the spans, and each is predicted *from the position before \
it*: what stands under a token is what comes next in the text. Pick a token."

NAMES = ("x", "x⁺", "xᵐ")


def page(demo: gr.Blocks, loading: Loading) -> None:
    header(demo, loading, TITLE, PURPOSE, PATH)
    model = {"concurrency_id": "model", "concurrency_limit": 1}
    names = adapters.available(loading.name)
    text = gr.Textbox(TEXT, label="Text", lines=2, max_lines=6)
    problem = notice.component(problem=True)
    with gr.Row():
        again = gr.Button("Draw spans and hidden tokens again", min_width=220)
        seed = gr.Number(0, label="Seed of the draw", precision=0, minimum=0, min_width=120)
        adapter = gr.Radio(
            [(adapters.NAMES[name], name) for name in names],
            value="magnet" if "magnet" in names else adapters.BASE,
            label="Who is asked",
            min_width=260,
        )
    draw = _views(demo, loading, text, seed, again, problem)
    mntp, msg = _predictions(loading, text, seed, adapter, draw, model)
    sscl, contrast = _contrast(loading, adapter, model)
    lambdas = _total(demo, mntp, sscl, msg)
    links.share(demo, {"text": text, "seed": seed, "adapter": adapter, **contrast, **lambdas})


def _views(demo: gr.Blocks, loading: Loading, text, seed, again, problem) -> dict:
    """The views of the text, drawn without the model; returns the event, for others to draw them once more."""
    gr.Markdown("## Three views of a text")
    gr.Markdown(ABOUT_X)
    first = views_strip.component()
    about = notice.component()
    second = views_strip.component()
    gr.Markdown(ABOUT_XM)
    third = views_strip.component(pick=True)
    position = gr.Number(None, label="Position looked at", precision=0, minimum=0)
    sentences = notice.component()
    with gr.Accordion("The views as pictures, and their masks", open=False) as accordion:
        pictures = [picture.component()]
        with gr.Row():
            for name in NAMES:
                with gr.Column(min_width=280):
                    gr.Markdown(f"Mask of **{name}**")
                    pictures.append(picture.component())
    with gr.Accordion("The views as text", open=False):
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], buttons=["copy"], max_lines=60)
    is_open = gr.State(False)  # pictures take a second, so they are drawn for those who look

    def draw(text, seed, position):
        try:
            views = objectives.draw_views(loading.tokenizer(), text, seed, position)
        except ValueError as wrong:
            return notice.render(str(wrong), problem=True), *[gr.skip()] * 6
        return (
            notice.render("", problem=True),
            views_strip.render(views.text, "View x"),
            views_strip.render(views.paraphrase, "View x⁺"),
            views_strip.render(views.masked, "View xᵐ: arrow keys walk, Enter picks", pick=True),
            notice.render(views.about_paraphrase),
            notice.render(views.about_masked),
            views.twin,
        )

    @answer
    def draw_pictures(text: str, seed: int, position: float | None):
        drawn = objectives.draw_pictures(loading.tokenizer(), text, seed, position)
        masks = [picture.render(mask, f"Mask of {name}") for mask, name in zip(drawn.masks, NAMES, strict=True)]
        return picture.render(drawn.predicts, "What each position reads and predicts"), *masks

    def draw_if_open(is_open, text, seed, position):
        try:
            return draw_pictures(text, seed, position) if is_open else [gr.skip()] * len(pictures)
        except gr.Error:
            return [gr.skip()] * len(pictures)  # the text's other event says what is wrong

    inputs, changes = [text, seed, position], [text.change, seed.change, position.change]
    at_once = {"queue": False, "show_progress": "hidden"}
    event = {
        "fn": draw,
        "inputs": inputs,
        "outputs": [problem, first, second, third, about, sentences, twin],
        "trigger_mode": "always_last",
        **at_once,
    }
    gr.on([demo.load, *changes], **event, api_name="objectives")
    gr.on(
        changes,
        draw_if_open,
        [is_open, *inputs],
        pictures,
        trigger_mode="always_last",
        queue=False,
        show_progress="hidden",
        api_visibility="private",
    )
    accordion.expand(draw_pictures, inputs, pictures, queue=False, api_name="objectives_pictures")
    accordion.expand(lambda: True, None, is_open, api_visibility="private", **at_once)
    accordion.collapse(lambda: False, None, is_open, api_visibility="private", **at_once)
    again.click(lambda seed: int(seed or 0) + 1, seed, seed, api_visibility="private", **at_once)
    # What was picked comes with the click itself, which no client of the API can make.
    third.pick(_picked, None, position, api_visibility="private", **at_once)
    return event


def _picked(event: gr.EventData):
    return event._data["index"]


def _predictions(loading: Loading, text, seed, adapter, draw: dict, model: dict) -> tuple[gr.Textbox, gr.Textbox]:
    """What the model says of xᵐ; returns the places of its two losses."""
    gr.Markdown(
        "## What the model says\nAt each position that is asked: the five likeliest tokens, the true one framed."
    )
    name = "The model's five likeliest tokens at each position"
    ask = gr.Button("Ask the model", variant="primary")
    verdict = notice.component()
    table = predictions_table.component(name)
    with gr.Row():
        mntp = _loss("MNTP")
        msg = _loss("MSG")
    with gr.Accordion("The table as text", open=False):
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], buttons=["copy"], max_lines=60)

    @answer
    def predict(text: str, seed: int, adapter: str):
        found = objectives.predict(loading.lab(), text, seed, adapter)
        rows = predictions_table.render(found.rows, name)
        return rows, notice.render(found.sentence), _written(found.mntp), _written(found.msg), found.twin

    outputs = [table, verdict, mntp, msg, twin]
    # The views may have been drawn before the model's own tokenizer was there.
    ask.click(
        predict,
        [text, seed, adapter],
        outputs,
        validator=validator(loading, lambda text, *_: objectives.check_text(loading.tokenizer(), text), None, None),
        api_name="objectives_predict",
        **model,
    ).then(**draw, api_visibility="private")
    # What was said of another text, or by another, is no answer any more.
    gr.on(
        [text.change, seed.change, adapter.change],
        lambda: (predictions_table.render([], name), notice.render(""), "", "", ""),
        None,
        outputs,
        queue=False,
        show_progress="hidden",
        api_visibility="private",
    )
    return mntp, msg


def _contrast(loading: Loading, adapter, model: dict) -> tuple[gr.Textbox, dict]:
    """Sentences told apart by their vectors; returns the place of the loss, and the inputs by name."""
    gr.Markdown(
        "## A sentence and its paraphrase\nSSCL asks each sentence to find its own paraphrase among all of them: the "
        "softmax of their similarities, divided by a temperature τ. Move τ: the model is not asked again."
    )
    pairs = gr.Textbox(
        PAIRS,
        label="Sentences, one a line",
        lines=5,
        max_lines=10,
        info="What follows a | is the sentence's paraphrase; without one it is made by rule.",
    )
    go = gr.Button("Compare the sentences", variant="primary")
    with gr.Row():
        tau = gr.Slider(limits.LOWEST_TAU, 1, value=0.1, step=0.01, label="Temperature τ", min_width=220)
        number = gr.Slider(1, limits.SENTENCE_PAIRS, value=1, step=1, label="Sentence looked at", min_width=220)
        sscl = _loss("SSCL")
    verdict = notice.component()
    with gr.Row():
        with gr.Column(min_width=320):
            heatmap = picture.component()
        with gr.Column(min_width=320):
            row = picture.component()
    with gr.Accordion("Both pictures as text", open=False):
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], buttons=["copy"], max_lines=60)
    kept = gr.State(None)  # the vectors, so that τ asks no model

    def counted(pairs: objectives.Pairs, tau: float, number: int):
        found = objectives.contrast(pairs, tau, number)
        return notice.render(found.sentence), _written(found.loss), found.twin

    def drawn(pairs: objectives.Pairs, tau: float, number: int):
        return picture.render(objectives.draw_row(pairs, tau, number), "How one sentence finds its paraphrase")

    @answer
    def compare(sentences: str, adapter: str, tau: float, number: int):
        found = objectives.encode_pairs(loading.lab(), sentences, adapter)
        similarity = picture.render(objectives.draw_heatmap(found), "Similarity of sentences and paraphrases")
        return found, similarity, drawn(found, tau, number), *counted(found, tau, number)

    @answer
    def count_again(found, tau: float, number: int):
        return [gr.skip()] * 3 if found is None else counted(found, tau, number)

    @answer
    def draw_again(found, tau: float, number: int):
        return gr.skip() if found is None else drawn(found, tau, number)

    numbers = [verdict, sscl, twin]
    go.click(
        compare,
        [pairs, adapter, tau, number],
        [kept, heatmap, row, *numbers],
        validator=validator(loading, lambda pairs, *_: objectives.read_pairs(pairs), *[None] * 3),
        api_name="objectives_contrast",
        **model,
    )
    gr.on(
        [pairs.change, adapter.change],
        lambda: (None, "", "", notice.render(""), "", ""),
        None,
        [kept, heatmap, row, *numbers],
        queue=False,
        show_progress="hidden",
        api_visibility="private",
    )
    # The numbers follow the slider at once, the picture as fast as it can be drawn.
    for update, outputs in ((count_again, numbers), (draw_again, [row])):
        gr.on(
            [tau.change, number.change],
            update,
            [kept, tau, number],
            outputs,
            queue=False,
            show_progress="hidden",
            trigger_mode="always_last",
            api_visibility="private",
        )
    return sscl, {"pairs": pairs, "tau": tau, "number": number}


def _total(demo: gr.Blocks, mntp, sscl, msg) -> dict:
    """The losses added up; returns the weights by name."""
    gr.Markdown(
        "## The total (Equation 5)\nλ₁ MNTP + λ₂ SSCL + λ₃ MSG. The paper trains with 1, 0, 1 and then 1, 9, 1."
    )
    with gr.Row():
        lambdas = [
            gr.Slider(0, limits.LAMBDA, value=value, step=0.1, label=label, min_width=200)
            for label, value in (("λ₁ of MNTP", 1), ("λ₂ of SSCL", 9), ("λ₃ of MSG", 1))
        ]
    whole = notice.component()

    def total(mntp: str, sscl: str, msg: str, lambda_1: float, lambda_2: float, lambda_3: float):
        try:
            losses = (float(loss) if loss else None for loss in (mntp, sscl, msg))
            return notice.render(objectives.total(*losses, lambda_1, lambda_2, lambda_3))
        except ValueError as wrong:
            return notice.render(str(wrong), problem=True)

    inputs = [mntp, sscl, msg, *lambdas]
    gr.on(
        [demo.load, *(part.change for part in inputs)],
        total,
        inputs,
        whole,
        queue=False,
        show_progress="hidden",
        trigger_mode="always_last",
        api_name="objectives_total",
    )
    return {f"lambda_{number}": weight for number, weight in enumerate(lambdas, start=1)}


def _loss(name: str) -> gr.Textbox:
    """A place for a loss; a place for numbers would show, and send, 0 where there is none."""
    return gr.Textbox(label=f"{name} (nats)", placeholder="not asked for yet", interactive=False, min_width=120)


def _written(loss: float | None) -> str:
    return "" if loss is None else f"{loss:.4f}"
