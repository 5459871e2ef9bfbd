"""Infilling step by step: what is computed at each step, what is kept from the steps before, what is written.

The context is read once, at its true positions, with a gap where the spans are to be. No context token looks at a span,
so what was computed for it stays valid: a step computes only the span token that was written last.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from magnet_lab.attention import CONTEXT
from magnet_lab.viz import palette
from magnet_lab.viz.masks import label_axes, token_names

EMPTY, KEPT, COMPUTED, WRITTEN, DONE = range(5)
GLYPHS = ("·", "○", "■", "+", "✓")
WORDS = ("not there yet", "kept in the cache", "computed now", "written now", "the last of its span, never computed")
TONES = (palette.BLOCKED, palette.CONTEXT.light, palette.SEES, palette.SPAN.light, palette.BLOCKED)


def infilling_steps(span_ids: Sequence[int]) -> np.ndarray:
    """What becomes of every token at every step, `(steps, length)`: `EMPTY`, `KEPT`, `COMPUTED`, `WRITTEN` or `DONE`.

    Spans are written side by side, each its t-th token at step t - 1, counted from 0. The last token of a span is
    written and never computed: nothing comes after it.

    Raises:
        ValueError: if there is no span, or one begins the text: nothing stands before it to predict its first token.
    """
    span_ids = np.asarray(span_ids)
    if not (span_ids > CONTEXT).any():
        raise ValueError("there is no span to fill; give a span id above 0 to the tokens of a span")
    if span_ids[0] > CONTEXT:
        raise ValueError("a span begins the text; its first token needs a token before it to be predicted from")
    place = np.zeros(len(span_ids), dtype=int)  # 0 for context, t for the t-th token of its span
    for index in np.flatnonzero(span_ids > CONTEXT):
        place[index] = (span_ids[:index] == span_ids[index]).sum() + 1
    steps = np.arange(place.max())[:, None]  # step 0 reads the context
    last = [place[index] > 0 and place[index] == place[span_ids == span].max() for index, span in enumerate(span_ids)]
    states = [
        (place > steps + 1, EMPTY),
        (place == steps + 1, WRITTEN),
        (np.array(last), DONE),
        (place == steps, COMPUTED),
    ]
    return np.select([np.broadcast_to(where, (len(steps), len(place))) for where, _ in states],
                     [state for _, state in states], KEPT)  # fmt: skip


def infilling_figure(tokens: Sequence[str], span_ids: Sequence[int], *, title: str = "") -> Figure:
    """Draw the steps: a row each, a column for each position of the text.

    Args:
        tokens: what each token says, those of the spans as they were written.
        span_ids: one number a token, see `magnet_lab.attention`.
        title: written above.

    Raises:
        ValueError: see `infilling_steps`; also if tokens and span ids are not of one length.
    """
    cells = _cells(tokens, span_ids)
    steps, length = cells.shape
    figure = palette.card(max(5.5, 0.33 * length + 3.2), 0.33 * steps + 2.5)
    axes = figure.add_subplot()
    axes.imshow(
        cells, cmap=ListedColormap([tone.background for tone in TONES]), vmin=0, vmax=len(TONES) - 1, aspect="auto"
    )
    for (step, position), cell in np.ndenumerate(cells):
        axes.text(position, step, GLYPHS[cell], ha="center", va="center", fontsize=9, color=TONES[cell].text)
    axes.set_xticks(np.arange(-0.5, length), minor=True)
    axes.set_yticks(np.arange(-0.5, steps), minor=True)
    axes.grid(which="minor", color=palette.CARD, linewidth=1)
    label_axes(axes, tokens, span_ids)
    axes.set_yticks(range(steps), [_step(step, row) for step, row in enumerate(cells)], fontsize=9, color=palette.INK)
    axes.set_ylim(steps - 0.5, -0.5)
    below = axes.secondary_xaxis("bottom")
    below.set_xticks(range(length), [str(position) for position in range(length)], fontsize=8, color=palette.FAINT)
    below.tick_params(length=0)
    below.set_xlabel("position, which the model is told", fontsize=9, color=palette.INK)
    legend = [
        Patch(facecolor=TONES[state].background, edgecolor="#C8C8C8", label=f"{GLYPHS[state]} {WORDS[state]}")
        for state in np.unique(cells)
    ]
    figure.legend(handles=legend, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    if title:
        figure.suptitle(title, color=palette.INK, fontsize=12, parse_math=False)
    return figure


def infilling_text(tokens: Sequence[str], span_ids: Sequence[int]) -> str:
    """The same steps in characters, and what the cache saves; arguments and errors as `infilling_figure`."""
    cells = _cells(tokens, span_ids)
    rows = [_step(step, row) for step, row in enumerate(cells)]
    margin, width = max(map(len, rows)), len(str(len(tokens) - 1))
    lines = ["; ".join(f"{GLYPHS[state]} {WORDS[state]}" for state in np.unique(cells))]
    lines.append(
        "positions: " + " ".join(f"{place} {name}" for place, name in enumerate(token_names(tokens, span_ids)))
    )
    lines.append(" " * margin + "".join(f" {position:>{width}}" for position in range(len(tokens))))
    lines += [name.ljust(margin) + "".join(f" {GLYPHS[cell]:>{width}}" for cell in row)
              for name, row in zip(rows, cells, strict=True)]  # fmt: skip
    computed = (cells == COMPUTED).sum(axis=1)
    there = np.isin(cells, (COMPUTED, KEPT)).sum()
    return "\n".join(
        [*lines, f"computed: {' + '.join(map(str, computed))} = {computed.sum()}; without a cache {there}"]
    )


def _step(step: int, row: np.ndarray) -> str:
    count = int((row == COMPUTED).sum())
    return f"step {step}: {count} computed" if step else f"context: {count} computed"


def _cells(tokens: Sequence[str], span_ids: Sequence[int]) -> np.ndarray:
    if len(tokens) != len(span_ids):
        raise ValueError(f"{len(tokens)} tokens came with {len(span_ids)} span ids; there is one for each token")
    return infilling_steps(span_ids)
