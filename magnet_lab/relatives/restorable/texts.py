"""The texts that are turned into vectors: runs of one, three or five sentences of a story, as rows of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import BoolTensor, LongTensor
from transformers import PreTrainedTokenizerFast

from magnet_lab.data.rows import Corpus
from magnet_lab.decoder import pad, text_ids
from magnet_lab.paraphrase import sentences
from magnet_lab.training import scratch


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


def make_tokenizer(stories: Sequence[str], vocabulary: int, folder: Path) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of the stories, kept in a folder and taken from there if it was made before.

    It has few tokens, so that a short training meets each of them often.
    """
    corpus = folder / "stories.txt"
    if not corpus.is_file():
        corpus.write_text("\n".join(stories), encoding="utf-8")
    return scratch.tokenizer(Corpus([str(corpus)]), scratch.Architecture(vocabulary=vocabulary), folder)


def tokenized(tokenizer: PreTrainedTokenizerFast, texts: list[str], longest: int | None = None) -> Texts:
    """Texts as rows of tokens; those of more than `longest` tokens are left out.

    Raises:
        ValueError: if no text is left.
    """
    kept = [(text, ids) for text in texts if (ids := text_ids(tokenizer, text)) and len(ids) <= (longest or len(ids))]
    if not kept:
        raise ValueError(f"none of {len(texts)} texts has 1 to {longest} tokens; give a corpus of shorter sentences")
    return Texts([text for text, _ in kept], *pad([ids for _, ids in kept]))


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
