"""Who may look at whom, for one text: the mask drawn, and put into words."""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import magnet_lab as ml

from .. import limits

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Token:
    """A token on a strip: what it says, its class (see `viz.palette`), its words read aloud, whether it is picked."""

    text: str
    kind: str
    words: str
    picked: bool = False


@dataclass(frozen=True)
class MaskView:
    """A mask: the tokens, the picture and its text twin, and sentences about the token that is looked at."""

    strip: list[Token]
    figure: "Figure"
    text: str
    sentences: list[str]


RULES = {
    "causal": "everything is one span, so every token sees itself and the tokens before it",
    "bidirectional": "everything is context, so every token sees every token",
    "prefix": "the prefix sees all of itself; a token after it sees the prefix and the tokens before it",
    "magnet": "context sees all context; a span token sees all context, itself and the earlier tokens of its span",
}


def split(tokenizer, text: str) -> list[str]:
    """The tokens of a text to draw a mask of."""
    limits.check_text("the text", text, limits.MASK_CHARACTERS)
    tokens = ml.viz.token_texts(tokenizer, text)
    if len(tokens) > limits.MASK_TOKENS:
        raise ValueError(
            f"the text has {len(tokens):,} tokens; at most {limits.MASK_TOKENS} can be drawn, so shorten it"
        )
    return tokens


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


def mark(spans: str, token: int, length: int) -> str:
    """The spans after a click on a token: the first begins one, the second ends it, one on a span removes it."""
    done = parse_spans(spans, length)
    opened = re.search(r"(\d+)\s*[-–]\s*$", spans or "")
    if opened:
        done.remove((int(opened[1]), int(opened[1])))
        first, last = sorted((int(opened[1]), token))
        done = [span for span in done if span[1] < first or span[0] > last]  # a new span swallows what it covers
        return write_spans([*done, (first, last)])
    kept = [span for span in done if not span[0] <= token <= span[1]]
    return write_spans(kept) if len(kept) < len(done) else ", ".join(filter(None, [write_spans(done), f"{token}-"]))


def write_spans(spans: list[tuple[int, int]]) -> str:
    return ", ".join(f"{first}-{last}" for first, last in sorted(spans))


def draw_mask(
    tokens: Sequence[str],
    mode: str,
    spans: str = "",
    prefix_length: int = 0,
    leak: bool = False,
    layers: int = 1,
    token=None,
) -> MaskView:
    """Draw who may look at whom.

    Args:
        tokens: what each token says.
        mode: one of `attention.MODES`.
        spans: for "magnet", see `parse_spans`.
        prefix_length: for "prefix", how many tokens it has.
        leak: let the context see the spans, against the rule, to show what that does.
        layers: how many layers the words and the picture reach through.
        token: the token to look at.
    """
    import torch

    if mode not in ml.attention.MODES:
        raise ValueError(f"the mode {mode!r} is not known; choose one of {', '.join(ml.attention.MODES)}")
    limits.check_number("the number of layers", layers, 1, limits.MASK_LAYERS, whole=True)
    ones = torch.ones(1, len(tokens), dtype=torch.long)
    if mode == "causal":
        span_ids = ml.attention.causal(ones)
    elif mode == "bidirectional":
        span_ids = ml.attention.bidirectional(ones)
    elif mode == "prefix":
        limits.check_number("the prefix", prefix_length, 0, limits.MASK_TOKENS, whole=True)
        span_ids = ml.attention.prefix(ones, int(prefix_length))
    else:
        stretches = [(first, last + 1) for first, last in parse_spans(spans, len(tokens))]
        span_ids = ml.attention.magnet(ones, [stretches])
    mask = ml.attention.attention_mask(span_ids)[0, 0]
    if leak:
        mask = mask | (span_ids[0] == ml.attention.CONTEXT)[:, None]
    reach = ml.attention.receptive_field(mask, int(layers))
    numbers = span_ids[0].tolist()
    token = int(token) if token is not None and math.isfinite(token) and 0 <= token < len(tokens) else None
    strip = [
        Token(
            text=text,
            kind="span" if number > 0 else "context",
            words=f"{index} · {_kind(number, mode)} · sees {ml.viz.ranges(mask[index].nonzero()[:, 0].tolist())}",
            picked=index == token,
        )
        for index, (text, number) in enumerate(zip(tokens, numbers, strict=True))
    ]
    if token is None:
        sentences = _about_mask(mode, leak)
    else:
        sentences = _about_token(mask, reach, tokens, numbers, token, mode, leak, layers)
    return MaskView(
        strip,
        ml.viz.mask_figure(mask, tokens, numbers, reach=reach, token=token),
        f"{ml.viz.strip_text(tokens, numbers)}\n\n{ml.viz.mask_text(mask, tokens, numbers, reach=reach)}",
        sentences,
    )


def _kind(number: int, mode: str) -> str:
    if mode in ("magnet", "prefix"):
        kind = f"span {number}" if mode == "magnet" else "after the prefix"
        return kind if number else ("context" if mode == "magnet" else "prefix")
    return "token"


def _about_mask(mode: str, leak: bool) -> list[str]:
    return [f"{_name(mode)}: {RULES[mode]}.", *_LEAK[: int(leak)], "Pick a token to see what it sees, and who sees it."]


def _about_token(mask, reach, tokens, numbers, token: int, mode: str, leak: bool, layers: int) -> list[str]:
    ranges = ml.viz.ranges
    seen, seers = mask[token].nonzero()[:, 0].tolist(), mask[:, token].nonzero()[:, 0].tolist()
    further = (reach[token] & ~mask[token]).nonzero()[:, 0].tolist()
    reason = {
        "causal": "it sees itself and the tokens before it",
        "bidirectional": "it sees every token",
        "prefix": "it sees the prefix and the tokens before it" if numbers[token] else "it sees all of the prefix",
        "magnet": "a span token sees all context, itself and the earlier tokens of its span"
        if numbers[token]
        else "a context token sees all context and no span",
    }[mode]
    if leak and not numbers[token]:
        reason = "with the rule broken, a context token sees every token, spans too"
    sentences = [
        f"Token {token}, “{ml.viz.visible(tokens[token]).strip()}” ({_kind(numbers[token], mode)}): {reason}.",
        f"It sees {ranges(seen)} ({len(seen)} of {len(tokens)}).",
        f"It is seen by {ranges(seers)} ({len(seers)} of {len(tokens)}).",
    ]
    if layers == 1:
        sentences.append("That is one layer. More layers pass on what others have seen: move the slider.")
    elif further:
        own_future = [key for key in further if numbers[key] == numbers[token] > 0 and key > token]
        sentences.append(f"After {layers} layers it also hears of {ranges(further)}, through tokens that see them.")
        if own_future:
            sentences.append(f"A leak: {ranges(own_future)} is what it is still to predict.")
    else:
        sentences.append(f"After {layers} layers still the same: nothing reaches it through a third token. No leak.")
    return sentences


_LEAK = ["The rule is broken: the context sees the spans too. Pick a span token and go to two layers."]


def _name(mode: str) -> str:
    return "MAGNET" if mode == "magnet" else mode.capitalize()
