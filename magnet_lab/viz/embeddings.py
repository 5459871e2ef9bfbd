"""Vectors as pictures: how alike each two are, and all of them on a plane."""

from collections.abc import Sequence

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from magnet_lab.viz import palette
from magnet_lab.viz.tokens import label

NUMBERS_UP_TO = 16  # rows or columns; a larger heatmap has its colours alone


def similarity_figure(
    similarity, rows: Sequence[str], columns: Sequence[str] | None = None, *, title: str = ""
) -> Figure:
    """Draw cosine similarities as a heatmap with numbers.

    The colours span the values that occur, those of a thing with itself left out: a decoder's vectors are often all
    alike, and a scale from -1 to 1 would show a single colour.

    Args:
        similarity: `(rows, columns)`.
        rows, columns: what each row and column stands for; without columns, the rows' names.

    Raises:
        ValueError: if the numbers of names and of similarities differ.
    """
    values = _values(similarity, rows, columns)
    of_itself = np.eye(len(rows), dtype=bool) if columns is None else np.zeros(values.shape, dtype=bool)
    shown = values[~of_itself] if (~of_itself).any() else values
    low, high = float(shown.min()), float(shown.max())
    figure = palette.card(min(11.0, 3.6 + 0.55 * values.shape[1]), min(11.0, 1.9 + 0.45 * values.shape[0]))
    axes = figure.add_subplot()
    image = axes.imshow(values, cmap=palette.WEIGHTS, vmin=low, vmax=max(high, low + 1e-6), aspect="auto")
    if max(values.shape) <= NUMBERS_UP_TO:
        decimals = 2 if high - low > 0.1 else 3  # all alike is common, and then the third one tells
        for (row, column), value in np.ndenumerate(values):
            colour = palette.INK if (value - low) / max(high - low, 1e-6) > 0.5 else "#FFFFFF"
            axes.text(column, row, f"{value:.{decimals}f}", ha="center", va="center", fontsize=8, color=colour)
    style = {"fontsize": 9, "color": palette.INK, "parse_math": False}
    numbered = columns is None
    axes.set_yticks(range(len(rows)), _numbered(rows) if numbered else [label(row, 22) for row in rows], **style)
    # The rows say which sentence a number stands for; columns repeat the number only.
    names = [str(number) for number in range(1, len(rows) + 1)] if numbered else [label(c, 22) for c in columns]
    axes.set_xticks(range(values.shape[1]), names, rotation=0 if numbered else 90, **style)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    bar = figure.colorbar(image, ax=axes, shrink=0.9)
    bar.set_label("cosine similarity", color=palette.INK)
    if title:
        figure.suptitle(title, color=palette.INK, fontsize=12, parse_math=False)
    return figure


def similarity_text(similarity, rows: Sequence[str], columns: Sequence[str] | None = None) -> str:
    """The same as a table in characters; arguments and errors as `similarity_figure`."""
    values = _values(similarity, rows, columns)
    names = _numbered(rows, 40) if columns is None else [label(row, 40) for row in rows]
    heads = [str(n) for n in range(1, len(rows) + 1)] if columns is None else [label(column) for column in columns]
    margin = max((len(name) for name in names), default=0)
    widths = [max(5, len(head)) for head in heads]
    lines = [" " * margin + "".join(f"  {head:>{width}}" for head, width in zip(heads, widths, strict=True))]
    for name, row in zip(names, values, strict=True):
        cells = zip(row, widths, strict=True)
        lines.append(name.ljust(margin) + "".join(f"  {value:>{width}.2f}" for value, width in cells))
    return "\n".join(lines)


