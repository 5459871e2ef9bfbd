"""The modes of one decoder side by side: the masks (Figure 2), and who reads whom drawn as lines (Figure 1).

A mode is nothing but one span id a token; the mask and the lines both follow from it by the one rule.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from magnet_lab import attention
from magnet_lab.attention import CONTEXT
from magnet_lab.viz import palette
from magnet_lab.viz.masks import BLOCKED, KEY, LEGEND, QUERY, SEES, draw_cells, label_axes, token_names
from magnet_lab.viz.tokens import label, ranges

Modes = Mapping[str, Sequence[int]]  # name -> one span id a token


def four_modes(length: int, spans: Sequence[tuple[int, int]]) -> dict[str, list[int]]:
    """The span ids of a text in every mode of `attention.MODES`; the prefix LM's prefix is its first half.

    Args:
        length: of the text, in tokens.
        spans: `(start, stop)` of MAGNET's spans.
    """
    tokens = torch.ones(1, length, dtype=torch.long)
    made = {
        "causal": attention.causal(tokens),
        "bidirectional": attention.bidirectional(tokens),
        "prefix LM": attention.prefix(tokens, length // 2),
        "MAGNET": attention.magnet(tokens, [list(spans)]),
    }
    return {name: span_ids[0].tolist() for name, span_ids in made.items()}


def modes_figure(tokens: Sequence[str], modes: Modes, *, title: str = "") -> Figure:
    """Draw the masks of one text in several modes, side by side (Figure 2).

    Args:
        tokens: what each token says.
        modes: name -> one span id a token, see `four_modes`.
        title: written above.

    Raises:
        ValueError: if there is no mode, or one has not as many span ids as there are tokens.
    """
    masks = _masks(tokens, modes)
    inches = max(1.6, 0.27 * len(tokens))
    across = len(masks) if inches * len(masks) <= 11 else 2
    down = -(-len(masks) // across)  # rounded up
    figure = palette.card(across * (inches + 0.7) + 0.6, down * (inches + 1.1) + 0.5)
    for number, (name, mask) in enumerate(masks.items(), start=1):
        axes = figure.add_subplot(down, across, number)
        draw_cells(axes, mask, fontsize=8)
        label_axes(axes, tokens, modes[name])
        axes.set_xlabel(name, color=palette.INK, fontsize=11, parse_math=False)
    figure.supxlabel(f"rows: {QUERY} · columns: {KEY}", color=palette.INK, fontsize=9)
    return _titled(figure, title)


def modes_text(tokens: Sequence[str], modes: Modes) -> str:
    """The same masks in characters; arguments and errors as `modes_figure`."""
    masks = _masks(tokens, modes)
    names = [f"{number} {name}" for number, name in enumerate(token_names(tokens, None))]
    margin, width = max(map(len, names), default=0), max(2 * len(tokens) - 1, *map(len, modes))
    lines = [f"rows: {QUERY}; columns: {KEY}; {SEES} {LEGEND[SEES]} · {BLOCKED} {LEGEND[BLOCKED]}"]
    lines.append((" " * margin + "".join(f"   {name:{width}}" for name in modes)).rstrip())
    for number, name in enumerate(names):
        rows = (" ".join(SEES if sees else BLOCKED for sees in mask[number]) for mask in masks.values())
        lines.append((name.ljust(margin) + "".join(f"   {row:{width}}" for row in rows)).rstrip())
    spans = (
        f"{name}: spans {', '.join(_spans(span_ids))}" if any(s > CONTEXT for s in span_ids) else f"{name}: no span"
        for name, span_ids in modes.items()
    )
    return "\n".join([*lines, "; ".join(spans)])


def links_figure(tokens: Sequence[str], modes: Modes, *, title: str = "") -> Figure:
    """Draw which inputs each output reads, a line each (Figure 1): grey to context tokens, which look both ways, black
    within a span, where nothing looks ahead. Arguments and errors as `modes_figure`.
    """
    masks = _masks(tokens, modes)
    inches = max(2.2, 0.34 * len(tokens))
    figure = palette.card(len(masks) * (inches + 0.3) + 0.8, 3.6)
    panels = figure.subplots(1, len(masks), squeeze=False)[0]
    for axes, (name, mask) in zip(panels, masks.items(), strict=True):
        links(axes, tokens, [palette.SPAN if span > CONTEXT else palette.CONTEXT for span in modes[name]], mask)
        axes.set_title(name, color=palette.INK, fontsize=11, parse_math=False)
    panels[0].set_yticks([0, 1], ["input", "output"], fontsize=9, color=palette.INK)
    figure.supxlabel("grey: looks both ways · black: within a span, never ahead", color=palette.INK, fontsize=9)
    return _titled(figure, title)


def links_text(tokens: Sequence[str], modes: Modes) -> str:
    """The same lines in words; arguments and errors as `modes_figure`."""
    lines = []
    for name, mask in _masks(tokens, modes).items():
        span_ids, lines = np.asarray(modes[name]), [*lines, name]
        names = token_names(tokens, modes[name])
        margin = max(map(len, names), default=0)
        for query, token in enumerate(names):
            context = np.flatnonzero(mask[query] & (span_ids == CONTEXT)).tolist()
            own = np.flatnonzero(mask[query] & (span_ids > CONTEXT)).tolist()
            read = [f"context {ranges(context)}"] if context else []
            read += [f"own span {ranges(own)}"] if own else []
            lines.append(f"  {query:>2} {token:{margin}} reads {', '.join(read)}")
    return "\n".join(lines)


def links(axes, tokens: Sequence[str], kinds: Sequence[palette.TokenClass], mask, queries=None) -> None:
    """Draw inputs below, outputs above and a line for everything that is read.

    Args:
        tokens, kinds: what each token says, and its class.
        mask: `(query, key)` of booleans.
        queries: indices of the outputs that have lines; all by default.
    """
    for query, key in np.argwhere(mask):
        if queries is None or query in queries:
            ahead = kinds[key] is palette.SPAN  # which never looks ahead
            style = {"color": palette.INK, "linewidth": 1.5} if ahead else {"color": "#A6A6A6", "linewidth": 0.7}
            axes.plot([key, query], [0, 1], **style, zorder=2 if ahead else 1)
    for place, kind in enumerate(kinds):
        style = {"edgecolor": palette.INK, "linewidth": 0.8, "zorder": 3}
        axes.scatter(place, 0, s=90, marker="s", facecolor=kind.light.background, **style)
        axes.scatter(place, 1, s=90, marker="o", facecolor=palette.CARD, **style)
    axes.set_xlim(-0.6, len(tokens) - 0.4)
    names = [kind.marks[0] + label(token) + kind.marks[1] for token, kind in zip(tokens, kinds, strict=True)]
    axes.set_xticks(range(len(tokens)), names, rotation=90, fontsize=9, color=palette.INK, parse_math=False)
    axes.set_ylim(-0.2, 1.2)
    axes.set_yticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _masks(tokens: Sequence[str], modes: Modes) -> dict[str, np.ndarray]:
    if not modes:
        raise ValueError("there is no mode to draw; give at least one name with a span id for each token")
    for name, span_ids in modes.items():
        if len(span_ids) != len(tokens):
            raise ValueError(
                f"{len(tokens)} tokens came with {len(span_ids)} span ids of {name}; there is one for each"
            )
    rows = torch.tensor([[int(span) for span in span_ids] for span_ids in modes.values()]).view(len(modes), -1)
    return dict(zip(modes, attention.attention_mask(rows)[:, 0].numpy(), strict=True))


def _spans(span_ids: Sequence[int]) -> list[str]:
    """The stretches of span tokens: `3–5`."""
    numbered = itertools.groupby(enumerate(span_ids), key=lambda pair: int(pair[1]))
    return [ranges([index for index, _ in group]) for span, group in numbered if span > CONTEXT]


def _titled(figure: Figure, title: str) -> Figure:
    if title:
        figure.suptitle(title, color=palette.INK, fontsize=12, parse_math=False)
    return figure
