"""Rows of characters, split into a prefix and a target; and rows that are new every time."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import LongTensor

from magnet_lab.relatives.prefix_lm.masks import MODES, mode_span_ids
from magnet_lab.views import corrupt, next_token_labels

CHAPTER_TEXT = """The quick brown fox jumps over the lazy dog.
A journey of a thousand miles begins with a single step.
To be or not to be that is the question.
All that glitters is not gold.
Knowledge is power and power is knowledge."""


class Characters:
    """The characters of a text as a vocabulary: what `views.corrupt` wants of a tokenizer, and no more.

    The last id hides a character; the chapter's models, which hide none, do without it.
    """

    def __init__(self, text: str):
        self.letters = sorted(set(text))
        self.mask_token_id = len(self.letters)
        self.all_special_ids = [self.mask_token_id]

    def __len__(self) -> int:
        return len(self.letters) + 1

    def encode(self, text: str) -> LongTensor:
        """The ids of a text, `(length,)`."""
        if strange := set(text) - set(self.letters):
            raise ValueError(f"the character {min(strange)!r} is not among those of the text that was learnt")
        return torch.tensor([self.letters.index(character) for character in text], dtype=torch.long)

    def decode(self, ids: Sequence[int] | LongTensor) -> str:
        """The text of ids; `▢` for a hidden character."""
        return "".join([*self.letters, "▢"][int(id_)] for id_ in ids)


@dataclass(frozen=True)
class Batch:
    """What one forward pass takes and is scored against, all `(batch, length)`; as in `views.Views`."""

    input_ids: LongTensor
    span_ids: LongTensor
    labels: LongTensor


def windows(ids: LongTensor, count: int, length: int, generator: torch.Generator) -> LongTensor:
    """Stretches of a text from random places, `(count, length)`."""
    starts = torch.randint(len(ids) - length + 1, (count,), generator=generator)
    return torch.stack([ids[start : start + length] for start in starts.tolist()])


def random_splits(
    count: int, length: int, generator: torch.Generator, *, shortest: float = 0.3, longest: float = 0.7
) -> LongTensor:
    """Prefix lengths, `(count,)`: random shares of the length, rounded down (the chapter's `min_prefix_frac` …)."""
    shares = torch.rand(count, generator=generator) * (longest - shortest) + shortest
    return (shares * length).long().clamp(min=1)


def split(rows: LongTensor, prefix_lengths: LongTensor) -> Batch:
    """Rows with a prefix of their own length each, `(batch,)`, and the tokens after it as targets."""
    span_ids = mode_span_ids("prefix", torch.ones_like(rows), prefix_lengths[:, None])
    return Batch(rows, span_ids, next_token_labels(rows, span_ids > 0))


def printed_split(rows: LongTensor, prefix_lengths: LongTensor) -> Batch:
    """As the chapter's loop has it: the same targets, but bidirectional one token less far; `(batch, length - 1)`.

    There the row is shifted by one, and the prefix made one shorter along with it, for the mask and for the loss alike.
    So its last token is read causally in training, and as a part of the prefix when the model writes. The row's last
    token, which is only ever a label, is no input.
    """
    labels = split(rows, prefix_lengths).labels[:, :-1]
    inputs = rows[:, :-1]
    shorter = (prefix_lengths[:, None] - 1).clamp(min=1)
    return Batch(inputs, mode_span_ids("prefix", torch.ones_like(inputs), shorter), labels)


def causal_split(rows: LongTensor, prefix_lengths: LongTensor) -> Batch:
    """The same targets under the causal mask: what the bidirectional prefix is to be compared with."""
    batch = split(rows, prefix_lengths)
    return Batch(rows, mode_span_ids("unidirectional", torch.ones_like(rows)), batch.labels)


def in_mode(
    mode: str, rows: LongTensor, prefix_lengths: LongTensor, characters: Characters, generator: torch.Generator
) -> Batch:
    """Rows as one of UniLM's three objectives wants them, every one of which asks for the *next* token.

    Prefix: the target. Unidirectional: every token but the first. Bidirectional: 15 % of the tokens, hidden
    (`views.corrupt`) and asked for at the position before them, so that an output means the same in every mode.
    """
    if mode == "prefix":
        return split(rows, prefix_lengths)
    span_ids = mode_span_ids(mode, torch.ones_like(rows))
    if mode == "unidirectional":
        return Batch(rows, span_ids, next_token_labels(rows, span_ids > 0))
    hidden, selected = corrupt(rows, span_ids, tokenizer=characters, generator=generator, share=0.15)
    return Batch(hidden, span_ids, next_token_labels(rows, selected))


def in_all_modes(
    rows: LongTensor, prefix_lengths: LongTensor, characters: Characters, generator: torch.Generator
) -> Batch:
    """UniLM's batch: a third of the rows in each mode. One pass serves all, since the mode is in the span ids."""
    parts = [
        in_mode(mode, rows[start :: len(MODES)], prefix_lengths[start :: len(MODES)], characters, generator)
        for start, mode in enumerate(MODES)
    ]
    return Batch(*(torch.cat([getattr(part, name) for part in parts]) for name in ("input_ids", "span_ids", "labels")))


def random_rows(count: int, length: int, letters: int, generator: torch.Generator) -> LongTensor:
    """Letters drawn evenly, `(count, length)`: whoever predicts them with less than ln(letters) nats has seen them."""
    return torch.randint(letters, (count, length), generator=generator)


def sorting_rows(count: int, length: int, letters: int, generator: torch.Generator) -> LongTensor:
    """`length` random letters and the same in order, `(count, 2 · length)`: a target that is written from a prefix."""
    given = random_rows(count, length, letters, generator)
    return torch.cat([given, given.sort(dim=1).values], dim=1)
