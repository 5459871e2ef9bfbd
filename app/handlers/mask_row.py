"""A text as the row of tokens that a mask is for: what each token is and sees, and which one is predicted where."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import magnet_lab as ml

from .. import limits

if TYPE_CHECKING:
    from torch import BoolTensor

UNILMV2 = "unilmv2"
MODES = (*ml.attention.MODES, UNILMV2)
NAMES = {mode: mode.capitalize() for mode in MODES} | {"magnet": "MAGNET", UNILMV2: "UniLMv2"}
RULES = {
    "causal": "everything is one span, so every token sees itself and the tokens before it",
    "bidirectional": "everything is context, so every token sees every token",
    "prefix": "the prefix sees all of itself; a token after it sees the prefix and the tokens before it",
    "magnet": "context sees all context; a span token sees all context, itself and the earlier tokens of its span",
    UNILMV2: "each span is a step; [M] and [P] stand for a hidden token and predict it, [M] from what is given, [P] "
    "also from what earlier steps told, so the true tokens of a step stand at the end, for later ones to see",
}


@dataclass(frozen=True)
class Row:
    """A row of tokens under a mask.

    Attributes:
        tokens: what each says; in UniLMv2 more than the text has.
        marked: one number a token, above 0 where a picture's label puts it in `[ ]`.
        looks: the class of each token on a strip, see `viz.palette`.
        kinds, reasons: in words, what each token is, and why it sees what it sees.
        mask: `(length, length)`, True where the query may attend to the key.
        predictions: `(where, what)`: the token at `where` predicts the one at `what`, and so must not hear of it.
    """

    tokens: list[str]
    marked: list[int]
    looks: list[str]
    kinds: list[str]
    reasons: list[str]
    mask: "BoolTensor"
    predictions: list[tuple[int, int]]


def row(tokens: Sequence[str], mode: str, spans: str = "", prefix_length: int = 0, broken: bool = False) -> Row:
    """A text under the mask of a mode.

    Args:
        tokens: what each token of the text says.
        mode: one of `MODES`.
        spans: for "magnet" and "unilmv2", see `parse_spans`; the latter tells them from left to right.
        prefix_length: for "prefix", how many tokens it has.
        broken: against the rule, let what is given see what is to be predicted.

    Raises:
        ValueError: for an unknown mode, or spans or a prefix that do not fit the text.
    """
    if mode not in MODES:
        raise ValueError(f"the mode {mode!r} is not known; choose one of {', '.join(MODES)}")
    if mode == UNILMV2:
        return _pseudo_masked(tokens, parse_spans(spans, len(tokens)), broken)
    return _by_span_ids(tokens, mode, spans, prefix_length, broken)


def _by_span_ids(tokens: Sequence[str], mode: str, spans: str, prefix_length: int, broken: bool) -> Row:
    import torch

    from magnet_lab.relatives.prefix_lm.masks import printed_mask

    ones = torch.ones(1, len(tokens), dtype=torch.long)
    if mode == "prefix":
        limits.check_number("the prefix", prefix_length, 0, limits.MASK_TOKENS, whole=True)
        span_ids = ml.attention.prefix(ones, int(prefix_length))
    elif mode == "magnet":
        stretches = [(first, last + 1) for first, last in parse_spans(spans, len(tokens))]
        span_ids = ml.attention.magnet(ones, [stretches])
    else:
        span_ids = {"causal": ml.attention.causal, "bidirectional": ml.attention.bidirectional}[mode](ones)
    # The slip of one of the relatives is the broken rule: what is context sees the spans as well.
    mask = (printed_mask if broken else ml.attention.attention_mask)(span_ids)[0, 0]
    numbers = span_ids[0].tolist()
    kinds = {
        "magnet": lambda number: f"span {number}" if number else "context",
        "prefix": lambda number: "after the prefix" if number else "prefix",
    }.get(mode, lambda number: "token")
    return Row(
        tokens=list(tokens),
        marked=numbers,
        looks=["span" if number else "context" for number in numbers],
        kinds=[kinds(number) for number in numbers],
        reasons=[_reason(mode, number, broken) for number in numbers],
        mask=mask,
        # A span's token is predicted by the token to its left; the first one of a text by a token that is not drawn.
        predictions=[(what - 1, what) for what, number in enumerate(numbers) if number and what],
    )


def _reason(mode: str, number: int, broken: bool) -> str:
    if broken and not number:
        return "with the rule broken, a context token sees every token, spans too"
    return {
        "causal": "it sees itself and the tokens before it",
        "bidirectional": "it sees every token",
        "prefix": "it sees the prefix and the tokens before it" if number else "it sees all of the prefix",
        "magnet": "a span token sees all context, itself and the earlier tokens of its span"
        if number
        else "a context token sees all context and no span",
    }[mode]


def _pseudo_masked(tokens: Sequence[str], spans: list[tuple[int, int]], broken: bool) -> Row:
    from magnet_lab.relatives.pseudo_masked.layout import one_pass
    from magnet_lab.relatives.pseudo_masked.proof import context_sees_the_told
    from magnet_lab.relatives.pseudo_masked.vocabulary import SPECIAL
    from magnet_lab.views import NO_LABEL

    text = [len(SPECIAL) + position for position in range(len(tokens))]  # any ids will do that are not special ones
    layout = one_pass([text], [[list(range(first, last + 1)) for first, last in spans]])
    if broken:
        layout = context_sees_the_told(layout)
    positions, steps = layout.position_ids[0].tolist(), layout.steps[0].tolist()
    pseudo, masked = layout.pseudo[0].tolist(), (layout.ae_labels[0] != NO_LABEL).tolist()
    told = [step > 0 and not is_pseudo for step, is_pseudo in zip(steps, pseudo, strict=True)]
    at = {position: index for index, position in enumerate(positions) if told[index]}
    shown, kinds, reasons = [], [], []
    for index, (position, step) in enumerate(zip(positions, steps, strict=True)):
        if pseudo[index]:
            shown.append("[P]")
            kinds.append(f"pseudo mask for “{tokens[position].strip()}”, step {step}")
            reasons.append("it sees what is given, what earlier steps told, and the pseudo masks of its own step")
        elif told[index]:
            shown.append(tokens[position])
            kinds.append(f"told in step {step}")
            reasons.append("it sees what is given, what earlier steps told, and what is told with it")
        else:
            shown.append("[M]" if masked[index] else tokens[position])
            kinds.append(f"mask for “{tokens[position].strip()}”" if masked[index] else "given")
            reasons.append(
                "with the rule broken, what is given sees what is told as well" if broken else "it sees what is given"
            )
    return Row(
        tokens=shown,
        marked=[int(is_told) for is_told in told],
        looks=[
            "span" if told[index] else "masked" if pseudo[index] or masked[index] else "context"
            for index in range(len(shown))
        ],
        kinds=kinds,
        reasons=reasons,
        mask=layout.mask[0, 0],
        predictions=[
            (index, at[position]) for index, position in enumerate(positions) if pseudo[index] or masked[index]
        ],
    )


def parse_spans(spans: str, length: int) -> list[tuple[int, int]]:
    """Spans written as token numbers, "3-5, 9-11"; a lone number is a span of one token, "9-" one not yet ended.

    Raises:
        ValueError: if one cannot be read, leaves the text or overlaps another.
    """
    parsed = []
    for part in filter(None, (part.strip() for part in re.split(r"[,;]", spans or ""))):
        match = re.fullmatch(r"(\d{1,6})(?:\s*[-–]\s*(\d{0,6}))?", part)
        if not match:
            raise ValueError(f"the span {part!r} cannot be read; write first and last token, as in 3-5, 9-11")
        first = int(match[1])
        last = int(match[2] or first)
        if not first <= last < length:
            raise ValueError(f"the span {part} is not within the tokens 0 to {length - 1}, from the first to the last")
        parsed.append((first, last))
    parsed.sort()
    for (_, last), (first, _) in itertools.pairwise(parsed):
        if first <= last:
            raise ValueError(f"two spans share token {first}; a token is in one span at most")
    return parsed
