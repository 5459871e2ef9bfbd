"""The views of a training batch (Figure 4): where the spans are, which tokens are hidden, what is to be predicted.

From a text x comes xᵐ: one or more stretches of it are marked as spans, and a fifth of what is left, the context, is
corrupted. One forward pass over xᵐ under the MAGNET mask serves two objectives: the hidden context tokens (MNTP) and
the tokens of the spans (MSG). Both are predicted from one position to the left, as in any decoder: the output at
position l is scored against the *uncorrupted* token at l + 1. So labels are the text itself, shifted by one, and -100
(which PyTorch's cross entropy leaves out) wherever nothing is asked.
"""

import itertools
import re
from dataclasses import dataclass

import torch
from torch import BoolTensor, LongTensor, Tensor
from transformers import PreTrainedTokenizerBase

from magnet_lab.attention import CONTEXT, bidirectional, causal

NO_LABEL = -100
_ENDS = re.compile(r"^[^\w]*[.!?…][\"'”’)]*$")
MASK_TEXT = "_"  # LLaMA-2 has no mask token; Appendix A takes this one


@dataclass(frozen=True)
class Views:
    """What one forward pass takes, and what it is scored against; all `(batch, length)`.

    Attributes:
        input_ids: the text with its corrupted context tokens, xᵐ.
        span_ids: see `magnet_lab.attention`.
        mntp_labels: at l the token at l + 1 where that is a hidden context token, else -100.
        msg_labels: at l the token at l + 1 where that is a span token, else -100.
        selected: True where a context token was chosen to be hidden.
    """

    input_ids: LongTensor
    span_ids: LongTensor
    mntp_labels: LongTensor
    msg_labels: LongTensor
    selected: BoolTensor


def make_views(
    input_ids: LongTensor,
    tokens: Tensor,
    *,
    tokenizer: PreTrainedTokenizerBase,
    generator: torch.Generator,
    mask_share: float = 0.2,
    **spans,
) -> Views:
    """Spans, corruption and labels for a batch of texts.

    Args:
        input_ids: `(batch, length)`.
        tokens: `(batch, length)`, 1 (True) at a token, 0 at padding.
        mask_share: see `corrupt`.
        **spans: options of `sample_spans`.
    """
    span_ids = sample_spans(tokens, generator=generator, **spans)
    corrupted, selected = corrupt(input_ids, span_ids, tokenizer=tokenizer, generator=generator, share=mask_share)
    return Views(
        input_ids=corrupted,
        span_ids=span_ids,
        mntp_labels=next_token_labels(input_ids, selected),
        # Not a row's first token: nothing stands before it, even where every token is a span token.
        msg_labels=next_token_labels(input_ids, (span_ids > 0) & (tokens.cumsum(dim=1) > 1)),
        selected=selected,
    )


def sample_spans(
    tokens: Tensor,
    *,
    generator: torch.Generator,
    max_spans: int = 2,
    shortest: int = 4,
    longest: int = 128,
    causal_share: float = 0.0,
    sentence_share: float = 0.0,
    sentence_ends: BoolTensor | None = None,
) -> LongTensor:
    """Mark up to `max_spans` stretches of each row as spans (Appendix A: up to 2, of 4 to 128 tokens).

    A span never starts at a row's first token, which nothing could predict it from, and two spans never touch. At
    least half of a row stays context, so that short rows get short spans or none.

    Args:
        tokens: `(batch, length)`, 1 (True) at a token, 0 at padding.
        generator: the source of every random choice.
        max_spans: each row has one to this many, as many as fit; 0 for none.
        shortest, longest: bounds of a span's length in tokens.
        causal_share: share of rows in which every token is a span token: plain next-token prediction (Section 3.3).
        sentence_share: share of spans that are whole sentences, where a row has one of a length in bounds.
        sentence_ends: `(batch, length)`, True at the last token of a sentence; needed for `sentence_share`.

    Returns:
        Span ids `(batch, length)`.
    """
    if not 1 <= shortest <= longest:
        raise ValueError(f"spans of {shortest} to {longest} tokens make no sense; the shortest is at least 1")
    if max_spans < 0:
        raise ValueError(f"{max_spans} spans a row cannot be; 0 is none")
    if sentence_share and sentence_ends is None:
        raise ValueError("spans that are sentences need sentence_ends: where the sentences of each row end")
    span_ids = bidirectional(tokens)
    if max_spans == 0:
        return span_ids
    for row in range(len(span_ids)):
        if causal_share and _uniform(generator) < causal_share:
            span_ids[row] = causal(tokens[row : row + 1])[0]
            continue
        first = int(tokens[row].int().argmax()) + 1  # a span's first possible place
        end = first - 1 + int(tokens[row].sum())
        room = (end - first + 1) // 2  # tokens that may become span tokens
        taken: list[tuple[int, int]] = []
        for number in range(1, _integer(1, max_spans, generator) + 1):
            stretches = []
            if sentence_share and _uniform(generator) < sentence_share:
                stretches = [
                    (start, stop)
                    for start, stop in _sentences(sentence_ends[row], first, end)
                    if shortest <= stop - start <= min(longest, room) and _is_free(taken, start, stop)
                ]
            if not stretches and room >= shortest:
                length = _integer(shortest, min(longest, room), generator)
                starts = range(first, end - length + 1)
                stretches = [(start, start + length) for start in starts if _is_free(taken, start, start + length)]
            if not stretches:
                break
            start, stop = stretches[_integer(0, len(stretches) - 1, generator)]
            span_ids[row, start:stop] = number
            taken.append((start, stop))
            room -= stop - start
    return span_ids


