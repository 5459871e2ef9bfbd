"""Masked next-token prediction: a hidden context token, read from the output one position to its left (Equation 2).

    L_MNTP = - 1/N' · Σ_n Σ_l 1[token l + 1 of text n is hidden] · log p(token l + 1 | output at l)

BERT predicts a hidden token from its own position. A decoder's output at l has always spoken of the token at l + 1; to
ask for the same here lets LoRA adapt the model quickly, where asking for token l does not (`mtp.py`, Figure 7).
"""

from torch import LongTensor, Tensor
from torch.nn.functional import cross_entropy

from magnet_lab.views import NO_LABEL


def mntp_loss(logits: Tensor, labels: LongTensor, *, divide_by: int | float | None = None) -> Tensor:
    """Mean cross entropy (nats) of the hidden context tokens.

    Args:
        logits: `(..., vocabulary)`, the output at position l.
        labels: `(...)`, the token at l + 1 where it is hidden, else -100: `views.next_token_labels`.
        divide_by: what the sum is divided by, N' above. By default the number of labels, so that the loss is a mean
            over its own targets; batch times length, N·L, is the equation as it is printed.

    Returns:
        A number; 0 where there is no label at all, so that a batch without targets adds nothing.
    """
    total = cross_entropy(logits.flatten(0, -2).float(), labels.flatten(), ignore_index=NO_LABEL, reduction="sum")
    targets = (labels != NO_LABEL).sum() if divide_by is None else divide_by
    return total / max(targets, 1)
