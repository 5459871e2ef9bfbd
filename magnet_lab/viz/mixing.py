"""What Equation 5 adds up: each loss times its λ; and how the temperature τ sharpens the contrastive choice."""

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from magnet_lab.encoding import similarity
from magnet_lab.objectives import info_nce
from magnet_lab.viz import palette

NAMES = ("MNTP", "SSCL", "MSG")
NUMBERS_UP_TO = 10  # sentences; a larger matrix has its colours alone


def mixing_figure(
    mntp: float,
    msg: float,
    anchors: Tensor,
    candidates: Tensor,
    *,
    weights: tuple[float, float, float] = (1.0, 9.0, 1.0),
    temperature: float = 0.1,
    title: str = "",
) -> Figure:
    """Draw the parts of the total loss, and which paraphrase each sentence would choose.

    Args:
        mntp, msg: the two losses of a batch (nats).
        anchors, candidates: vectors of its sentences and of their paraphrases, `(n, hidden)` each.
        weights: λ₁ of MNTP, λ₂ of SSCL, λ₃ of MSG; Appendix A ends with 1, 9, 1.
        temperature: τ of `info_nce`.
        title: written above.
    """
    losses, choices = _parts(mntp, msg, anchors, candidates, temperature)
    parts = losses * np.asarray(weights)
    figure = palette.card(9.2, 3.8)
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
    left.barh(range(3), parts, color=palette.SEES.background)
    left.set_yticks(range(3), NAMES, color=palette.INK)
    left.invert_yaxis()
    for row, (weight, loss, part) in enumerate(zip(weights, losses, parts, strict=True)):
        left.text(part, row, f" {weight:g} × {loss:.3f} = {part:.3f}", va="center", fontsize=9, color=palette.INK)
    left.set_xlim(0, 1.6 * max(parts.max(), 1e-6))
    left.set_xlabel(f"total loss {parts.sum():.3f} (nats)", color=palette.INK)
    left.spines[["top", "right"]].set_visible(False)
    left.tick_params(labelsize=9)
    image = right.imshow(choices, cmap=palette.WEIGHTS, vmin=0, vmax=1)
    if len(choices) <= NUMBERS_UP_TO:
        for (row, column), value in np.ndenumerate(choices):
            colour = palette.INK if value > 0.5 else "#FFFFFF"
            right.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)
    right.set_xticks(range(len(choices)))
    right.set_yticks(range(len(choices)))
    right.tick_params(labelsize=8, length=0, colors=palette.FAINT)
    right.set_xlabel("paraphrase", color=palette.INK)
    right.set_ylabel("sentence", color=palette.INK)
    right.set_title(f"share of each choice at τ = {temperature:g}", fontsize=10, color=palette.INK)
    figure.colorbar(image, ax=right, shrink=0.8)
    if title:
        figure.suptitle(title, color=palette.INK, fontsize=12, parse_math=False)
    return figure


def mixing_text(
    mntp: float,
    msg: float,
    anchors: Tensor,
    candidates: Tensor,
    *,
    weights: tuple[float, float, float] = (1.0, 9.0, 1.0),
    temperature: float = 0.1,
) -> str:
    """The same in characters; arguments as `mixing_figure`."""
    losses, choices = _parts(mntp, msg, anchors, candidates, temperature)
    parts = losses * np.asarray(weights)
    lines = [
        f"{name:4} {weight:g} × {loss:.3f} = {part:.3f}"
        for name, weight, loss, part in zip(NAMES, weights, losses, parts, strict=True)
    ]
    lines.append(f"total {parts.sum():.3f} (nats)")
    lines.append(f"share of each choice at τ = {temperature:g}; rows: sentences, columns: paraphrases")
    lines.append("  " + "".join(f" {column:>4}" for column in range(len(choices))))
    lines += [f"{row:>2}" + "".join(f" {value:.2f}" for value in values) for row, values in enumerate(choices)]
    return "\n".join(lines)


def _parts(mntp: float, msg: float, anchors: Tensor, candidates: Tensor, temperature: float):
    """The three losses in Equation 5's order, `(3,)`, and the softmax inside InfoNCE, `(n, n)`."""
    sscl = float(info_nce(anchors, candidates, temperature=temperature))
    choices = (similarity(anchors.float(), candidates.float()) / temperature).softmax(dim=-1)
    return np.array([mntp, sscl, msg]), choices.numpy()
