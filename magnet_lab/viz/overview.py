"""One text as a training step sees it: its three views, one decoder, three losses (Figure 4)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import LongTensor
from transformers import PreTrainedTokenizerBase

from magnet_lab.attention import attention_mask, bidirectional
from magnet_lab.decoder import start_ids, text_ids
from magnet_lab.encoding import DEFAULT_INSTRUCTION, sentence_ids
from magnet_lab.paraphrase import paraphrase
from magnet_lab.views import NO_LABEL, Views, make_views
from magnet_lab.viz import boxes, palette
from magnet_lab.viz.tokens import strip_text
from magnet_lab.viz.views import id_texts, kinds

CLASSES = {kind.name: kind for kind in palette.TOKEN_CLASSES}


@dataclass(frozen=True)
class Sentence:
    """A text as it is encoded: its ids, and what they say, the instruction before the text as a single piece."""

    text: str
    ids: list[int]
    pieces: list[str]


@dataclass(frozen=True)
class Example:
    """One text in a training step.

    Attributes:
        x, positive: the text and its paraphrase, x and x⁺, as they are encoded.
        ids: the text itself, `(1, length)`, with its opening token.
        views: xᵐ, a batch of one.
        tokens, read: what each token of the text says, and what is read in its place in xᵐ.
    """

    x: Sentence
    positive: Sentence
    ids: LongTensor
    views: Views
    tokens: list[str]
    read: list[str]


def example(
    tokenizer: PreTrainedTokenizerBase, text: str, *, seed: int = 0, positive: str | None = None, **options
) -> Example:
    """The three views of a text, made as training makes them.

    Args:
        text: a sentence or a few.
        seed: of the spans, the hidden tokens and the paraphrase.
        positive: the paraphrase; by default one made by rule.
        **options: of `views.make_views`; by default one span of 2 to 5 tokens.

    Raises:
        ValueError: for a text without a word.
    """
    if not text.strip():
        raise ValueError("the text is empty; write a sentence to make views of")
    generator = torch.Generator().manual_seed(seed)
    ids = torch.tensor([start_ids(tokenizer) + text_ids(tokenizer, text)])
    options = {"max_spans": 1, "shortest": 2, "longest": 5} | options
    views = make_views(ids, torch.ones_like(ids), tokenizer=tokenizer, generator=generator, **options)
    return Example(
        x=_sentence(tokenizer, text),
        positive=_sentence(tokenizer, paraphrase(text, generator) if positive is None else positive),
        ids=ids,
        views=views,
        tokens=id_texts(tokenizer, ids[0].tolist()),
        read=id_texts(tokenizer, views.input_ids[0].tolist()),
    )


def overview_figure(example: Example, *, title: str = "") -> Figure:
    """Draw the three views of a text, their masks, and which loss each of them serves (Figure 4)."""
    views = _views(example)
    width, column, margin = 10.2, 3.2, 0.2
    found = [boxes.places(pieces, column - 0.2) for _, pieces, _, _ in views]
    text_height = max(map(boxes.height, found))
    tall = text_height + 4.05 + (0.4 if title else 0)
    figure, axes = boxes.paper(width, tall)
    boxes.titled(figure, axes, title)
    top = tall - (0.45 if title else 0.1)
    lefts = [margin + number * (column + 0.1) for number in range(3)]
    for left, places, (heading, pieces, classes, mask) in zip(lefts, found, views, strict=True):
        boxes.note(axes, left, top - 0.15, heading, fontsize=10, fontweight="bold")
        boxes.draw(axes, pieces, places, classes, left, top - 0.35)
        under = top - 0.35 - text_height
        _thumbnail(axes, mask, left + column / 2 - 0.5, under - 1.1)
        words = "bidirectional mask" if mask.all() else "MAGNET mask"
        boxes.note(axes, left + column / 2 + 0.6, under - 0.6, words.replace(" ", "\n"))
        _arrow(axes, left + column / 2, under - 1.15, under - 1.4)
    under -= 1.4
    axes.add_patch(Rectangle((margin, under - 0.4), width - 2 * margin, 0.4, facecolor=palette.SEES.background))
    style = {"ha": "center", "color": palette.SEES.text, "fontsize": 11}
    boxes.note(
        axes, width / 2, under - 0.2, "one decoder: the same weights for all three, in one training step", **style
    )
    outputs = (
        "h of the last token → head → e",
        "h⁺ of the last token → head → e⁺",
        "hᵐ → yᵐ: at l, scores of the token at l + 1",
    )
    for left, words in zip(lefts, outputs, strict=True):
        _arrow(axes, left + column / 2, under - 0.45, under - 0.7)
        boxes.note(axes, left + column / 2, under - 0.82, words, ha="center")
        _arrow(axes, left + column / 2, under - 0.92, under - 1.1)
    hidden, missing = _targets(example)
    losses = (
        (lefts[0] + column + 0.05, 2 * column, "SSCL: e close to e⁺, far from other sentences"),
        (
            lefts[2] + column / 2,
            column,
            f"MNTP: {hidden} hidden token{'s' * (hidden != 1)}\nMSG: {missing} span tokens",
        ),
    )
    for middle, wide, words in losses:
        box = (middle - wide / 2, under - 1.6), wide, 0.5
        axes.add_patch(Rectangle(*box, facecolor=palette.CONTEXT.light.background, edgecolor="#C8C8C8"))
        boxes.note(axes, middle, under - 1.35, words, ha="center")
    boxes.note(axes, width / 2, under - 1.85, "total = λ₁ MNTP + λ₂ SSCL + λ₃ MSG", ha="center", fontsize=11)
    return figure


def overview_text(example: Example) -> str:
    """The same in characters; arguments as `overview_figure`."""
    views = example.views
    hidden, missing = _targets(example)
    chosen = views.selected[0].nonzero()[:, 0].tolist()
    return "\n".join(
        [
            f"x   bidirectional mask  {spoken(example.x)}",
            f"x⁺  bidirectional mask  {spoken(example.positive)}",
            f"xᵐ  MAGNET mask         {strip_text(example.read, views.span_ids[0].tolist(), chosen)}",
            "one decoder: the same weights for all three, in one training step",
            "SSCL: e, the last output of x, close to e⁺, that of x⁺, and far from other sentences",
            f"MNTP: {hidden} hidden tokens of xᵐ (▢), each from the output before it",
            f"MSG: {missing} span tokens of xᵐ ([ ]), each from the output before it",
            "total = λ₁ MNTP + λ₂ SSCL + λ₃ MSG",
        ]
    )


def spoken(sentence: Sentence) -> str:
    """A sentence with its instruction and its last token, in characters."""
    return "".join(sentence.pieces)


def sentence_kinds(sentence: Sentence) -> list[palette.TokenClass]:
    """The classes of a sentence's pieces: it is read bidirectionally, so all of it is context."""
    return [palette.CONTEXT] * len(sentence.pieces)


