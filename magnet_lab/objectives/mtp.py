"""Masked token prediction: a hidden token read from its own position, as in BERT. Kept to show why it fails.

The residual stream carries a decoder's input token, here the mask token, up to an output that has learned to speak of
the *next* token. MTP asks that output for the hidden token instead. In the paper the training loss falls and the
accuracy on held-out text gets worse (Appendix E, Figure 7); `mntp.py` asks one position to the left instead.
"""

from torch import LongTensor, Tensor

from magnet_lab.objectives.mntp import mntp_loss


def mtp_loss(logits: Tensor, labels: LongTensor, *, divide_by: int | float | None = None) -> Tensor:
    """Mean cross entropy (nats); as `mntp_loss`, with labels at the tokens' own places: `views.same_token_labels`."""
    return mntp_loss(logits, labels, divide_by=divide_by)
