"""Figure 4 as pictures: what each position reads and is to predict, and how a sentence finds its paraphrase."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from magnet_lab.attention import CONTEXT
from magnet_lab.decoder import decode_after
from magnet_lab.views import NO_LABEL, Views
from magnet_lab.viz import palette
from magnet_lab.viz.tokens import label

MNTP, MSG = "MNTP", "MSG"
PER_LINE = 8  # positions side by side in the picture
BAR, BAR_WIDTH = "█", 40  # characters of a bar that stands for all there is

_UNFINISHED = "\N{REPLACEMENT CHARACTER}"  # how a tokenizer writes a part of a character
_LONGEST = 4  # bytes of a character, and so tokens at most


def id_texts(tokenizer, ids: Sequence[int], before: Sequence[int] = ()) -> list[str]:
    """What each token says after the tokens `before`; special tokens say their names.

    A character made of several tokens goes to the first of them; the others are empty.

    Args:
        tokenizer: of transformers.
        ids, before: token ids; no text, so that a corrupted text can be shown as well.
    """
    ids, before, texts = list(ids), list(before), []
    while len(texts) < len(ids):
        here = len(texts)
        if ids[here] in tokenizer.all_special_ids:
            texts.append(tokenizer.convert_ids_to_tokens(ids[here]))
            continue
        past = before + ids[:here]
        pieces = [decode_after(tokenizer, past, ids[here : here + width]) for width in range(1, _LONGEST + 1)]
        width = next((width for width, piece in enumerate(pieces, start=1) if _UNFINISHED not in piece), 1)
        width = min(width, len(ids) - here)
        texts += [pieces[width - 1], *[""] * (width - 1)]
    return texts


def targets(views: Views) -> list[str]:
    """Which objective asks each position of a text for the token after it: MNTP, MSG, or none, an empty string."""
    _check(views)
    hidden, missing = views.mntp_labels[0] != NO_LABEL, views.msg_labels[0] != NO_LABEL
    return [MNTP if h else MSG if m else "" for h, m in zip(hidden.tolist(), missing.tolist(), strict=True)]


def kinds(views: Views) -> list[str]:
    """The class of each token that is read, a name of `palette.TOKEN_CLASSES`: context, span or masked (chosen)."""
    _check(views)
    rows = zip(views.span_ids[0].tolist(), views.selected[0].tolist(), strict=True)
    return ["masked" if chosen else "span" if span > CONTEXT else "context" for span, chosen in rows]


def views_figure(tokens: Sequence[str], read: Sequence[str], views: Views, *, title: str = "") -> Figure:
    """Draw what each position of xᵐ reads, and under it the token that it is to predict, the next one of the text.

    Args:
        tokens: what each token of the text says.
        read: what each token says that is read in its place.
        views: of this one text: a batch of one, as `views.make_views` makes it.
        title: written above.

    Raises:
        ValueError: if the sizes do not fit, or the batch holds several texts.
    """
    _check(views, tokens, read)
    asked, classes = targets(views), {kind.name: kind for kind in palette.TOKEN_CLASSES}
    lines = math.ceil(len(tokens) / PER_LINE)
    figure = palette.card(0.9 * PER_LINE + 1.2, 1.15 * lines + 0.4)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(-1.25, PER_LINE)
    axes.set_ylim(3 * lines, 0)  # downwards, as a text is read; three units a line: place, read, to predict
    for position, (text, kind, objective) in enumerate(zip(read, kinds(views), asked, strict=True)):
        line, column = divmod(position, PER_LINE)
        top = 3 * line
        axes.text(column + 0.5, top + 0.25, str(position), ha="center", va="center", fontsize=8, color=palette.FAINT)
        _box(axes, column, top + 0.45, text, classes[kind])
        if objective:
            asked_class = palette.MASKED if objective == MNTP else palette.SPAN
            _box(axes, column, top + 1.55, tokens[position + 1], asked_class, below=f"{position + 1} · {objective}")
        else:
            axes.text(column + 0.5, top + 1.9, "·", ha="center", va="center", fontsize=10, color=palette.FAINT)
    for line in range(lines):
        for middle, words in ((0.8, "reads"), (1.9, "predicts")):
            axes.text(-0.1, 3 * line + middle, words, ha="right", va="center", fontsize=9, color=palette.INK)
    if title:
        figure.suptitle(title, color=palette.INK, fontsize=12, parse_math=False)
    return figure


def views_text(tokens: Sequence[str], read: Sequence[str], views: Views) -> str:
    """The same as a table in characters; arguments and errors as `views_figure`."""
    _check(views, tokens, read)
    marks = {kind.name: kind.marks for kind in palette.TOKEN_CLASSES}
    rows = [("position", "reads", "predicts", "by")]
    for position, (text, kind, objective) in enumerate(zip(read, kinds(views), targets(views), strict=True)):
        opening, closing = marks[kind]
        wanted = f"{position + 1} {label(tokens[position + 1])}" if objective else "·"
        rows.append((str(position), f"{opening}{label(text)}{closing}", wanted, objective))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def contrast_figure(
    similarity: Tensor, names: Sequence[str], *, row: int, temperature: float, title: str = ""
) -> Figure:
    """Draw one row of Equation 3: the share that each paraphrase has in the softmax over a sentence's similarities.

    Args:
        similarity: `(n, n)` cosines of every sentence with every paraphrase; a sentence's own is on the diagonal.
        names: the paraphrases, n of them.
        row: the sentence's index.
        temperature: τ, above 0.
        title: written above.

    Raises:
        ValueError: if the sizes do not fit, the sentence is not there or τ is not above 0.
    """
    shares = _shares(similarity, names, row, temperature)
    figure = palette.card(7.4, 1.5 + 0.42 * len(names))
    axes = figure.add_subplot()
    places = np.arange(len(names))
    bars = axes.barh(places, shares, height=0.66, color=palette.SEES.background)
    bars[row].set(facecolor=palette.SPAN.light.background, edgecolor=palette.INK, linewidth=1.5)
    for place, share in enumerate(shares):
        own = "  its own" if place == row else ""
        axes.text(share + 0.01, place, f"{share:.3f}{own}", va="center", fontsize=9, color=palette.INK)
    written = [f"{number} {label(name, 34)}" for number, name in enumerate(names, start=1)]
    axes.set_yticks(places, written, fontsize=9, color=palette.INK, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.22)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.tick_params(length=0, colors=palette.INK)
    axes.set_xlabel(f"softmax of cosine / {temperature:g}", color=palette.INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.suptitle(
        title or f"sentence {row + 1}: -log {shares[row]:.3f} = {-math.log(max(shares[row], 1e-30)):.3f} nats",
        color=palette.INK,
        fontsize=12,
        parse_math=False,
    )
    return figure


def contrast_text(similarity: Tensor, names: Sequence[str], *, row: int, temperature: float) -> str:
    """The same bars in characters; arguments and errors as `contrast_figure`."""
    shares = _shares(similarity, names, row, temperature)
    lines = [
        f"sentence {row + 1} among the paraphrases: cosine, and its share in the softmax of cosine / {temperature:g}"
    ]
    for place, (name, share) in enumerate(zip(names, shares, strict=True)):
        own = " its own" if place == row else ""
        bar = BAR * round(BAR_WIDTH * share)
        lines.append(f"{place + 1} {label(name, 40):<40} {similarity[row, place]:>6.3f} {share:>6.3f} {bar}{own}")
    return "\n".join(lines)


def _shares(similarity: Tensor, names: Sequence[str], row: int, temperature: float) -> list[float]:
    if tuple(similarity.shape) != (len(names), len(names)):
        raise ValueError(
            f"similarities of shape {tuple(similarity.shape)} came with {len(names)} names; n × n are wanted"
        )
    if not 0 <= row < len(names):
        raise ValueError(f"there is no sentence {row + 1}; there are {len(names)}")
    if not temperature > 0:
        raise ValueError(f"a temperature of {temperature} is not above 0")
    return (torch.as_tensor(similarity)[row].double() / temperature).softmax(dim=-1).tolist()


def _box(axes, column: int, top: float, text: str, kind: palette.TokenClass, below: str = "") -> None:
    """A token in its class's colours, and in its second channel: a line under a span, dashes around what is hidden."""
    colours = kind.light
    edge = {"edgecolor": palette.FAINT, "linewidth": 0.8}
    if kind is palette.MASKED:
        edge = {"edgecolor": palette.CARD, "linewidth": 1.2, "linestyle": (0, (3, 2))}
    axes.add_patch(Rectangle((column + 0.04, top), 0.92, 0.7, facecolor=colours.background, **edge))
    if kind is palette.SPAN:
        axes.plot([column + 0.08, column + 0.92], [top + 0.66] * 2, color=palette.INK, linewidth=2)
    # A token may hold a dollar sign; it is no formula.
    style = {"ha": "center", "va": "center", "parse_math": False}
    axes.text(column + 0.5, top + 0.35, label(text, 10), fontsize=9, color=colours.text, **style)
    if below:
        axes.text(column + 0.5, top + 0.92, below, fontsize=7, color=palette.INK, **style)


def _check(views: Views, *texts: Sequence[str]) -> None:
    if views.span_ids.shape[0] != 1:
        raise ValueError(f"a picture shows the views of one text, and the batch holds {views.span_ids.shape[0]}")
    for text in texts:
        if len(text) != views.span_ids.shape[1]:
            raise ValueError(f"{len(text)} tokens came with views of {views.span_ids.shape[1]}; there is one for each")
