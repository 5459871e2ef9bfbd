"""What a model expects: the likeliest tokens at one position as bars, and a text shaded by its probabilities."""

import math
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from torch import Tensor

from magnet_lab.viz import boxes, palette
from magnet_lab.viz.learned_attention import BAR
from magnet_lab.viz.tokens import label, visible

BAR_WIDTH = 40  # characters of a bar of probability 1
RIGHT = "the true token"


def likeliest(tokenizer, scores: Tensor, *, k: int = 8, right: int | None = None) -> tuple[list[str], list[float]]:
    """The likeliest next tokens, best first, as `predictions_figure` takes them.

    Args:
        scores: `(vocabulary,)`, logits of one position.
        k: how many.
        right: the id of the true token; where it is not among the k it follows them, with its rank.

    Returns:
        What they say, and their probabilities.
    """
    probabilities = scores.float().softmax(dim=-1)
    values, ids = probabilities.topk(k)
    texts = [tokenizer.decode([token]) for token in ids.tolist()]
    values = values.tolist()
    if right is not None and right not in ids.tolist():
        rank = int((probabilities > probabilities[right]).sum()) + 1
        texts.append(f"{tokenizer.decode([right])} (rank {rank})")
        values.append(float(probabilities[right]))
    return texts, values


def predictions_figure(
    tokens: Sequence[str], probabilities: Sequence[float], *, right: int | None = None, title: str = ""
) -> Figure:
    """Draw the likeliest tokens of one position as bars.

    Args:
        tokens: what they say, best first: see `likeliest`.
        probabilities: one for each.
        right: index among them of the true token, which is marked.
        title: written above.

    Raises:
        ValueError: if there are not as many probabilities as tokens, or no token of index `right`.
    """
    _check(tokens, probabilities, right)
    figure = palette.card(6.4, 0.3 * len(tokens) + 1.2)
    predictions(figure.add_subplot(), tokens, probabilities, right)
    if title:
        figure.suptitle(title, color=palette.INK, fontsize=12, parse_math=False)
    return figure


def predictions_text(tokens: Sequence[str], probabilities: Sequence[float], *, right: int | None = None) -> str:
    """The same bars in characters; arguments and errors as `predictions_figure`."""
    _check(tokens, probabilities, right)
    names = [_shown(token) for token in tokens]
    margin = max(map(len, names), default=0)
    lines = []
    for index, (name, value) in enumerate(zip(names, probabilities, strict=True)):
        mark = f" ← {RIGHT}" if index == right else ""
        lines.append(f"{name:{margin}} {value:.3f} {BAR * round(BAR_WIDTH * value)}{mark}".rstrip())
    return "\n".join(lines)


def predictions(axes, tokens: Sequence[str], probabilities: Sequence[float], right: int | None = None) -> None:
    """The bars of `predictions_figure` on axes that are there."""
    for index, value in enumerate(probabilities):
        kind = palette.SPAN.light if index == right else palette.SEES
        axes.barh(index, value, color=kind.background, hatch="//" if index == right else None, edgecolor=palette.INK,
                  linewidth=0.6 if index == right else 0)  # fmt: skip
        words = f" {value:.3f}" + (f"  ← {RIGHT}" if index == right else "")
        axes.text(value, index, words, va="center", fontsize=9, color=palette.INK)
    axes.set_yticks(range(len(tokens)), [_shown(token) for token in tokens], fontsize=9, color=palette.INK,
                    parse_math=False)  # fmt: skip
    axes.invert_yaxis()
    axes.set_xlim(0, max(0.05, 1.45 * max(probabilities, default=1)))
    axes.set_xlabel("probability", fontsize=9, color=palette.INK)
    axes.tick_params(axis="x", labelsize=8, colors=palette.FAINT)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right"]].set_visible(False)


def likelihood_figure(tokens: Sequence[str], probabilities: Sequence[float], *, title: str = "") -> Figure:
    """Draw a text, each token shaded by its probability.

    Args:
        tokens: what each token says.
        probabilities: one for each, NaN where the model was not asked.
        title: written above.

    Raises:
        ValueError: if there are not as many probabilities as tokens.
    """
    _check(tokens, probabilities)
    width = 8.0
    found = boxes.places(tokens, width - 0.4)
    tall = boxes.height(found) + 0.7 + (0.45 if title else 0)
    figure, axes = boxes.paper(width, tall)
    boxes.titled(figure, axes, title)
    pairs = [_pair(value) for value in probabilities]
    boxes.draw(axes, tokens, found, pairs, 0.2, tall - (0.55 if title else 0.15))
    bar = axes.inset_axes((0.2, 0.3, 2.4, 0.12), transform=axes.transData)
    bar.imshow([[step / 255 for step in range(256)]], cmap=palette.WEIGHTS, aspect="auto", extent=(0, 1, 0, 1))
    bar.set_yticks([])
    bar.set_xticks([0, 0.5, 1], ["0", "0.5", "1"], fontsize=8, color=palette.INK)
    boxes.note(axes, 2.75, 0.36, "probability of the token (white: not asked)")
    return figure


def likelihood_text(tokens: Sequence[str], probabilities: Sequence[float]) -> str:
    """The same text, each token's probability behind it; arguments and errors as `likelihood_figure`."""
    _check(tokens, probabilities)
    return "".join(
        visible(token) + ("" if math.isnan(value) else f"⟨{value:.2f}⟩")
        for token, value in zip(tokens, probabilities, strict=True)
    )


def _shown(token: str) -> str:
    return label(token, 24)


def _pair(value: float) -> palette.Pair:
    if math.isnan(value):
        return palette.Pair(palette.CARD, palette.INK)
    return palette.Pair(to_hex(mpl.colormaps[palette.WEIGHTS](value)), palette.INK if value > 0.5 else "#FFFFFF")


def _check(tokens: Sequence[str], probabilities: Sequence[float], right: int | None = None) -> None:
    if len(tokens) != len(probabilities):
        raise ValueError(f"{len(tokens)} tokens came with {len(probabilities)} probabilities; there is one for each")
    if right is not None and not 0 <= right < len(tokens):
        raise ValueError(f"there is no token {right} among {len(tokens)}; they are counted from 0")