def view_kinds(example: Example) -> list[palette.TokenClass]:
    """The classes of the tokens of xᵐ."""
    return [CLASSES[name] for name in kinds(example.views)]


def _views(example: Example) -> list[tuple[str, Sequence[str], list[palette.TokenClass], np.ndarray]]:
    """Heading, pieces, their classes and the mask of each view."""
    made = []
    for heading, sentence in (("x: the text", example.x), ("x⁺: a paraphrase of it", example.positive)):
        span_ids = bidirectional(torch.ones(1, len(sentence.ids)))
        made.append((heading, sentence.pieces, sentence_kinds(sentence), attention_mask(span_ids)[0, 0].numpy()))
    mask = attention_mask(example.views.span_ids)[0, 0].numpy()
    return [*made, ("xᵐ: spans marked, tokens hidden", example.read, view_kinds(example), mask)]


def _targets(example: Example) -> tuple[int, int]:
    views = example.views
    return int((views.mntp_labels != NO_LABEL).sum()), int((views.msg_labels != NO_LABEL).sum())


def _sentence(tokenizer: PreTrainedTokenizerBase, text: str) -> Sentence:
    ids, *_ = sentence_ids(tokenizer, text, DEFAULT_INSTRUCTION, "last")
    before = start_ids(tokenizer) + text_ids(tokenizer, f"{DEFAULT_INSTRUCTION}:")
    pieces = id_texts(tokenizer, ids[len(before) :], before)
    return Sentence(text, ids, ["instruction:", *pieces])


def _thumbnail(axes, mask: np.ndarray, left: float, bottom: float) -> None:
    inset = axes.inset_axes((left, bottom, 1, 1), transform=axes.transData)
    tones = [palette.BLOCKED.background, palette.SEES.background]
    inset.imshow(mask, cmap=ListedColormap(tones), vmin=0, vmax=1, interpolation="nearest")
    inset.set_xticks([])
    inset.set_yticks([])


def _arrow(axes, x: float, start: float, stop: float) -> None:
    axes.annotate("", (x, stop), (x, start), arrowprops={"arrowstyle": "-|>", "color": palette.INK, "linewidth": 1})
