"""Text with blanks, as a person writes it and as the model reads it.

`[blank]` is a blank of any length, `[blank:12]` one of twelve tokens, `[blank:8-16]` one of eight to sixteen; a
backslash before the bracket makes it no blank but the word itself.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from magnet_lab.decoder import continuation_ids, start_ids, text_ids

_BLANK = re.compile(r"(?P<escape>\\)?\[blank(?P<length>:[^\]\n]*)?\]", re.IGNORECASE)
_LENGTH = re.compile(r":\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*\s*$")
_MARK = re.compile(r"[.,;:!?…\-–—]\s*$")
_SENTENCE_START = re.compile(r"\s*[\"'“‘(\[]*[A-Z0-9]")

WITHIN_SENTENCE = (1, 8)  # tokens searched for a `[blank]` without a length inside a sentence
WHOLE_SENTENCE = (5, 20)  # … and for one that stands for a sentence


@dataclass(frozen=True)
class Blank:
    """One blank and what stands around it.

    Attributes:
        shortest, longest: the lengths asked for, in tokens.
        is_sentence: the blank stands where a whole sentence does.
        after_space: a space stands before the blank; it belongs to what is written, as a decoder's tokens begin words.
        before_space: whitespace stands after the blank, so that what is written must not end in any.
        before_mark: a punctuation mark stands after the blank.
    """

    shortest: int
    longest: int
    is_sentence: bool
    after_space: bool
    before_space: bool
    before_mark: bool

    def ends(self, text: str) -> bool:
        """Whether a fill ends as the blank asks: a sentence ends, and no two marks stand side by side.

        A length in tokens often stops in the middle of a sentence.
        """
        if self.is_sentence:
            return bool(_SENTENCE_END.search(text))
        return not (self.before_mark and _MARK.search(text))

    def fits(self, text: str) -> bool:
        """Whether a fill ends as the blank asks, and a sentence says no two words twice: what is repeated is always
        likely. So fills that fit are preferred to likelier ones.
        """
        return self.ends(text) and not (self.is_sentence and stutters(text))


@dataclass(frozen=True)
class Template:
    """A text with blanks, ready for the model.

    Attributes:
        segments: the text around the blanks, one more than there are blanks, without the space before a blank.
        blanks: the blanks, in order.
        ids: the context's token ids, segments one after the other, with an opening token where one is needed.
        anchors: for each blank the index in `ids` of the token to its left, which predicts its first token.
    """

    segments: tuple[str, ...]
    blanks: tuple[Blank, ...]
    ids: tuple[int, ...]
    anchors: tuple[int, ...]

    def fill(self, fills: list[str]) -> str:
        """The whole text with the blanks filled."""
        return self.segments[0] + "".join(fill + text for fill, text in zip(fills, self.segments[1:], strict=True))

    def with_first(self, text: str, ids: Sequence[int]) -> "Template":
        """The same text with its first blank filled, one blank fewer."""
        end = self.anchors[0] + 1
        return Template(
            segments=(self.segments[0] + text + self.segments[1], *self.segments[2:]),
            blanks=self.blanks[1:],
            ids=(*self.ids[:end], *ids, *self.ids[end:]),
            anchors=tuple(anchor + len(ids) for anchor in self.anchors[1:]),
        )


def stutters(text: str) -> bool:
    """Whether a text repeats a word at once, or any two words in a row: "a cat, a cat", "very very"."""
    words = [word.strip(".,;:!?…\"'“”‘’()-–—").lower() for word in text.split()]
    pairs = list(itertools.pairwise(word for word in words if word))
    return len(set(pairs)) < len(pairs) or any(one == other for one, other in pairs)


def parse(text: str) -> tuple[list[str], list[Blank]]:
    """The segments around the blanks of a text, and the blanks.

    Raises:
        ValueError: for a text without a blank or with nothing else, and for a length that makes no sense.
    """
    segments, lengths, rest = [""], [], 0
    for match in _BLANK.finditer(text):
        segments[-1] += text[rest : match.start()]
        rest = match.end()
        if match["escape"]:
            segments[-1] += match[0][1:]
        else:
            lengths.append(_length(match[0], match["length"], len(lengths) + 1))
            segments.append("")
    segments[-1] += text[rest:]
    if not lengths:
        raise ValueError("the text has no blank; write [blank], [blank:12] or [blank:8-16] where something is missing")
    if not any(segment.strip() for segment in segments):
        raise ValueError("the text has nothing but blanks; write some of the text around them")
    for number, between in enumerate(segments[1:-1], start=1):
        if not between.strip():
            raise ValueError(f"blanks {number} and {number + 1} touch; make them one, or write something between them")

    blanks = []
    for number, length in enumerate(lengths):
        left, right = segments[number], segments[number + 1]
        is_sentence = (not left.strip() or bool(_SENTENCE_END.search(left))) and (
            not right.strip() or bool(_SENTENCE_START.match(right))
        )
        after_space = left.endswith(" ")
        segments[number] = left.removesuffix(" ")
        shortest, longest = length or (WHOLE_SENTENCE if is_sentence else WITHIN_SENTENCE)
        before_space, before_mark = right[:1].isspace(), right[:1] in tuple(".,;:!?…")
        blanks.append(Blank(shortest, longest, is_sentence, after_space, before_space, before_mark))
    return segments, blanks


def template(tokenizer: PreTrainedTokenizerBase, text: str) -> Template:
    """A text with blanks as token ids; errors as `parse`."""
    segments, blanks = parse(text)
    first = segments[0]
    # The first token of a blank is predicted by the token before it, so a text that opens with a blank needs one.
    ids = start_ids(tokenizer, required=not first) + text_ids(tokenizer, first)
    if not ids:
        raise ValueError("this tokenizer has no token to open a text with; write some text before the first blank")
    anchors = []
    for segment in segments[1:]:
        anchors.append(len(ids) - 1)
        ids += continuation_ids(tokenizer, segment) if segment else []
    return Template(tuple(segments), tuple(blanks), tuple(ids), tuple(anchors))


def _length(blank: str, length: str | None, number: int) -> tuple[int, int] | None:
    if length is None:
        return None
    match = _LENGTH.fullmatch(length)
    if not match:
        raise ValueError(f"blank {number}, {blank}: a length is written [blank:12] or [blank:8-16], in tokens")
    shortest = int(match[1])
    longest = int(match[2] or shortest)
    if not 1 <= shortest <= longest:
        raise ValueError(f"blank {number}, {blank}: a length is at least 1 token, and a range goes from short to long")
    return shortest, longest
