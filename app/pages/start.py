"""Start: one sentence, generated, encoded and infilled by the same weights; and where to go from here."""

import contextlib
import time

import gradio as gr

from .. import limits, links, precomputed
from ..components import filled_text, notice, picture, table, token_strip, tour
from ..components.answers import answer, validator
from ..components.header import header
from ..handlers import masks, start
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
NEAREST = "Other sentences, nearest first"


def page(demo: gr.Blocks, loading: Loading, others) -> None:
    """Write the page, with a link to each of the `others`."""
    header(demo, loading, TITLE, PURPOSE, PATH)
    with gr.Row():
        sentence = gr.Textbox(start.SENTENCE, label="Your sentence", max_lines=3, scale=3, min_width=260)
        missing = gr.Textbox(
            start.MISSING,
            label="Words to take out, for infilling",
            placeholder="none: those in the middle",
            max_lines=1,
            scale=2,
            min_width=200,
        )
    with gr.Row():
        go = gr.Button("Generate, encode and infill", variant="primary")
        stop = gr.Button("Stop", variant="stop")
    note = notice.component()
    columns = []
    with gr.Row():
        for mode, words in MODES.items():
            with gr.Column(min_width=300):
                columns.append(_Column(mode, words))
    gr.Markdown(
        "Click a token, or walk there with the arrow keys and press Enter: below it stands what it sees, and why. In "
        "the masks, rows look and columns are seen: ■ may look, · may not. One rule makes all three: *look at every "
        "context token, and within your own span at yourself and what came before*."
    )
    with gr.Accordion("The masks as text", open=False):
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], max_lines=60)
    links.share(demo, {"sentence": sentence, "missing": missing})
    gr.Markdown("## A guided tour")
    tour.component(start.tour())
    gr.Markdown("## All pages")
    # Links in Markdown would open a new tab.
    items = "".join(f'<li><a href="{other.PATH}">{other.TITLE}</a> · {other.PURPOSE}</li>' for other in others)
    gr.HTML(f'<ul class="pages">{items}</ul>', apply_default_css=False)

    results = [place for column in columns for place in column.places]
    drawings = [column.drawing for column in columns]

    def example():
        """What needs no model, nor anything to draw with: there at once."""
        kept = precomputed.outcomes(loading.name)
        if kept is None:
            return [gr.skip()] * (1 + len(results))
        name, outcomes = kept
        told = notice.render(f"An example, worked out beforehand by {name}.")
        return told, *(part for outcome in outcomes for part in _rendered(outcome))

    def draw():
        loading.libraries()
        kept = precomputed.outcomes(loading.name)
        figures, text = start.three_masks([outcome.masked for outcome in kept[1]] if kept else [])
        return *_pictures(figures), text

    @answer
    def run(sentence: str, missing: str):
        shown_at = 0.0
        with contextlib.closing(start.answer(loading.lab(), sentence, missing)) as views:
            for outcomes in views:
                if len(outcomes) == 1 and time.monotonic() - shown_at < limits.SECONDS_BETWEEN_FRAMES:
                    continue
                shown_at = time.monotonic()
                there = [part for outcome in outcomes for part in _rendered(outcome)]
                waiting = _WAITING * (len(MODES) - len(outcomes))
                yield notice.render(""), *there, *waiting, *[""] * len(MODES)

    def draw_again(*read):
        """The masks of what there is: after the words, as drawing takes a moment."""
        figures, text = start.three_masks([masked for masked in read if masked is not None])
        return *_pictures(figures), text

    at_once = {"queue": False, "show_progress": "hidden"}
    demo.load(example, None, [note, *results], api_name="start_example", **at_once)
    demo.load(draw, None, [*drawings, twin], api_name="start", **at_once)
    running = go.click(
        run,
        [sentence, missing],
        [note, *results, *drawings],
        validator=validator(loading, start.check, None),
        api_name="start_try",
        concurrency_id="model",
        concurrency_limit=1,
    )
    running.then(
        draw_again, [column.read for column in columns], [*drawings, twin], api_visibility="private", **at_once
    )
    stop.click(None, cancels=running)
    for column in columns:  # the words at once, the picture when it is drawn
        for does, places in ((column.look, [column.strip, column.about]), (column.draw, column.drawing)):
            column.strip.pick(
                does, column.read, places, trigger_mode="always_last", api_visibility="private", **at_once
            )


class _Column:
    """The places of one mode."""

    def __init__(self, mode: str, words: str):
        self.mode = mode
        gr.Markdown(f"**{mode}** · {words}")
        self.text = filled_text.component(mode)
        self.said = notice.component()
        self.nearest = table.component()
        self.strip = token_strip.component()
        self.about = notice.component()
        self.drawing = picture.component()
        self.read = gr.State(None)  # tokens, mode and spans, so that a click asks no model
        self.places = [self.text, self.said, self.nearest, self.strip, self.about, self.read]

    def look(self, read, event: gr.EventData):
        if read is None:
            return gr.skip(), gr.skip()
        strip, sentences = masks.look(*read, token=event._data["index"])
        return _strip(strip), notice.render(sentences[:3])

    def draw(self, read, event: gr.EventData):
        if read is None:
            return gr.skip()
        view = masks.draw_mask(*read, token=event._data["index"])
        return picture.render(view.figure, f"The mask to {self.mode}")


def _rendered(outcome: start.Outcome) -> list:
    """An outcome for the places of a column."""
    pieces = [filled_text.Piece(text, kind) for text, kind in outcome.pieces]
    strip, _ = masks.look(outcome.tokens, outcome.mode, outcome.spans)
    rows = [[other, f"{value:.2f}"] for other, value in outcome.nearest]
    return [
        filled_text.render(pieces, "The text"),
        notice.render(outcome.sentence),
        table.render(NEAREST, ["", "similarity"], rows[:4]),
        _strip(strip),
        notice.render("Click a token to see what it sees."),
        outcome.masked,
    ]


_WAITING = [filled_text.render([], "The text"), notice.render("Waiting for its turn."), "", "", "", None]


def _strip(tokens: list[masks.Token]) -> str:
    return token_strip.render(tokens, "Tokens: arrow keys walk, Enter picks")


def _pictures(figures: list) -> list[str]:
    """The pictures that there are; nothing for modes that are still to come."""
    named = zip(figures, MODES, strict=False)
    drawn = [picture.render(figure, f"The mask to {mode}") for figure, mode in named]
    return [*drawn, *[""] * (len(MODES) - len(drawn))]
