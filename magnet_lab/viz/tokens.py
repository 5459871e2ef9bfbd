"""Tokens as a reader sees them: what each one says, and a text as a strip of them."""

import functools
import unicodedata
from collections.abc import Sequence

from magnet_lab.attention import CONTEXT, PADDING
from magnet_lab.viz import palette

_NAMES = {"\n": "↵", "\t": "⇥"}


def token_texts(tokenizer, text: str) -> list[str]:
    """The tokens of a text as stretches of it: joined, they are the text.

    A character made of several tokens, as an emoji is in many vocabularies, goes to the first of them; the others are
    empty.

    Args:
        tokenizer: a fast tokenizer of transformers.
    """
    if not text:
        return []
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    texts, done = [], 0
    for _, stop in offsets:
        texts.append(text[done : max(done, stop)])
        done = max(done, stop)
    if texts:
        texts[-1] += text[done:]
    return texts


def visible(text: str) -> str:
    """A text with everything invisible but spaces spelled out: line breaks, control and format characters."""
    return "".join(_visible(character) for character in text) or "⋯"  # a further piece of the character to the left


def label(text: str, width: int = 14) -> str:
    """A token or a sentence as a label in a picture: on one line, without spaces around it, no wider than `width`."""
    known = _drawn_characters()
    text = "".join(c if ord(c) in known else "▯" for c in visible(text.strip(" ") or "␣"))
    return text if len(text) <= width else text[: width - 1] + "…"


def strip_text(tokens: Sequence[str], span_ids: Sequence[int], masked: Sequence[int] = ()) -> str:
    """A text with its spans in `[ ]` and a `▢` before each masked token: the text twin of a token strip.

    Args:
        tokens: what each token says.
        span_ids: one number a token, see `magnet_lab.attention`; padding is left out.
        masked: indices of masked tokens.
    """
    _check_lengths(tokens, span_ids)
    opening, closing = palette.SPAN.marks
    parts, inside = [], CONTEXT
    for index, (token, span) in enumerate(zip(tokens, span_ids, strict=True)):
        if span == PADDING:
            continue
        space = token[: len(token) - len(token.lstrip(" "))]
        if span != inside:
            parts.append(closing if inside != CONTEXT else "")
            space += opening if span != CONTEXT else ""
        mask = palette.MASKED.marks[0] if index in masked else ""
        parts.append(space + mask + (visible(token.lstrip(" ")) if token.strip(" ") else ""))
        inside = span
    return "".join(parts) + (closing if inside != CONTEXT else "")


def ranges(indices: Sequence[int]) -> str:
    """Ascending indices in words: `0–7, 12`; "nothing" for none."""
    stretches: list[list[int]] = []
    for index in indices:
        if stretches and index == stretches[-1][1] + 1:
            stretches[-1][1] = index
        else:
            stretches.append([index, index])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in stretches) or "nothing"


def _visible(character: str) -> str:
    if character in _NAMES:
        return _NAMES[character]
    # Zero-width joiners hold emoji together; all else that is invisible could turn or hide the text around it.
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\u200c\u200d":
        return f"‹U+{ord(character):04X}›"
    return character


@functools.cache
def _drawn_characters() -> frozenset[int]:
    """The characters that the pictures' font has."""
    from matplotlib.font_manager import FontProperties, findfont
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(findfont(FontProperties())).get_charmap())


def _check_lengths(tokens: Sequence[str], span_ids: Sequence[int]) -> None:
    if len(tokens) != len(span_ids):
        raise ValueError(f"{len(tokens)} tokens came with {len(span_ids)} span ids; there is one for each token")
