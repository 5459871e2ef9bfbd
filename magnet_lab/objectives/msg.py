"""Missing-span generation: the tokens of a span, from the context on both sides and the span so far (Equation 4).

    L_MSG = - 1/N' · Σ_n Σ_l 1[token l + 1 of text n is a span token] · log p(token l + 1 | output at l)

Where every token is a span token this is plain next-token prediction. The first token of a span is read from the
context token left of it, which sees the whole context and nothing of the span.
"""

from torch import LongTensor, Tensor

from magnet_lab.objectives.mntp import mntp_loss


def msg_loss(logits: Tensor, labels: LongTensor, *, divide_by: int | float | None = None) -> Tensor:
    """Mean cross entropy (nats) of the span tokens; arguments as `mntp_loss`, with the labels of span tokens.

    As it is printed, Equation 4 divides by the batch alone, N, where Equation 2 divides by N·L.

    The two losses are the same sum over different targets: what differs is who may look at whom, and that is in the
    mask that the logits were computed under.
    """
    return mntp_loss(logits, labels, divide_by=divide_by)
