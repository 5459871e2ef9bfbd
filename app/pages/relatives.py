"""Relatives: three systems beside MAGNET, each with its own answer to who may look at whom."""

import gradio as gr

from .. import limits, links
from ..components import factorization_strip, filled_text, notice, picture, table
from ..components.answers import answer, validator
from ..components.attempt import attempt
from ..components.header import header
from ..handlers import factorization, prefix_lm, restoring
from ..loading import Loading

TITLE, PATH = "Relatives", "relatives"
PURPOSE = (
    "Three neighbours of MAGNET: a prefix read both ways and gone on with, hidden words predicted in any order in one "
    "pass, and a whole sentence in one vector and back out of it."
)

SIX = "The dog ran home to eat"
PREFIXES = ["Tom found a small", "The family went to the", "Her mother said that she", "He looked for his keys"]
SENTENCE = "The girl lost her red ball in the park."
FIRST, SECOND = "He was late for work.", "She found the dog in the park."
PAIRS = [[FIRST, SECOND], ["The dog ran to the door.", ""], ["She made a cake for her mother.", "They went home."]]

AT_ONCE = {"queue": False, "show_progress": "hidden"}
MODEL = {"concurrency_id": "relatives", "concurrency_limit": 2}  # small models of their own, away from the big one's


def page(demo: gr.Blocks, loading: Loading) -> None:
    header(demo, None, TITLE, PURPOSE, PATH)
    with gr.Tab("Prefix LM"):
        inputs = _prefix(demo, loading)
    with gr.Tab("UniLMv2"):
        inputs |= _factorization(demo, loading)
    with gr.Tab("One vector"):
        inputs |= _restoration(demo, loading)
    links.share(demo, inputs)


def _prefix(demo: gr.Blocks, loading: Loading) -> dict:
    """The tab; returns its inputs, by their names in a link. So do the other two."""
    gr.Markdown(
        "What is given, the **prefix**, is known as a whole, so nothing is gained by hiding its end from its "
        "beginning: it is read in both directions. What is still to be written is read from left to right. In MAGNET's "
        "terms: the prefix is context, and the target one span at the end."
    )
    text = gr.Textbox(SIX, label="Text", max_lines=2)
    with gr.Row():
        prefix = gr.Slider(1, limits.RELATIVES_WORDS - 1, value=3, step=1, label="Words of the prefix", min_width=200)
        layers = gr.Slider(1, limits.RELATIVES_LAYERS, value=2, step=1, label="After how many layers", min_width=200)
    problem = notice.component(problem=True)
    sentences = notice.component()
    modes = picture.component()
    gr.Markdown("### A mask that leaks")
    leaks = notice.component()
    with gr.Row():
        with gr.Column(min_width=300):
            gr.Markdown("**Sound**: the prefix sees the prefix alone")
            sound = picture.component()
        with gr.Column(min_width=300):
            gr.Markdown("**As in the chapter's code**: the prefix sees the target too. ○ is heard of through others")
            leaking = picture.component()
    with gr.Accordion("The masks as text", open=False):
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], buttons=["copy"], max_lines=60)

    def draw(text: str, prefix: int, layers: int):
        loading.libraries()
        view = prefix_lm.draw_masks(text, prefix, layers)
        return (
            notice.render(view.sentences),
            picture.render(view.modes, "Three masks side by side"),
            notice.render(view.leaks),
            picture.render(view.sound, "The prefix mask"),
            picture.render(view.leaking, "The prefix mask of the chapter's code"),
            view.text,
            gr.update(maximum=max(2, view.length - 1), value=view.prefix),
        )

    inputs, outputs = [text, prefix, layers], [sentences, modes, leaks, sound, leaking, twin, prefix]
    gr.on(
        [demo.load, *(place.change for place in inputs)],
        attempt(draw, len(outputs)),
        inputs,
        [problem, *outputs],
        trigger_mode="always_last",
        api_name="prefix_masks",
        **AT_ONCE,
    )
    return {"text": text, "prefix": prefix, "layers": layers, "beginning": _going_on(demo, loading)}


def _going_on(demo: gr.Blocks, loading: Loading) -> gr.Textbox:
    gr.Markdown(
        "### A small prefix model\nTwo models of a third of a million numbers, trained alike on short stories, but for "
        "the mask. Losses are in nats a word, on stories that they have not seen. Under a sound mask, what is measured "
        "in training is what is met in writing."
    )
    losses = table.component()
    beginning = gr.Textbox(PREFIXES[0], label="Prefix to go on with", max_lines=2)
    gr.Examples(PREFIXES, beginning, label="Examples")
    with gr.Row():
        temperature = gr.Slider(
            0, limits.TEMPERATURE, value=0, step=0.1, label="Temperature (0: always the likeliest)", min_width=180
        )
        seed = gr.Number(0, label="Seed of the writing", precision=0, minimum=0, min_width=100)
    go = gr.Button("Go on", variant="primary")
    about = notice.component()
    with gr.Row():
        places = []
        for name in prefix_lm.MODELS.values():
            with gr.Column(min_width=280):
                places.append(filled_text.component(_heading(name)))

    @answer
    def write(prefix: str, temperature: float, seed: int):
        loading.libraries()
        found, sentences = prefix_lm.go_on(prefix, temperature, seed)
        return notice.render(sentences), *(filled_text.render(found[name], _heading(name)) for name in found)

    def measured():
        loading.libraries()
        try:
            rows = prefix_lm.measured()
        except ValueError as missing:
            return notice.render(str(missing), problem=True)
        return table.render(
            "Loss on held-out stories (nats a word)", ["trained under", "in one pass", "in writing"], rows
        )

    inputs = [beginning, temperature, seed]
    go.click(
        write,
        inputs,
        [about, *places],
        validator=validator(loading, prefix_lm.check, None, None),
        api_name="prefix_lm",
        **MODEL,
    )
    demo.load(measured, None, losses, api_visibility="private", show_progress="hidden", concurrency_limit=None)
    return beginning


