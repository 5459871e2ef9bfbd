"""Expected and got, one beside the other: masks as grids, labels in columns under their tokens."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from magnet_lab.views import NO_LABEL
from magnet_lab.viz import palette
from magnet_lab.viz.masks import BLOCKED, KEY, LEGEND, QUERY, SEES, draw_cells

WRONG = "^"


def masks_text(expected, got, names: Sequence[str]) -> str:
    """Two masks `(query, key)` side by side in characters, a `!` after every row of the second with a wrong cell."""
    expected, got = np.asarray(expected, dtype=bool), np.asarray(got, dtype=bool)
    margin = max(map(len, names))
    width = max(2 * len(names), len("expected"))
    lines = [f"rows: {QUERY}; columns: {KEY}; {SEES} {LEGEND[SEES]} · {BLOCKED} {LEGEND[BLOCKED]}"]
    lines.append(f"{'':{margin}}  {'expected':{width}}    got")
    for name, wanted, came in zip(names, expected, got, strict=True):
        mark = "" if (wanted == came).all() else " !"
        lines.append(f"{name:{margin}}  {_row(wanted):{width}}    {_row(came)}{mark}")
    return "\n".join(lines)


def masks_figure(expected, got, names: Sequence[str]) -> Figure:
    """The same as a picture, wrong cells framed."""
    expected, got = np.asarray(expected, dtype=bool), np.asarray(got, dtype=bool)
    size = len(names)
    inches = min(6.0, max(2.2, 0.3 * size))
    figure = palette.card(2 * inches + 2.4, inches + 1.4)
    for axes, cells, title in zip(figure.subplots(1, 2), (expected, got), ("expected", "got"), strict=True):
        draw_cells(axes, cells)
        for query, key in np.argwhere(cells != expected):
            corner = (key - 0.5, query - 0.5)
            axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="#D55E00", linewidth=2, zorder=3))
        style = {"fontsize": 8, "color": palette.INK, "parse_math": False}
        axes.set_yticks(range(size), names, **style)
        axes.set_xticks(range(size), names, rotation=90, **style)
        axes.tick_params(length=0)
        axes.set_title(title, color=palette.INK)
        axes.set_xlabel(KEY, color=palette.INK)
    figure.axes[0].set_ylabel(QUERY, color=palette.INK)
    return figure


def columns(rows: dict[str, Sequence]) -> str:
    """Rows of equal length under each other, `·` for no label, with a mark where "expected" and "got" differ."""
    cells = {name: [_cell(value) for value in values] for name, values in rows.items()}
    length = len(next(iter(cells.values())))
    table = {"position": [str(place) for place in range(length)], **cells}
    if "expected" in cells:
        pairs = zip(cells["expected"], cells["got"], strict=True)
        table[""] = [WRONG if one != other else "" for one, other in pairs]
    widths = [max(len(values[place]) for values in table.values()) for place in range(length)]
    margin = max(map(len, table))
    return "\n".join(
        f"{name:{margin}}  " + "  ".join(f"{value:>{width}}" for value, width in zip(values, widths, strict=True))
        for name, values in table.items()
    )


def _cell(value) -> str:
    if isinstance(value, bool):
        return SEES if value else BLOCKED
    return BLOCKED if value == NO_LABEL else str(value)


def _row(cells: np.ndarray) -> str:
    return " ".join(SEES if cell else BLOCKED for cell in cells)
