"""One position of a view: where it stands in its text, what it is asked for, and what the model expects there."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from magnet_lab.viz import boxes, palette
from magnet_lab.viz.probabilities import predictions, predictions_text
from magnet_lab.viz.tokens import label


def step_figure(
    read: Sequence[str],
    kinds: Sequence[palette.TokenClass],
    position: int,
    asked: str,
    tokens: Sequence[str],
    probabilities: Sequence[float],
    *,
    right: int | None = None,
    title: str = "",
) -> Figure:
    """Draw a view with one position framed, and under it the model's likeliest next tokens.

    Args:
        read, kinds: what each token of the view says, and its class.
        position: the one that is looked at.
        asked: what it is asked for, in words.
        tokens, probabilities, right: as `probabilities.predictions_figure` takes them.
        title: written above.

    Raises:
        ValueError: if there is no such position.
    """
    _check(read, position)
    width = 8.0
    found = boxes.places(read, width - 0.4)
    bars = 0.27 * len(tokens)
    tall = boxes.height(found) + bars + 1.3 + (0.45 if title else 0)
    figure, axes = boxes.paper(width, tall)
    boxes.titled(figure, axes, title)
    boxes.draw(axes, read, found, kinds, 0.2, tall - (0.55 if title else 0.15), framed=position)
    boxes.note(axes, 0.2, bars + 0.85, asked, fontsize=10)
    predictions(axes.inset_axes((1.7, 0.5, width - 2, bars), transform=axes.transData), tokens, probabilities, right)
    return figure


def step_text(
    read: Sequence[str],
    kinds: Sequence[palette.TokenClass],
    position: int,
    asked: str,
    tokens: Sequence[str],
    probabilities: Sequence[float],
    *,
    right: int | None = None,
) -> str:
    """The same in characters, the position in « »; arguments and errors as `step_figure`."""
    _check(read, position)
    marked = [kind.marks[0] + label(token) + kind.marks[1] for token, kind in zip(read, kinds, strict=True)]
    marked[position] = f"«{marked[position]}»"
    return "\n".join([" ".join(marked), asked, predictions_text(tokens, probabilities, right=right)])


def _check(read: Sequence[str], position: int) -> None:
    if not 0 <= position < len(read):
        raise ValueError(f"there is no position {position} among {len(read)}; they are counted from 0")
