"""A picture as a notebook shows it: a PNG, and the same content in characters where there is no room for a PNG."""

import io

from matplotlib.figure import Figure

from magnet_lab import viz

DPI = 110  # sharp enough on a page, and a notebook of twenty pictures stays under a megabyte


class Picture:
    """A figure and its twin in text: a notebook shows the one, a terminal or a screen reader the other."""

    def __init__(self, figure: Figure, text: str):
        self.figure, self.text = figure, text

    def png(self) -> bytes:
        """The figure as PNG; the same figure gives the same bytes."""
        file = io.BytesIO()
        self.figure.savefig(file, format="png", dpi=DPI, bbox_inches="tight", metadata={"Software": None})
        return file.getvalue()

    def _repr_png_(self) -> bytes:
        return self.png()

    def __repr__(self) -> str:
        return self.text


def show(kind: str, *content, title: str = "", **options) -> Picture:
    """Draw something that `magnet_lab.viz` has a picture of.

    Args:
        kind: "mask", "similarity", "map" …: any for which `viz` has a `KIND_figure` and a `KIND_text`.
        *content, **options: what these two take.
        title: written above the figure, and on the text's first line.

    Raises:
        ValueError: for a kind that there is not.
    """
    kinds = [name.removesuffix("_figure") for name in viz.__all__ if name.endswith("_figure")]
    if kind not in kinds:
        raise ValueError(f"there is no picture {kind!r}; there are {', '.join(kinds)}")
    figure = getattr(viz, f"{kind}_figure")(*content, title=title, **options)
    text = getattr(viz, f"{kind}_text")(*content, **options)
    return Picture(figure, f"{title}\n{text}" if title else text)
