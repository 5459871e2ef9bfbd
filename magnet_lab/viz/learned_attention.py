"""What a trained model does with the freedom its mask leaves it: attention weights of one head, as picture and as text.

A mask says what may be seen, weights say what is looked at. A weight is drawn on one scale from dark to light; what the
mask blocks is paper-grey, which is not on that scale, so that "may not" and "does not" stay apart.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from magnet_lab.attention import CONTEXT
from magnet_lab.viz import palette
from magnet_lab.viz.masks import BLOCKED, KEY, QUERY, label_axes, token_names

BAR = "█"
BAR_WIDTH = 40  # characters of the longest bar in text


def attention_figure(
    weights, mask, tokens: Sequence[str], span_ids: Sequence[int] | None = None, *, title: str = ""
) -> Figure:
    """Draw the weights of one head.

    Args:
        weights: `(query, key)`, each row's sum 1.
        mask: `(query, key)` of booleans, True where the query may attend to the key.
        tokens: what each token says.
        span_ids: one number a token, see `magnet_lab.attention`: span tokens stand in `[ ]`, and dashed lines are drawn
            where context and span meet.
        title: written above.

    Raises:
        ValueError: if sizes do not fit, or a weight stands where the mask blocks.
    """
    weights, mask = _checked(weights, mask, tokens, span_ids)
    size = len(tokens)
    inches = min(10.0, max(2.4, 0.3 * size))
    figure = palette.card(inches + 2.7, inches + 1.6)
    axes = figure.add_subplot()
    axes.set_facecolor(palette.BLOCKED.background)
    image = axes.imshow(
        np.ma.masked_where(~mask, weights), cmap=palette.WEIGHTS, vmin=0, vmax=weights.max(), interpolation="nearest"
    )
    for border in _borders(span_ids):
        axes.axhline(border - 0.5, color=palette.INK, linestyle="--", linewidth=1.2)
        axes.axvline(border - 0.5, color=palette.INK, linestyle="--", linewidth=1.2)
    label_axes(axes, tokens, span_ids)
    axes.set_ylabel(QUERY, color=palette.INK)
    axes.set_xlabel(KEY, color=palette.INK)
    axes.xaxis.set_label_position("top")
    bar = figure.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label("weight (grey: blocked by the mask)", color=palette.INK)
    if title:
        figure.suptitle(title, color=palette.INK, fontsize=12, parse_math=False)
    return figure


def attention_text(weights, mask, tokens: Sequence[str], span_ids: Sequence[int] | None = None) -> str:
    """The same picture in characters, weights in per cent; arguments and errors as `attention_figure`."""
    weights, mask = _checked(weights, mask, tokens, span_ids)
    names = [f"{number} {name}" for number, name in enumerate(token_names(tokens, span_ids))]
    margin = max((len(name) for name in names), default=0)
    lines = [f"rows: {QUERY}; columns: {KEY}; weights in per cent; {BLOCKED} blocked by the mask"]
    lines.append(" " * margin + "".join(f" {number:>3}" for number in range(len(names))))
    for name, row, allowed in zip(names, weights, mask, strict=True):
        cells = (f"{100 * weight:.0f}" if seen else BLOCKED for weight, seen in zip(row, allowed, strict=True))
        lines.append(name.ljust(margin) + "".join(f" {cell:>3}" for cell in cells))
    return "\n".join(lines)


def attention_row_figure(
    weights, mask, tokens: Sequence[str], span_ids: Sequence[int] | None = None, *, token: int, title: str = ""
) -> Figure:
    """One query's weights as bars over the keys; `token` is the query's index, all else as `attention_figure`."""
    weights, mask = _checked(weights, mask, tokens, span_ids, token)
    size = len(tokens)
    figure = palette.card(min(12.0, max(4.0, 0.3 * size)) + 1.0, 3.4)
    axes = figure.add_subplot()
    axes.bar(range(size), weights[token], color=palette.SEES.background)
    for key in np.flatnonzero(~mask[token]):
        axes.axvspan(key - 0.5, key + 0.5, facecolor=palette.BLOCKED.background, edgecolor=palette.FAINT, hatch="//")
    for border in _borders(span_ids):
        axes.axvline(border - 0.5, color=palette.INK, linestyle="--", linewidth=1.2)
    names = token_names(tokens, span_ids)
    axes.set_xticks(range(size), names, rotation=90, fontsize=9 if size <= 24 else 7, parse_math=False)
    axes.set_xlim(-0.5, size - 0.5)
    axes.set_ylabel("weight (hatched: blocked)", color=palette.INK)
    axes.set_xlabel(KEY, color=palette.INK)
    heading = title or f"what {token} {names[token]} looks at"
    figure.suptitle(heading, color=palette.INK, fontsize=12, parse_math=False)
    return figure


def attention_row_text(
    weights, mask, tokens: Sequence[str], span_ids: Sequence[int] | None = None, *, token: int
) -> str:
    """The same bars in characters; arguments and errors as `attention_row_figure`."""
    weights, mask = _checked(weights, mask, tokens, span_ids, token)
    names = [f"{number} {name}" for number, name in enumerate(token_names(tokens, span_ids))]
    margin = max(len(name) for name in names)
    longest = weights[token].max()
    lines = [f"what {names[token]} looks at, in per cent; {BLOCKED} blocked by the mask"]
    for name, weight, seen in zip(names, weights[token], mask[token], strict=True):
        bar = BAR * round(BAR_WIDTH * weight / longest)
        lines.append(
            f"{name.ljust(margin)} {100 * weight:>5.1f} {bar}".rstrip()
            if seen
            else f"{name.ljust(margin)} {BLOCKED:>5}"
        )
    return "\n".join(lines)


def _checked(
    weights, mask, tokens: Sequence[str], span_ids: Sequence[int] | None, token: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    weights, mask = np.asarray(weights, dtype=float), np.asarray(mask, dtype=bool)
    wanted = (len(tokens), len(tokens))
    if weights.shape != wanted or mask.shape != wanted:
        raise ValueError(
            f"weights of shape {weights.shape}, a mask of {mask.shape}: {len(tokens)} tokens need {wanted}"
        )
    if span_ids is not None and len(span_ids) != len(tokens):
        raise ValueError(f"{len(tokens)} tokens came with {len(span_ids)} span ids; there is one for each token")
    if not 0 <= token < len(tokens):
        raise ValueError(f"there is no token {token} among {len(tokens)}; they are counted from 0")
    if (weights[~mask] > 1e-6).any():
        query, key = np.argwhere((weights > 1e-6) & ~mask)[0]
        raise ValueError(
            f"token {query} looks at token {key}, which the mask blocks; give the mask that the weights were made under"
        )
    return weights, mask


def _borders(span_ids: Sequence[int] | None) -> list[int]:
    """Indices of the tokens before which context and span meet."""
    inside = [span > CONTEXT for span in span_ids or []]
    return [place for place in range(1, len(inside)) if inside[place] != inside[place - 1]]
