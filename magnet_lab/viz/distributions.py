"""How something is spread: the lengths of spans, and vectors by alignment and uniformity."""

from collections import Counter
from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure

from magnet_lab.attention import CONTEXT
from magnet_lab.viz import palette
from magnet_lab.viz.learned_attention import BAR
from magnet_lab.viz.results import LINES

BAR_WIDTH = 40  # characters of the longest bar in text
BINS = 24  # bars; longer ranges of lengths share them


def span_lengths(span_ids) -> list[int]:
    """The lengths in tokens of all spans of a batch, `(batch, length)` of span ids."""
    rows = (Counter(span for span in row if span > CONTEXT) for row in torch.as_tensor(span_ids).tolist())
    return [length for row in rows for _, length in sorted(row.items())]


def lengths_figure(lengths: Sequence[int], *, title: str = "") -> Figure:
    """Draw how often each length of a span occurs.

    Args:
        lengths: in tokens, one for each span: see `span_lengths`.
        title: written above.

    Raises:
        ValueError: if there is no length.
    """
    bins = _bins(lengths)
    figure = palette.card(6.4, 3.2)
    axes = figure.add_subplot()
    for first, last, count in bins:
        style = {"color": palette.SEES.background, "edgecolor": palette.CARD}
        axes.bar(first - 0.5, count, width=last - first + 1, align="edge", **style)
    mean = sum(lengths) / len(lengths)
    axes.axvline(mean, color=palette.INK, linestyle="--", linewidth=1.2)
    axes.text(mean, axes.get_ylim()[1], f" mean {mean:.1f}", va="bottom", fontsize=9, color=palette.INK)
    axes.set_xlabel("length of a span (tokens)", color=palette.INK)
    axes.set_ylabel("spans", color=palette.INK)
    axes.tick_params(labelsize=8, colors=palette.FAINT)
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        figure.suptitle(title, color=palette.INK, fontsize=12, parse_math=False)
    return figure


def lengths_text(lengths: Sequence[int]) -> str:
    """The same bars in characters; arguments and errors as `lengths_figure`."""
    bins = _bins(lengths)
    most = max(count for *_, count in bins)
    names = [str(first) if first == last else f"{first}–{last}" for first, last, _ in bins]
    margin, digits = max(map(len, names)), len(str(most))
    lines = [f"{len(lengths)} spans, {sum(lengths) / len(lengths):.1f} tokens on average"]
    for name, (*_, count) in zip(names, bins, strict=True):
        lines.append(f"{name:>{margin}} {count:>{digits}} {BAR * round(BAR_WIDTH * count / most)}".rstrip())
    return "\n".join(lines)


def alignment_figure(points: Mapping[str, tuple[float, float]], *, title: str = "") -> Figure:
    """Draw models, or moments of a training, by how close they bring what means the same and how they spread the rest.

    Args:
        points: name -> (`alignment`, `uniformity`).
        title: written above.

    Raises:
        ValueError: if there is no point.
    """
    _check(points)
    figure = palette.card(6.8, 4.2)
    axes = figure.add_subplot()
    for number, (name, place) in enumerate(points.items()):
        style = LINES[number % len(LINES)]
        fill = style["color"] if number < len(LINES) else palette.CARD
        axes.scatter(
            *place, s=70, marker=style["marker"], color=fill, edgecolor=style["color"], linewidth=2, label=name
        )
    # Beside the picture, as points may lie close to each other.
    named = axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=9, labelcolor=palette.INK)
    for text in named.get_texts():
        text.set_parse_math(False)
    axes.margins(0.1)
    axes.set_xlabel("alignment: distance² of a pair (← better)", color=palette.INK)
    axes.set_ylabel("uniformity (↓ better)", color=palette.INK)
    axes.tick_params(labelsize=8, colors=palette.FAINT)
    axes.grid(color="#E4E4E4", linewidth=0.6)
    axes.set_axisbelow(True)
    if title:
        figure.suptitle(title, color=palette.INK, fontsize=12, parse_math=False)
    return figure


def alignment_text(points: Mapping[str, tuple[float, float]]) -> str:
    """The same as a table; arguments and errors as `alignment_figure`."""
    _check(points)
    margin = max(map(len, points))
    lines = [f"{'':{margin}}  alignment  uniformity  (both better when lower)"]
    return "\n".join([*lines, *(f"{name:{margin}}  {a:>9.3f}  {u:>10.3f}" for name, (a, u) in points.items())])


def _check(points: Mapping) -> None:
    if not points:
        raise ValueError("there is no point to draw; give at least one name with its alignment and uniformity")


def _bins(lengths: Sequence[int]) -> list[tuple[int, int, int]]:
    """First length, last length and count of each bar, from the shortest to the longest span."""
    if not len(lengths):
        raise ValueError("there is no span, so there are no lengths to draw")
    low, high = min(lengths), max(lengths)
    width = -(-(high - low + 1) // BINS)  # rounded up
    counts = Counter((length - low) // width for length in lengths)
    bars = range((high - low) // width + 1)
    return [(low + bar * width, min(high, low + (bar + 1) * width - 1), counts[bar]) for bar in bars]