def corrupt(
    input_ids: LongTensor,
    span_ids: LongTensor,
    *,
    tokenizer: PreTrainedTokenizerBase,
    generator: torch.Generator,
    share: float = 0.2,
) -> tuple[LongTensor, BoolTensor]:
    """Hide a share of the context tokens: 80 % become the mask token, 10 % a random token, 10 % stay (Section 3.2.1).

    Never chosen: a row's first token, which nothing predicts; padding; special tokens; and a context token right after
    a span, which would be predicted from a span token's output, while the task lives on the context's outputs.

    Returns:
        The corrupted ids and where tokens were chosen, both `(batch, length)`.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"a share of {share} of the context cannot be hidden; give a number from 0 to 1")
    special = torch.tensor(tokenizer.all_special_ids, device=input_ids.device)
    after_context = torch.zeros_like(span_ids, dtype=torch.bool)
    after_context[:, 1:] = span_ids[:, :-1] == CONTEXT
    eligible = (span_ids == CONTEXT) & after_context & ~torch.isin(input_ids, special)

    # In every row the chosen ones are those with the lowest random numbers: an exact share, not one on average.
    numbers = torch.rand(input_ids.shape, generator=generator, device=generator.device).to(input_ids.device)
    ranks = numbers.masked_fill(~eligible, 2.0).argsort(dim=1).argsort(dim=1)
    selected = eligible & (ranks < (eligible.sum(dim=1, keepdim=True) * share).round())

    fate = torch.rand(input_ids.shape, generator=generator, device=generator.device).to(input_ids.device)
    random_ids = torch.randint(len(tokenizer), input_ids.shape, generator=generator, device=generator.device)
    corrupted = torch.where(selected & (fate < 0.8), mask_token_id(tokenizer), input_ids)
    corrupted = torch.where(selected & (fate >= 0.9), random_ids.to(input_ids.device), corrupted)
    return corrupted, selected


def next_token_labels(input_ids: LongTensor, targets: BoolTensor) -> LongTensor:
    """Labels for predicting the marked tokens from the position before them: at l the token at l + 1, else -100."""
    labels = torch.full_like(input_ids, NO_LABEL)
    labels[:, :-1] = torch.where(targets[:, 1:], input_ids[:, 1:], NO_LABEL)
    return labels


def same_token_labels(input_ids: LongTensor, targets: BoolTensor) -> LongTensor:
    """Labels for predicting the marked tokens from their own position, as BERT does (MTP, Appendix E)."""
    return torch.where(targets, input_ids, NO_LABEL)


def sentence_end_tokens(tokenizer: PreTrainedTokenizerBase) -> LongTensor:
    """The ids of the tokens whose text ends a sentence, such as `.` and `."`."""
    texts = tokenizer.batch_decode([[token] for token in range(len(tokenizer))])
    return torch.tensor([token for token, text in enumerate(texts) if _ENDS.search(text.strip())])


def mask_token_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """The token that hides another: the tokenizer's mask token, or the single token for `_`.

    Raises:
        ValueError: if the tokenizer has neither.
    """
    if tokenizer.mask_token_id is not None:
        return tokenizer.mask_token_id
    ids = tokenizer.convert_tokens_to_ids([MASK_TEXT])
    if ids[0] is None or ids[0] == tokenizer.unk_token_id:
        raise ValueError(
            f"the tokenizer has no mask token and no single token for {MASK_TEXT!r}; name one of its tokens with "
            "tokenizer.mask_token = ..."
        )
    return ids[0]


def _sentences(ends: BoolTensor, first: int, end: int) -> list[tuple[int, int]]:
    """The sentences, `(start, stop)`, of a row's stretch first:end, but the one that opens the text."""
    places = [place + 1 for place in ends[first:end].nonzero()[:, 0].add(first).tolist()]
    return list(itertools.pairwise(places))


def _is_free(taken: list[tuple[int, int]], start: int, stop: int) -> bool:
    """Whether start:stop neither overlaps nor touches a span that is there already."""
    return all(stop < other_start or start > other_stop for other_start, other_stop in taken)


def _integer(low: int, high: int, generator: torch.Generator) -> int:
    return int(torch.randint(low, high + 1, (), generator=generator, device=generator.device))


def _uniform(generator: torch.Generator) -> float:
    return float(torch.rand((), generator=generator, device=generator.device))
