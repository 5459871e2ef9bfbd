"""Masks: mark spans in a text and see who may look at whom."""

import gradio as gr

from .. import limits
from ..components import notice, picture, token_strip
from ..components.header import header
from ..handlers import masks
from ..loading import Loading

TITLE, PATH = "Masks", "masks"
PURPOSE = "Type a text, mark spans in it, and see who may look at whom, token by token."

TEXT, SPANS = "Tom went to the park. He lost his ball. He was very sad.", "6-10"
MODES = [("causal", "causal"), ("bidirectional", "bidirectional"), ("prefix", "prefix"), ("MAGNET", "magnet")]
LOOK, MARK = "look", "mark"


def page(demo: gr.Blocks, loading: Loading) -> None:
    header(demo, None, TITLE, PURPOSE, PATH)
    text = gr.Textbox(TEXT, label="Text", lines=2, max_lines=6)
    problem = notice.component(problem=True)
    mode = gr.Radio(MODES, value="magnet", label="Mask")
    strip = token_strip.component()
    sentences = notice.component()
    with gr.Row():
        with gr.Column(scale=3, min_width=320):
            drawing = picture.component()
        with gr.Column(scale=2, min_width=300):
            with gr.Group():
                token = gr.Number(label="Token looked at", precision=0, minimum=0, value=8)
                layers = gr.Slider(1, limits.MASK_LAYERS, value=1, step=1, label="After how many layers")
                leak = gr.Checkbox(label="Break the rule: let the context see the spans")
            prefix_length = gr.Slider(
                0, limits.MASK_TOKENS, value=5, step=1, label="Length of the prefix in tokens", visible=False
            )
            with gr.Column() as span_controls:
                with gr.Group():
                    click = gr.Radio(
                        [("looks at it", LOOK), ("begins or ends a span, or removes one", MARK)],
                        value=LOOK,
                        label="A click on a token",
                    )
                    spans = gr.Textbox(SPANS, label="Spans, from token to token", placeholder="3-5, 9-11")
                with gr.Row():
                    mark = gr.Button("Begin or end a span at the token looked at", size="sm", min_width=180)
                    clear = gr.Button("Remove all spans", size="sm", min_width=120)
    with gr.Accordion("The mask as text", open=False):
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], buttons=["copy"], max_lines=60)

    def tokens_of(text: str) -> list[str]:
        return masks.split(loading.tokenizer(), text)

    def complaint(wrong: ValueError | str) -> str:
        return notice.render(str(wrong), problem=True)

    def draw(text, mode, spans, prefix_length, leak, layers, token):
        try:
            view = masks.draw_mask(tokens_of(text), mode, spans, prefix_length, leak, layers, token)
        except ValueError as wrong:
            return complaint(wrong), *[gr.skip()] * 4
        return (
            complaint(""),
            token_strip.render(view.strip, "Tokens of the text: arrow keys walk, Enter picks"),
            picture.render(view.figure, "The attention mask"),
            notice.render(view.sentences),
            view.text,
        )

    def marked(text, spans, token):
        try:
            return complaint(""), masks.mark(spans, token, len(tokens_of(text)))
        except ValueError as wrong:
            return complaint(wrong), gr.skip()

    def picked(text, mode, spans, click, event: gr.EventData):
        index = event._data["index"]
        marks = click == MARK and mode == "magnet"
        return index, *(marked(text, spans, index) if marks else (gr.skip(), gr.skip()))

    at_once = {"queue": False, "show_progress": "hidden"}
    settings = [text, mode, spans, prefix_length, leak, layers, token]
    gr.on(
        [demo.load, *(setting.change for setting in settings)],
        draw,
        settings,
        [problem, strip, drawing, sentences, twin],
        trigger_mode="always_last",
        api_name="masks",
        **at_once,
    )
    # What was picked comes with the click itself, which no client of the API can make.
    strip.pick(picked, [text, mode, spans, click], [token, problem, spans], api_visibility="private", **at_once)
    mark.click(marked, [text, spans, token], [problem, spans], api_name="masks_mark", **at_once)
    clear.click(lambda: "", None, spans, api_name="masks_clear", **at_once)
    mode.change(
        lambda mode: (gr.update(visible=mode == "magnet"), gr.update(visible=mode == "prefix")),
        mode,
        [span_controls, prefix_length],
        api_visibility="private",
        **at_once,
    )