def _heading(name: str) -> str:
    return f"Under the {name.removeprefix('the ')}"


def _factorization(demo: gr.Blocks, loading: Loading) -> dict:
    gr.Markdown(
        "**A factorization, step by step.** Some words of a sentence are hidden. In which order are they predicted, "
        "and what does each prediction know? "
        "UniLMv2 answers many such questions in **one** pass: a conventional mask `[M]` stands for each hidden word, "
        "and for each step of the order its *pseudo masks* `[P]` and its true words are put behind, at the same "
        "positions. Who sees whom (Figure 5) keeps the answers out of sight."
    )
    sentence = gr.Textbox(SENTENCE, label="Sentence", max_lines=2)
    with gr.Row():
        method = gr.Radio(list(factorization.METHODS), value="PAR", label="How it is predicted", min_width=200)
        number = gr.Slider(1, limits.RELATIVES_WORDS, value=1, step=1, label="Step", min_width=200)
        seed = gr.Number(0, label="Seed of the order", precision=0, minimum=0, min_width=100)
    with gr.Row():
        back = gr.Button("Step back", min_width=120)
        forth = gr.Button("Next step", variant="primary", min_width=120)
        again = gr.Button("Draw another order", min_width=120)
    problem = notice.component(problem=True)
    strip = factorization_strip.component()
    sentences = notice.component()
    drawing = picture.component()
    with gr.Accordion("The order and the mask as text", open=False):
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], buttons=["copy"], max_lines=60)

    def draw(sentence: str, method: str, seed: int, number: int):
        loading.libraries()
        view = factorization.step(sentence, method, seed, number)
        now = min(int(number), view.steps)
        return (
            factorization_strip.render(view.row, f"The row of one pass, by step {now} of {view.steps}"),
            notice.render(view.sentences),
            picture.render(view.figure, f"The mask of Figure 5 by step {now}"),
            view.text,
            gr.update(maximum=max(2, view.steps), value=now),
        )

    inputs, outputs = [sentence, method, seed, number], [strip, sentences, drawing, twin, number]
    gr.on(
        [demo.load, *(place.change for place in inputs)],
        attempt(draw, len(outputs)),
        inputs,
        [problem, *outputs],
        trigger_mode="always_last",
        api_name="unilmv2_step",
        **AT_ONCE,
    )
    for button, change in ((back, -1), (forth, 1)):
        button.click(
            lambda number, change=change: max(1, min(limits.RELATIVES_WORDS, int(number or 1) + change)),
            number,
            number,
            api_visibility="private",
            **AT_ONCE,
        )
    again.click(lambda seed: (int(seed or 0) + 1, 1), seed, [seed, number], api_visibility="private", **AT_ONCE)
    return {"sentence": sentence, "method": method, "seed": seed, "step": number}


def _restoration(demo: gr.Blocks, loading: Loading) -> dict:
    gr.Markdown(
        "**Sentence → vector → sentence.** An encoder turns a sentence into one vector, and a decoder with a gating "
        "layer writes a sentence from "
        "nothing but that. So what comes back shows what a vector can hold. Between the vectors of two sentences there "
        "are points that no sentence was encoded to: what stands there?"
    )
    measured = notice.component()
    first = gr.Textbox(FIRST, label="First sentence", max_lines=2)
    second = gr.Textbox(SECOND, label="Second sentence, or none", max_lines=2)
    gr.Examples(PAIRS, [first, second], label="Examples")
    go = gr.Button("Encode and restore", variant="primary")
    restored = table.component()
    about = notice.component()

    @answer
    def restore(first: str, second: str):
        loading.libraries()
        found, sentences = restoring.restore(first, second)
        return _restored(found), notice.render(sentences)

    def how_well():
        loading.libraries()
        try:
            return notice.render(restoring.measured())
        except ValueError as missing:
            return notice.render(str(missing), problem=True)

    go.click(
        restore,
        [first, second],
        [restored, about],
        validator=validator(
            loading,
            lambda first, _: restoring.check_sentence("the first sentence", first),
            lambda _, second: second and second.strip() and restoring.check_sentence("the second sentence", second),
        ),
        api_name="restore",
        **MODEL,
    )
    demo.load(how_well, None, measured, api_visibility="private", show_progress="hidden", concurrency_limit=None)
    return {"first": first, "second": second}


def _restored(found: list[restoring.Restored]) -> str:
    if len(found) == 1:
        rows = [["its own vector", found[0].text, f"{found[0].first:.0f}"]]
        return table.render("What came back", ["restored from", "sentence", "ROUGE-L"], rows)
    rows = [
        [f"{100 * (1 - one.share):.0f} % first, {100 * one.share:.0f} % second", one.text, f"{one.first:.0f}",
         f"{one.second:.0f}"]
        for one in found
    ]  # fmt: skip
    columns = ["restored from", "sentence", "ROUGE-L, first", "ROUGE-L, second"]
    return table.render("What came back, and what lies between", columns, rows)
