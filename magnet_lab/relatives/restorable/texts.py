"""The texts that are turned into vectors: runs of one, three or five sentences of a story, as rows of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import BoolTensor, LongTensor
from transformers import PreTrainedTokenizerFast

from magnet_lab.decoder import pad, text_ids
from magnet_lab.paraphrase import sentences
from magnet_lab.relatives.pseudo_masked.vocabulary import SPECIAL, word_tokenizer


@dataclass(frozen=True)
class Texts:
    """Texts and their tokens, padded on the right.

    Attributes:
        texts: as they are written.
        input_ids: `(texts, longest)`, without special tokens.
        tokens: `(texts, longest)`, True at a token, False at padding.
    """

    texts: list[str]
    input_ids: LongTensor
    tokens: BoolTensor

    def __len__(self) -> int:
        return len(self.texts)

    def rows(self, places: Sequence[int]) -> tuple[LongTensor, BoolTensor]:
        """The ids of some texts and where their tokens are, no wider than the longest of them."""
        tokens = self.tokens[places]
        longest = int(tokens.sum(dim=1).max())
        return self.input_ids[places][:, :longest], tokens[:, :longest]


def make_tokenizer(stories: Sequence[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Whole words in lower case, so many of the most frequent; the rest is one token, lost before it is encoded.

    A short training meets a rare word too seldom to learn its vector. The paper's vocabulary is that of T5.
    """
    pad_token, unk_token, bos_token, eos_token, mask_token, _ = SPECIAL
    return PreTrainedTokenizerFast(
        tokenizer_object=word_tokenizer(stories, vocabulary),
        pad_token=pad_token,
        unk_token=unk_token,
        bos_token=bos_token,
        eos_token=eos_token,
        mask_token=mask_token,
    )


def tokenized(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> Texts:
    """Texts as rows of tokens.

    Raises:
        ValueError: if there is no text, or an empty one.
    """
    rows = [text_ids(tokenizer, text) for text in texts]
    if not rows or not all(rows):
        raise ValueError(f"of {len(rows)} texts, {rows.count([])} have no word; give stories of several sentences")
    return Texts(texts, *pad(rows))


def passages(stories: Sequence[str], length: int) -> list[str]:
    """All runs of `length` sentences in a row, story by story."""
    found = []
    for story in stories:
        parts = sentences(story, shortest=1, longest=1000)
        found += [" ".join(parts[start : start + length]) for start in range(len(parts) - length + 1)]
    return found


def questions(stories: Sequence[str]) -> tuple[list[str], list[str]]:
    """For passage retrieval: each story's first sentence, and the rest of the story, which is to be found by it."""
    parts = [sentences(story, shortest=1, longest=1000) for story in stories]
    parts = [story for story in parts if len(story) > 1]
    return [story[0] for story in parts], [" ".join(story[1:]) for story in parts]


def spread(texts: list[str], count: int) -> list[str]:
    """`count` texts from all over a list, or all of them if there are no more."""
    return [texts[number * len(texts) // count] for number in range(count)] if count < len(texts) else texts
