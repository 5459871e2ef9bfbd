"""An attention mask as a picture and as text: rows are queries (who looks), columns keys (what is seen)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from magnet_lab.attention import CONTEXT
from magnet_lab.viz import palette
from magnet_lab.viz.tokens import label

QUERY, KEY = "query (who looks)", "key (what is seen)"
BLOCKED, SEES, REACHED = "·", "■", "○"
LEGEND = {SEES: "sees", BLOCKED: "does not see", REACHED: "does not see, but hears of through other tokens"}

GLYPHS_UP_TO = 24  # tokens; a larger mask has its two tones alone
LABELS_UP_TO = 48  # tokens; a larger mask is labelled with numbers, every few


def mask_figure(
    mask,
    tokens: Sequence[str],
    span_ids: Sequence[int] | None = None,
    *,
    reach=None,
    token: int | None = None,
    title: str = "",
) -> Figure:
    """Draw an attention mask.

    Args:
        mask: `(query, key)` of booleans, True where the query may attend to the key.
        tokens: what each token says.
        span_ids: one number a token, see `magnet_lab.attention`: labels of span tokens stand in `[ ]`.
        reach: `(query, key)` of booleans, what influences a query after some layers (`attention.receptive_field`);
            cells in which it goes beyond the mask are drawn as a third thing.
        token: index of a token whose row and column are framed.
        title: written above.

    Raises:
        ValueError: if mask, tokens and span ids are not of one length.
    """
    cells = _cells(mask, tokens, span_ids, reach)
    size = len(tokens)
    inches = min(10.0, max(2.4, 0.3 * size))
    figure = palette.card(inches + 1.9, inches + 1.6)
    axes = figure.add_subplot()
    draw_cells(axes, cells)
    label_axes(axes, tokens, span_ids)
    if token is not None:
        for corner, width, height in (((-0.5, token - 0.5), size, 1), ((token - 0.5, -0.5), 1, size)):
            axes.add_patch(Rectangle(corner, width, height, fill=False, edgecolor="#D55E00", linewidth=2, zorder=3))
    axes.set_ylabel(QUERY, color=palette.INK)
    axes.set_xlabel(KEY, color=palette.INK)
    axes.xaxis.set_label_position("top")
    if title:
        figure.suptitle(title, color=palette.INK, fontsize=12, parse_math=False)
    return figure


def draw_cells(axes, cells, *, fontsize: int = 9) -> None:
    """Draw the cells of a mask, `(query, key)`: 0 blocked, 1 seen, 2 reached through others."""
    cells = np.asarray(cells, dtype=int)
    size = len(cells)
    tones = [palette.BLOCKED, palette.SEES, palette.REACHED]
    colours = ListedColormap([tone.background for tone in tones])
    axes.imshow(cells, cmap=colours, vmin=0, vmax=2, interpolation="nearest")
    if size <= GLYPHS_UP_TO:
        for (query, key), cell in np.ndenumerate(cells):
            glyph = (BLOCKED, SEES, REACHED)[cell]
            axes.text(key, query, glyph, ha="center", va="center", fontsize=fontsize, color=tones[cell].text)
    axes.set_xticks(np.arange(-0.5, size), minor=True)
    axes.set_yticks(np.arange(-0.5, size), minor=True)
    if size <= LABELS_UP_TO:
        axes.grid(which="minor", color=palette.CARD, linewidth=0.8)
    axes.tick_params(which="minor", length=0)


def mask_text(mask, tokens: Sequence[str], span_ids: Sequence[int] | None = None, *, reach=None) -> str:
    """The same picture in characters; arguments and errors as `mask_figure`."""
    cells = _cells(mask, tokens, span_ids, reach)
    names = token_names(tokens, span_ids)
    digits = len(str(max(0, len(names) - 1)))
    margin = digits + 1 + max((len(name) for name in names), default=0)
    glyphs = (BLOCKED, SEES, REACHED)
    legend = " · ".join(f"{glyph} {LEGEND[glyph]}" for cell, glyph in enumerate(glyphs) if (cells == cell).any())
    lines = [f"rows: {QUERY}; columns: {KEY}; {legend}"]
    lines.append(" " * margin + "".join(f" {number:>{digits}}" for number in range(len(names))))
    for number, (name, row) in enumerate(zip(names, cells, strict=True)):
        margin_text = f"{number:>{digits}} {name}".ljust(margin)
        lines.append(margin_text + "".join(f" {glyphs[cell]:>{digits}}" for cell in row))
    return "\n".join(lines)


def _cells(mask, tokens: Sequence[str], span_ids: Sequence[int] | None, reach) -> np.ndarray:
    """`(query, key)`: 0 blocked, 1 seen, 2 reached through others."""
    mask = np.asarray(mask, dtype=bool)
    reach = mask if reach is None else np.asarray(reach, dtype=bool)
    wanted = (len(tokens), len(tokens))
    if mask.shape != wanted or reach.shape != wanted:
        raise ValueError(
            f"a mask of shape {mask.shape}, its reach of {reach.shape}: {len(tokens)} tokens need {wanted}"
        )
    if span_ids is not None and len(span_ids) != len(tokens):
        raise ValueError(f"{len(tokens)} tokens came with {len(span_ids)} span ids; there is one for each token")
    return np.where(mask, 1, np.where(reach, 2, 0))


def token_names(tokens: Sequence[str], span_ids: Sequence[int] | None) -> list[str]:
    opening, closing = palette.SPAN.marks
    spans = [CONTEXT] * len(tokens) if span_ids is None else span_ids
    return [f"{opening}{label(t)}{closing}" if s > CONTEXT else label(t) for t, s in zip(tokens, spans, strict=True)]


def label_axes(axes, tokens: Sequence[str], span_ids: Sequence[int] | None) -> None:
    size = len(tokens)
    step = 1 if size <= LABELS_UP_TO else 8
    names = token_names(tokens, span_ids) if step == 1 else [str(number) for number in range(size)]
    places = range(0, size, step)
    fontsize = 9 if size <= GLYPHS_UP_TO else 7
    # A token may hold a dollar sign; it is no formula.
    style = {"fontsize": fontsize, "color": palette.INK, "parse_math": False}
    axes.set_yticks(places, [names[place] for place in places], **style)
    axes.set_xticks(places, [names[place] for place in places], rotation=90 if step == 1 else 0, **style)
    axes.xaxis.tick_top()
    axes.tick_params(which="both", length=0)
    for spine in axes.spines.values():
        spine.set_color(palette.FAINT)
