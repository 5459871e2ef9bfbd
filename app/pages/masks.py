"""Masks: mark spans in a text and see who may look at whom, beside other methods' masks; break one, and see it leak."""

import gradio as gr

from .. import limits, links
from ..components import mask_grid, notice, picture, table, token_strip
from ..components.attempt import attempt
from ..components.header import header
from ..handlers import leaks, mask_row, masks
from ..loading import Loading

TITLE, PATH = "Masks", "masks"
PURPOSE = "Type a text, mark spans in it, and see who may look at whom, token by token."

TEXT, SPANS = "Tom went to the park. He lost his ball. He was very sad.", "6-10"
MODES = [(name.lower() if name == mode.capitalize() else name, mode) for mode, name in mask_row.NAMES.items()]
WITH_SPANS = ("magnet", mask_row.UNILMV2)
LOOK, MARK = "look", "mark"
AT_ONCE = {"queue": False, "show_progress": "hidden"}
SIDES = 3


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

    def look(text, mode, spans, prefix_length, leak, layers, token):
        strip, sentences = masks.look(tokens_of(text), mode, spans, prefix_length, leak, layers, token)
        label = "Tokens of the text: arrow keys walk, Enter picks"
        return token_strip.render(strip, label), notice.render(sentences)

    def draw(text, mode, spans, prefix_length, leak, layers, token):
        try:
            view = masks.draw_mask(tokens_of(text), mode, spans, prefix_length, leak, layers, token)
        except ValueError:
            return gr.skip(), gr.skip()  # said above the strip already
        return picture.render(view.figure, "The attention mask"), view.text

    def mark_at(text, spans, token):
        return masks.mark(spans, token, len(tokens_of(text)))

    marked = attempt(mark_at, outputs=1)

    def picked(text, mode, spans, click, event: gr.EventData):
        index = event._data["index"]
        marks = click == MARK and mode in WITH_SPANS
        return index, *(marked(text, spans, index) if marks else (gr.skip(), gr.skip()))

    settings = [text, mode, spans, prefix_length, leak, layers, token]
    # The picture takes a moment, for which nobody should wait who walks along the strip.
    for does, outputs, name in (
        (attempt(look, outputs=2), [problem, strip, sentences], "masks"),
        (draw, [drawing, twin], "masks_picture"),
    ):
        gr.on(
            [demo.load, *(setting.change for setting in settings)],
            does,
            settings,
            outputs,
            trigger_mode="always_last",
            api_name=name,
            **AT_ONCE,
        )
    # What was picked comes with the click itself, which no client of the API can make.
    strip.pick(picked, [text, mode, spans, click], [token, problem, spans], api_visibility="private", **AT_ONCE)
    mark.click(marked, [text, spans, token], [problem, spans], api_name="masks_mark", **AT_ONCE)
    clear.click(lambda: "", None, spans, api_name="masks_clear", **AT_ONCE)
    mode.change(
        lambda mode: (gr.update(visible=mode in WITH_SPANS), gr.update(visible=mode == "prefix")),
        mode,
        [span_controls, prefix_length],
        api_visibility="private",
        **AT_ONCE,
    )
    _side_by_side(tokens_of, text, spans, layers)
    cell = _leak_finder(demo, tokens_of, text, mode, spans, prefix_length)
    names = ("text", "mode", "spans", "prefix_length", "leak", "layers", "token")
    links.share(demo, {**dict(zip(names, settings, strict=True)), "cell": cell})


def _side_by_side(tokens_of, text, spans, layers) -> None:
    """MAGNET beside its relatives: drawn for those who look, as three pictures take a moment."""
    with gr.Accordion("Side by side: MAGNET, prefix LM, UniLMv2", open=False) as accordion:
        gr.Markdown(
            "The same text and the same spans. **MAGNET** writes spans anywhere, each blind to the others. A **prefix "
            "LM** has one target, at the end: what follows the span is not context any more. **UniLMv2** puts masks "
            "in the text, and pseudo masks [P] and the true tokens behind it, so that one pass predicts all at once "
            "([M]) and step by step ([P]). The layers' slider holds for all three."
        )
        wrong = notice.component(problem=True)
        places = []
        with gr.Row():
            for _ in range(SIDES):
                with gr.Column(min_width=300):
                    places.append(picture.component())
        twin = gr.Textbox(
            label="The three masks as text", interactive=False, elem_classes=["twin"], buttons=["copy"], max_lines=60
        )
    is_open = gr.State(False)

    def draw(text, spans, layers):
        views = masks.side_by_side(tokens_of(text), spans, layers)
        pictures = [picture.render(view.figure, f"The mask of {name}") for name, view in views]
        return *pictures, "\n\n".join(f"{name}\n{view.text}" for name, view in views)

    draw = attempt(draw, outputs=SIDES + 1)
    outputs = [wrong, *places, twin]
    accordion.expand(draw, [text, spans, layers], outputs, api_name="masks_side_by_side", **AT_ONCE)
    accordion.expand(lambda: True, None, is_open, api_visibility="private", **AT_ONCE)
    accordion.collapse(lambda: False, None, is_open, api_visibility="private", **AT_ONCE)
    gr.on(
        [text.change, spans.change, layers.change],
        lambda is_open, *settings: draw(*settings) if is_open else [gr.skip()] * len(outputs),
        [is_open, text, spans, layers],
        outputs,
        trigger_mode="always_last",
        api_visibility="private",
        **AT_ONCE,
    )


def _leak_finder(demo: gr.Blocks, tokens_of, text, mode, spans, prefix_length) -> gr.Textbox:
    """What one wrong cell does; returns the place of the cell."""
    gr.Markdown(
        "## Leak finder\nOne wrong cell is enough to spoil a mask, and often not where it is looked for. Make a closed "
        "cell visible: which predictions come to know their own answer, and after how many layers?"
    )
    wrong = notice.component(problem=True)
    with gr.Row():
        cell = gr.Textbox(
            "", label="Cell to make visible", placeholder="row, column, as in 3, 9", max_lines=1, min_width=200
        )
        layers = gr.Slider(
            1, limits.MASK_LAYERS, value=2, step=1, label="The grid after how many layers", min_width=200
        )
        close = gr.Button("Close the cell again", size="sm", min_width=120)
    told = notice.component()
    by_layer = table.component()
    grid = mask_grid.component()

    def find(text, mode, spans, prefix_length, cell, layers):
        try:
            row = mask_row.row(tokens_of(text), mode, spans, prefix_length)
        except ValueError:
            return (gr.skip(),) * 3  # said at the top of the page already
        found = leaks.find(row, cell, layers)
        small = len(found.tokens) <= limits.GRID_TOKENS
        drawn = mask_grid.render(found.tokens, found.cells) if small else notice.render(leaks.TOO_WIDE)
        return notice.render(found.sentences), table.render("What leaks where", leaks.COLUMNS, found.rows), drawn

    settings = [text, mode, spans, prefix_length]
    gr.on(
        [demo.load, *(setting.change for setting in (*settings, cell, layers))],
        attempt(find, outputs=3),
        [*settings, cell, layers],
        [wrong, told, by_layer, grid],
        trigger_mode="always_last",
        api_name="masks_leak",
        **AT_ONCE,
    )
    grid.pick(_picked_cell, None, cell, api_visibility="private", **AT_ONCE)
    # A cell of another mask may be open already, or not be there.
    gr.on(
        [close.click, *(setting.input for setting in settings)],
        lambda: "",
        None,
        cell,
        api_visibility="private",
        **AT_ONCE,
    )
    return cell


def _picked_cell(event: gr.EventData):
    return f"{event._data['query']}, {event._data['key']}"
