"""Writing a target: one token at a time, several beginnings side by side (beam search, Section 3.4).

The model writes at a pseudo mask, as it was trained to: each new token is the cloze instance of one factorization
step, whose earlier steps are the tokens written so far. Every instance is read from its start; keeping the keys and
values of what has been read would change the speed and nothing else.
"""

from typing import NamedTuple

import torch

from magnet_lab.relatives.pseudo_masked.cloze import instances, par_row
from magnet_lab.relatives.pseudo_masked.masking import left_to_right
from magnet_lab.relatives.pseudo_masked.model import Encoder
from magnet_lab.relatives.pseudo_masked.vocabulary import EOS, PSEUDO, SPECIAL, join


class Hypothesis(NamedTuple):
    """A written target.

    Attributes:
        tokens: without [EOS].
        log_prob: of the tokens and the [EOS] after them, in nats.
        score: the log-probability over the length penalty; the higher the better.
    """

    tokens: list[int]
    log_prob: float
    score: float


def length_penalty(length: int, alpha: float) -> float:
    """What a log-probability is divided by, for a target of `length` tokens with its [EOS] (Wu et al.)."""
    return ((5 + length) / 6) ** alpha


@torch.no_grad()
def beam_search(
    model: Encoder, source: list[int], *, beam: int = 5, max_length: int = 48, alpha: float = 0.6
) -> list[Hypothesis]:
    """The best targets for a source, the best first; defaults as for XSum (Table 10).

    At every length the likeliest `beam` continuations of all beginnings go on; those that end are put aside. A beam of
    one takes the likeliest token each time.

    Args:
        source: ids without special tokens.
        beam: how many beginnings are kept at every length, and how many targets are returned at most.
        max_length: tokens, the [EOS] not counted; a beginning that has as many can only end.
        alpha: of the length penalty; 0 for none. A higher one favours longer targets.

    Raises:
        ValueError: if beam or max_length is below 1.
    """
    if beam < 1 or max_length < 1:
        raise ValueError(f"a beam of {beam} and targets of up to {max_length} tokens; both are at least 1")
    live: list[tuple[list[int], float]] = [([], 0.0)]
    ended: list[Hypothesis] = []
    for length in range(max_length + 1):
        log_probs = _next_tokens(model, source, [tokens for tokens, _ in live])
        log_probs += torch.tensor([so_far for _, so_far in live])[:, None]
        ends = torch.arange(log_probs.shape[1]) == EOS
        words = torch.arange(log_probs.shape[1]) >= len(SPECIAL)
        log_probs[:, ~ends if length == max_length else ~(ends | words)] = -torch.inf
        best = log_probs.flatten().topk(min(beam, log_probs.numel()))
        beginnings, live = live, []
        for place, log_prob in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            beginning, token = divmod(place, log_probs.shape[1])
            tokens = beginnings[beginning][0]
            if token == EOS:
                ended.append(Hypothesis(tokens, log_prob, log_prob / length_penalty(length + 1, alpha)))
            elif log_prob > -torch.inf:
                live.append(([*tokens, token], log_prob))
        ended = sorted(ended, key=lambda hypothesis: -hypothesis.score)[:beam]
        # A log-probability never rises with more tokens, and what it is divided by is largest at the full length.
        hope = max((log_prob for _, log_prob in live), default=-torch.inf) / length_penalty(max_length + 1, alpha)
        if not live or (len(ended) == beam and hope <= ended[-1].score):
            break
    return ended


def _next_tokens(model: Encoder, source: list[int], written: list[list[int]]) -> torch.Tensor:
    """Log-probabilities of the token after each of the beginnings, all of one length: `(beginnings, vocabulary)`."""
    start, length = len(join(source)), len(written[0])
    order = left_to_right(range(start, start + length + 1))
    rows = [par_row(join(source) + tokens + [PSEUDO], order, length, conventional=False) for tokens in written]
    return model.vocabulary_scores(model(instances(rows))[:, -1]).log_softmax(dim=-1)
