"""Autoencoding and partially autoregressive losses from one forward pass (Equations 3, 6 and 7).

    L_AE  = - Σ_{m in M} log p(x_m | x_\\M)                         read at the conventional masks [M]
    L_PAR = - Σ_i Σ_{m in M_i} log p(x_m | x_\\M, x_M1, …, x_Mi-1)   read at the pseudo masks [P] of step i
    L     = L_AE + L_PAR

The expectation over orders in Equation 6 is one order a text, drawn anew each time. AR is PAR with steps of one token.
"""

import torch
from torch import LongTensor, Tensor

from magnet_lab.objectives import mtp_loss
from magnet_lab.relatives.pseudo_masked.layout import Layout
from magnet_lab.relatives.pseudo_masked.model import Encoder
from magnet_lab.views import NO_LABEL


def losses(model: Encoder, layout: Layout) -> dict[str, Tensor]:
    """`{"ae": …, "par": …}`: each a mean over its own hidden tokens (nats), and 0 where the layout asks for none.

    The document prints sums. Both losses have the same hidden tokens, so their sum keeps its balance.
    """
    states = model(layout)
    found = {}
    for name, labels in (("ae", layout.ae_labels), ("par", layout.par_labels)):
        asked = labels != NO_LABEL  # the head over the vocabulary is the widest matrix: only where it is needed
        found[name] = mtp_loss(model.vocabulary_scores(states[asked]), labels[asked])
    return found


def log_probs(model: Encoder, layout: Layout, labels: LongTensor) -> Tensor:
    """log p (nats) of the labelled tokens, `(n,)` in the row's order; `labels` as in the layout, -100 elsewhere."""
    asked = labels != NO_LABEL
    scores = model.vocabulary_scores(model(layout)[asked])
    return torch.log_softmax(scores, dim=-1).gather(1, labels[asked][:, None])[:, 0]
