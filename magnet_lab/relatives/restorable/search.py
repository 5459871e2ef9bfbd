"""Beam search, with the settings of Table 6: four beams, and an end once four texts are finished.

The table also lists top k = 50 and top p = 50. Those two shape a draw, and beam search draws nothing, so they have no
effect here (and 50 is no probability). The rest is as in transformers' `generate`: a finished text's score is its mean
log-probability a token, and a text can finish only while it is among the best `beams`.
"""

from collections.abc import Callable

import torch
from torch import LongTensor, Tensor


@torch.no_grad()
def beam_search(
    next_log_probs: Callable[[LongTensor], Tensor], count: int, *, end: int, longest: int, beams: int = 4
) -> list[list[int]]:
    """The likeliest continuation found for each of `count` sources, all searched side by side.

    Args:
        next_log_probs: ids so far `(count · beams, length)`, the beams of a source one after the other, to the
            log-probabilities of the next token `(count · beams, vocabulary)`; the length is 0 at first.
        end: the id that finishes a text.
        longest: a search ends after this many tokens, `end` included.

    Returns:
        For each source its ids, without `end`.
    """
    ids = torch.empty(count, beams, 0, dtype=torch.long)
    # At first all beams are the same empty text; one of them speaks for all.
    totals = torch.full((count, beams), -torch.inf)
    totals[:, 0] = 0.0
    finished: list[list[tuple[float, list[int]]]] = [[] for _ in range(count)]
    for length in range(1, longest + 1):
        log_probs = next_log_probs(ids.flatten(0, 1)).unflatten(0, (count, beams))
        vocabulary = log_probs.shape[-1]
        # At most `beams` of the best 2 · beams end here, so there are always enough to go on with.
        scores, places = (totals[:, :, None] + log_probs).flatten(1).topk(2 * beams)
        parents, tokens = places // vocabulary, places % vocabulary
        extended = torch.cat([ids.gather(1, parents[:, :, None].expand(-1, -1, length - 1)), tokens[:, :, None]], 2)
        ended = tokens == end
        finishing = ended[:, :beams] & scores[:, :beams].isfinite()
        for source in range(count):
            if len(finished[source]) < beams:  # else its search is over
                for rank in finishing[source].nonzero()[:, 0].tolist():
                    text = extended[source, rank, :-1].tolist()
                    finished[source].append((float(scores[source, rank]) / length, text))
        totals, going_on = scores.masked_fill(ended, -torch.inf).topk(beams)
        ids = extended.gather(1, going_on[:, :, None].expand(-1, -1, length))
        if all(len(texts) >= beams for texts in finished):
            break
    for source, texts in enumerate(finished):
        if len(texts) < beams:  # cut off at the longest: what is still going on counts as it stands
            texts += zip((totals[source] / longest).tolist(), ids[source].tolist(), strict=True)
    return [max(texts)[1] for texts in finished]
