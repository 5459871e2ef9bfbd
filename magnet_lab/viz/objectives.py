"""The three objectives on one text: which output is asked for what, and what it could read (Figure 3)."""

import numpy as np
from matplotlib.figure import Figure

from magnet_lab.attention import CONTEXT, attention_mask
from magnet_lab.viz import palette
from magnet_lab.viz.modes import links
from magnet_lab.viz.overview import Example, Sentence, sentence_kinds, spoken, view_kinds
from magnet_lab.viz.tokens import label, ranges
from magnet_lab.viz.views import MNTP, MSG, targets

HEADINGS = {
    MNTP: "(a) MNTP: a hidden context token, from the output before it",
    "SSCL": "(b) SSCL: the last outputs of a text and of its paraphrase, pulled together",
    MSG: "(c) MSG: the tokens of a span, each from the output before it",
}


def objectives_figure(example: Example, *, title: str = "") -> Figure:
    """Draw the objectives on one text (Figure 3).

    Args:
        example: see `overview.example`.
        title: written above.
    """
    longest = max(len(example.read), len(example.x.pieces), len(example.positive.pieces))
    figure = palette.card(max(8.4, 2 * 0.28 * longest + 0.8), 6.6)
    above, below = figure.subfigures(2, 1)
    mask = attention_mask(example.views.span_ids)[0, 0].numpy()
    for axes, objective in zip(above.subplots(1, 2), (MNTP, MSG), strict=True):
        asked = _asked(example, objective)
        links(axes, example.read, view_kinds(example), mask, asked)
        _panel(axes, HEADINGS[objective])
        for position in asked:
            _speaks(axes, position, f"→ {label(example.tokens[position + 1])}")
    for axes, name, sentence in zip(below.subplots(1, 2), ("e", "e⁺"), (example.x, example.positive), strict=True):
        last = len(sentence.pieces) - 1
        links(axes, sentence.pieces, sentence_kinds(sentence), np.ones((last + 1, last + 1), bool), [last])
        _panel(axes, "of the text" if name == "e" else "of its paraphrase")
        _speaks(axes, last, f"→ {name}")
    below.suptitle(HEADINGS["SSCL"], color=palette.INK, fontsize=10)
    above.supxlabel("grey: context, looks both ways · black: within a span, never ahead", color=palette.INK, fontsize=9)
    if title:
        figure.suptitle(title, color=palette.INK, fontsize=12, parse_math=False)
    return figure


def objectives_text(example: Example) -> str:
    """The same in words; arguments as `objectives_figure`."""
    span_ids = example.views.span_ids[0].numpy()
    mask = attention_mask(example.views.span_ids)[0, 0].numpy()
    lines = []
    for objective in (MNTP, MSG):
        lines.append(HEADINGS[objective])
        for position in _asked(example, objective):
            context = np.flatnonzero(mask[position] & (span_ids == CONTEXT)).tolist()
            own = np.flatnonzero(mask[position] & (span_ids > CONTEXT)).tolist()
            read = f"context {ranges(context)}" + (f", own span {ranges(own)}" if own else "")
            wanted = label(example.tokens[position + 1])
            lines.append(f"  output {position} → token {position + 1}, {wanted}; it reads {read}")
        if objective == MNTP:
            lines += [HEADINGS["SSCL"], _last("text", "e", example.x), _last("paraphrase", "e⁺", example.positive)]
    return "\n".join(lines)


def _asked(example: Example, objective: str) -> list[int]:
    """The positions whose output an objective scores."""
    return [position for position, name in enumerate(targets(example.views)) if name == objective]


def _last(what: str, name: str, sentence: Sentence) -> str:
    return f"  last output of the {what} → {name}; it reads {spoken(sentence)}"


def _panel(axes, heading: str) -> None:
    axes.set_title(heading, fontsize=9.5, color=palette.INK)
    axes.set_ylim(-0.2, 2.0)
    axes.set_yticks([0, 1], ["input", "output"], fontsize=9, color=palette.INK)


def _speaks(axes, position: int, words: str) -> None:
    """What an output is asked for, written above it."""
    style = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": 9, "color": palette.INK, "parse_math": False}
    axes.text(position, 1.12, words, **style)
