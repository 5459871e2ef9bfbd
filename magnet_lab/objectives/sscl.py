"""Self-supervised contrastive learning: a sentence close to its paraphrase, far from the others (Equation 3).

    L_SSCL = - 1/N · Σ_i log [ exp(e_i · e_i⁺ / τ) / Σ_j exp(e_i · e_j⁺ / τ) ]

The negatives of a sentence are the paraphrases of the other sentences in the batch. The sum below the line runs over
all j, the sentence's own paraphrase among them (InfoNCE). The paper prints a dot product; the vectors are brought to
length 1 first here, so that it is their cosine, as in evaluation.
"""

import torch
from torch import LongTensor, Tensor, nn
from torch.nn.functional import cross_entropy, normalize


def info_nce(
    anchors: Tensor, candidates: Tensor, *, temperature: float = 0.1, targets: LongTensor | None = None
) -> Tensor:
    """Mean loss (nats) of finding every anchor's own candidate among all of them.

    Args:
        anchors: `(n, hidden)`, e.
        candidates: `(m, hidden)` with m >= n, e⁺: other processes' candidates and extra hard negatives may follow.
        temperature: τ; the paper's is 0.1.
        targets: `(n,)`, the index of each anchor's own candidate; by default anchor i's is candidate i.

    Raises:
        ValueError: if the temperature is not above 0 or there are fewer candidates than anchors.
    """
    if temperature <= 0:
        raise ValueError(f"a temperature of {temperature} is not above 0")
    if len(candidates) < len(anchors):
        raise ValueError(f"{len(anchors)} anchors need as many candidates, not {len(candidates)}")
    cosines = normalize(anchors.float(), dim=-1) @ normalize(candidates.float(), dim=-1).T  # (n, m)
    targets = torch.arange(len(anchors), device=anchors.device) if targets is None else targets
    return cross_entropy(cosines / temperature, targets)


class ProjectionHead(nn.Module):
    """Figure 4's head between a sentence's hidden state and the contrastive loss, used in training only.

    The loss shapes what comes out of the head; the state before it, which is what `encode` returns, keeps more of the
    sentence. It starts as the identity plus nothing, so that training starts from the vectors the model has.
    """

    def __init__(self, hidden: int):
        super().__init__()
        self.inner = nn.Linear(hidden, hidden)
        self.outer = nn.Linear(hidden, hidden)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, states: Tensor) -> Tensor:
        """`(n, hidden)` -> `(n, hidden)`."""
        return states + self.outer(torch.tanh(self.inner(states)))
