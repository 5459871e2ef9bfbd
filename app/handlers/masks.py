"""Who may look at whom, for one text: the mask drawn, and put into words."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import magnet_lab as ml

from .. import limits
from . import mask_row
from .mask_row import parse_spans

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


def split(tokenizer, text: str) -> list[str]:
    """The tokens of a text to draw a mask of."""
    limits.check_text("the text", text, limits.MASK_CHARACTERS)
    tokens = ml.viz.token_texts(tokenizer, text)
    if len(tokens) > limits.MASK_TOKENS:
        raise ValueError(
            f"the text has {len(tokens):,} tokens; at most {limits.MASK_TOKENS} can be drawn, so shorten it"
        )
    return tokens


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
        tokens, mode, spans, prefix_length: see `mask_row.row`.
        leak: let the context see the spans, against the rule, to show what that does.
        layers: how many layers the words and the picture reach through.
        token: the token to look at.
    """
    row, reach, strip, sentences = _looked_at(tokens, mode, spans, prefix_length, leak, layers, token)
    picked = next((index for index, one in enumerate(strip) if one.picked), None)
    return MaskView(
        strip,
        ml.viz.mask_figure(row.mask, row.tokens, row.marked, reach=reach, token=picked),
        f"{ml.viz.strip_text(row.tokens, row.marked)}\n\n"
        f"{ml.viz.mask_text(row.mask, row.tokens, row.marked, reach=reach)}",
        sentences,
    )


def look(
    tokens: Sequence[str],
    mode: str,
    spans: str = "",
    prefix_length: int = 0,
    leak: bool = False,
    layers: int = 1,
    token=None,
) -> tuple[list[Token], list[str]]:
    """The strip and the sentences of `draw_mask`, without a picture: at once, before there is anything to draw with."""
    _, _, strip, sentences = _looked_at(tokens, mode, spans, prefix_length, leak, layers, token)
    return strip, sentences


def _looked_at(tokens, mode: str, spans: str, prefix_length: int, leak: bool, layers: int, token):
    """The row, what reaches whom in it, its strip, and sentences about the token that is looked at."""
    limits.check_number("the number of layers", layers, 1, limits.MASK_LAYERS, whole=True)
    row = mask_row.row(tokens, mode, spans, prefix_length, leak)
    reach = ml.attention.receptive_field(row.mask, int(layers))
    token = int(token) if token is not None and math.isfinite(token) and 0 <= token < len(row.tokens) else None
    strip = [
        Token(
            text=text,
            kind=kind,
            words=f"{index} · {words} · sees {ml.viz.ranges(row.mask[index].nonzero()[:, 0].tolist())}",
            picked=index == token,
        )
        for index, (text, kind, words) in enumerate(zip(row.tokens, row.looks, row.kinds, strict=True))
    ]
    return row, reach, strip, _about_mask(mode, leak) if token is None else _about_token(row, reach, token, layers)


def side_by_side(tokens: Sequence[str], spans: str = "", layers: int = 1) -> list[tuple[str, MaskView]]:
    """The same text under the masks of three methods: MAGNET's, a prefix LM's, whose prefix ends where the first span
    begins, and UniLMv2's."""
    first = min((start for start, _ in mask_row.parse_spans(spans, len(tokens))), default=len(tokens))
    return [
        ("MAGNET", draw_mask(tokens, "magnet", spans, layers=layers)),
        (f"Prefix LM, prefix of {first}", draw_mask(tokens, "prefix", prefix_length=first, layers=layers)),
        ("UniLMv2", draw_mask(tokens, mask_row.UNILMV2, spans, layers=layers)),
    ]


def _about_mask(mode: str, leak: bool) -> list[str]:
    rule = f"{mask_row.NAMES[mode]}: {mask_row.RULES[mode]}."
    return [rule, *_LEAK[: int(leak)], "Pick a token to see what it sees, and who sees it."]


def _about_token(row: mask_row.Row, reach, token: int, layers: int) -> list[str]:
    ranges, length = ml.viz.ranges, len(row.tokens)
    seen, seers = row.mask[token].nonzero()[:, 0].tolist(), row.mask[:, token].nonzero()[:, 0].tolist()
    further = (reach[token] & ~row.mask[token]).nonzero()[:, 0].tolist()
    sentences = [
        f"Token {token}, “{ml.viz.visible(row.tokens[token]).strip()}” ({row.kinds[token]}): {row.reasons[token]}.",
        f"It sees {ranges(seen)} ({len(seen)} of {length}).",
        f"It is seen by {ranges(seers)} ({len(seers)} of {length}).",
    ]
    if layers == 1:
        sentences.append("That is one layer. More layers pass on what others have seen: move the slider.")
    elif further:
        sentences.append(f"After {layers} layers it also hears of {ranges(further)}, through tokens that see them.")
        if leaked := sorted(set(further) & _still_to_predict(row, token)):
            sentences.append(f"A leak: {ranges(leaked)} is what it is still to predict.")
    else:
        sentences.append(f"After {layers} layers still the same: nothing reaches it through a third token. No leak.")
    return sentences


def _still_to_predict(row: mask_row.Row, token: int) -> set[int]:
    """What is predicted at a token, and then from there on."""
    predicts = dict(row.predictions)
    found = set()
    while (token := predicts.get(token)) is not None:
        found.add(token)
    return found


_LEAK = ["The rule is broken: the context sees the spans too. Pick a span token and go to two layers."]
