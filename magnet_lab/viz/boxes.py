"""Tokens as boxes in lines, as a reader sees a text: what other pictures put their tokens down with.

Everything is in inches, on axes as large as the figure: so a picture knows how tall a text is before it is drawn.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import text_to_path

from magnet_lab.viz import palette
from magnet_lab.viz.tokens import label

LINE = 0.32  # from one line to the next
HEIGHT = 0.26  # of a box
POINTS = 9  # size of the letters
WIDEST = 24  # characters of a token
FRAME = "#D55E00"


@dataclass(frozen=True)
class Place:
    """Where a box stands: its left edge, its line counted from 0, its width."""

    x: float
    line: int
    width: float


def paper(width: float, height: float):
    """A white figure and axes in inches, from its lower left corner."""
    figure = palette.card(width, height)
    figure.set_layout_engine("none")  # every place is given
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    return figure, axes


def places(tokens: Sequence[str], width: float) -> list[Place]:
    """Boxes of the tokens in lines of this width; a box is as wide as what it says."""
    found, x, line = [], 0.0, 0
    for token in tokens:
        own = text_width(label(token, WIDEST)) + 0.1
        if x > 0 and x + own > width:
            x, line = 0.0, line + 1
        found.append(Place(x, line, own))
        x += own + 0.03
    return found


def height(found: Sequence[Place]) -> float:
    """Of all lines together."""
    return LINE * (1 + max((place.line for place in found), default=0))


def draw(
    axes, tokens: Sequence[str], found: Sequence[Place], kinds: Sequence, left: float, top: float, framed: int = -1
) -> None:
    """Put boxes on axes made by `paper`.

    Args:
        tokens, found: as in and from `places`.
        kinds: for each token its `palette.TokenClass`, or a `palette.Pair` where it is of no class.
        left, top: the upper left corner.
        framed: index of a token that is framed; none by default.
    """
    for index, (token, place, kind) in enumerate(zip(tokens, found, kinds, strict=True)):
        pair = kind if isinstance(kind, palette.Pair) else kind.light
        x, y = left + place.x, top - place.line * LINE - HEIGHT
        axes.add_patch(Rectangle((x, y), place.width, HEIGHT, facecolor=pair.background, edgecolor="#C8C8C8"))
        if kind is palette.SPAN:  # the second channels of the classes
            axes.add_patch(Rectangle((x, y), place.width, 0.03, facecolor=pair.text, edgecolor="none"))
        if kind is palette.MASKED:
            inner = (x + 0.02, y + 0.02), place.width - 0.04, HEIGHT - 0.04
            axes.add_patch(Rectangle(*inner, fill=False, edgecolor=pair.text, linestyle=(0, (2, 1.5)), linewidth=0.8))
        if index == framed:
            around = (x - 0.02, y - 0.02), place.width + 0.04, HEIGHT + 0.04
            axes.add_patch(Rectangle(*around, fill=False, edgecolor=FRAME, linewidth=2, zorder=3))
        style = {"fontsize": POINTS, "color": pair.text, "parse_math": False}
        axes.text(x + place.width / 2, y + HEIGHT / 2, label(token, WIDEST), ha="center", va="center_baseline", **style)


@functools.lru_cache(maxsize=4096)
def text_width(text: str, points: float = POINTS) -> float:
    """Of a line of text in the pictures' font, in inches."""
    return text_to_path.get_text_width_height_descent(text, FontProperties(size=points), False)[0] / 72


def note(axes, x: float, y: float, text: str, **style) -> None:
    """Words on a picture."""
    axes.text(x, y, text, **{"fontsize": POINTS, "color": palette.INK, "va": "center", "parse_math": False} | style)


def titled(figure: Figure, axes, title: str) -> None:
    """The title of a figure made by `paper`, in the half inch that was left for it."""
    if title:
        width, tall = figure.get_size_inches()
        note(axes, width / 2, tall - 0.22, title, fontsize=12, ha="center")