def project(vectors) -> tuple[np.ndarray, np.ndarray]:
    """The plane on which vectors lie furthest apart (PCA), of their directions alone, as cosine similarity sees them.

    Args:
        vectors: `(n, hidden)`.

    Returns:
        Places `(n, 2)`, and the share of the variance that each of the two directions shows, `(2,)`.
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    centred = vectors - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    places, shares = np.zeros((len(vectors), 2)), np.zeros(2)
    kept = min(2, len(sizes))
    places[:, :kept] = left[:, :kept] * sizes[:kept]
    if (total := (sizes**2).sum()) > 1e-12:
        shares[:kept] = sizes[:kept] ** 2 / total
    # A direction's sign is arbitrary; the furthest point lies on its positive side, so that a picture stays as it is.
    furthest = np.abs(places).argmax(axis=0)
    return places * np.where(places[furthest, [0, 1]] < 0, -1, 1), shares


def map_figure(vectors, labels: Sequence[str], *, title: str = "") -> Figure:
    """Draw vectors `(n, hidden)` as numbered points on their plane of greatest variance, named where there is room."""
    places, shares = project(vectors)
    if len(places) != len(labels):
        raise ValueError(f"{len(places)} vectors came with {len(labels)} labels; there is one for each")
    figure = palette.card(7.4, 5.4)
    axes = figure.add_subplot()
    axes.scatter(*places.T, s=190, color=palette.SEES.background, zorder=3)
    axes.margins(0.22)
    axes.set_xlabel(f"first direction ({shares[0]:.0%} of the variance)", color=palette.INK)
    axes.set_ylabel(f"second direction ({shares[1]:.0%})", color=palette.INK)
    axes.tick_params(labelsize=8, colors=palette.FAINT)
    axes.grid(color="#E4E4E4", linewidth=0.6)
    axes.set_axisbelow(True)
    if title:
        figure.suptitle(title, color=palette.INK, fontsize=12, parse_math=False)
    for number, place in enumerate(places, start=1):
        style = {"fontsize": 8, "fontweight": "bold", "color": palette.SEES.text, "zorder": 4}
        axes.annotate(str(number), place, ha="center", va="center", **style)
    _place_labels(figure, axes, places, [label(text, 34) for text in labels])
    return figure


def map_text(vectors, labels: Sequence[str]) -> str:
    """The map in words: for every vector its place, and which one is nearest by cosine similarity."""
    places, _ = project(vectors)
    vectors = np.asarray(vectors, dtype=np.float64)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    alike = vectors @ vectors.T - 3 * np.eye(len(vectors))
    lines = []
    for number, (text, place) in enumerate(zip(labels, places, strict=True)):
        nearest = ""
        if len(labels) > 1:
            other = int(alike[number].argmax())
            nearest = f"  nearest: {other + 1} ({alike[number, other]:.2f})"
        lines.append(f"{number + 1:>2} ({place[0]:+.2f}, {place[1]:+.2f}){nearest}  {label(text, 60)}")
    return "\n".join(lines)


def _values(similarity, rows: Sequence[str], columns: Sequence[str] | None) -> np.ndarray:
    values = np.asarray(similarity, dtype=np.float64)
    wanted = (len(rows), len(rows if columns is None else columns))
    if values.shape != wanted:
        raise ValueError(f"the similarities have shape {values.shape}; these names need {wanted}")
    return values


def _numbered(texts: Sequence[str], width: int = 30) -> list[str]:
    # The mark keeps the number to the left of a text that is written from right to left.
    return [f"{number}\u200e  {label(text, width)}" for number, text in enumerate(texts, start=1)]


def _place_labels(figure: Figure, axes, places: np.ndarray, labels: Sequence[str]) -> None:
    """Put each label beside its point, on the first side on which it hides no other; the numbers tell the rest."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()  # settles the layout, so that extents are the final ones
    points = axes.transData.transform(places)
    taken = [Bbox.from_bounds(x - 11, y - 11, 22, 22) for x, y in points]
    frame = axes.get_window_extent(renderer)
    for place, text in zip(places, labels, strict=True):
        for x, y, side in ((11, 0, "left"), (-11, 0, "right"), (0, 14, "center"), (0, -14, "center")):
            drawn = axes.annotate(
                text, place, xytext=(x, y), textcoords="offset points", ha=side, va="center", fontsize=8,
                color=palette.INK, parse_math=False,
            )  # fmt: skip
            box = drawn.get_window_extent(renderer)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            drawn.remove()
