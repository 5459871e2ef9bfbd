"""A text as one vector: the passage encoder (Section 3.1).

A bidirectional Transformer gives every token a state h. One vector is made of them in one of two ways, and a learned
matrix W then brings it to the width d_repr:

    classification token    e_repr = W h([CLS]),  the state of a token put before the text      (Equation 1)
    mean pooling            e_repr = W Σ_i h(x_i) / √T,  T tokens                               (Equation 2)

The root makes Equation 2 no mean: a long text gets a longer vector. Were the states independent of each other, their
sum divided by √T would be about as long as one of them, however many there are.
"""

from torch import BoolTensor, LongTensor, Tensor, nn
from torch.nn.functional import pad

from magnet_lab.attention import attention_mask, bidirectional
from magnet_lab.relatives.pseudo_masked.vocabulary import SOS
from magnet_lab.relatives.restorable.layers import EPSILON, Layer, Shape, Words, linear

POOLINGS = ("mean", "classification")


class Encoder(nn.Module):
    """Text to vector.

    Args:
        shape: sizes.
        words: the tokens' vectors, shared with the decoder.
        pooling: "mean" or "classification".
        additional_layers: how many layers come after the first `shape.layers`, unknown to pre-training (Table 1).
        classification_id: the id that is put before a text for "classification".

    Raises:
        ValueError: for an unknown pooling.
    """

    def __init__(
        self,
        shape: Shape,
        words: Words,
        *,
        pooling: str = "mean",
        additional_layers: int = 0,
        classification_id: int = SOS,
    ):
        super().__init__()
        if pooling not in POOLINGS:
            raise ValueError(f"pooling {pooling!r} is not known; choose one of {', '.join(POOLINGS)}")
        self.pooling = pooling
        self.classification_id = classification_id
        self.words = words
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.additional = nn.ModuleList(Layer(shape) for _ in range(additional_layers))
        self.norm = nn.LayerNorm(shape.d_model, eps=EPSILON)
        self.project = linear(shape.d_model, shape.d_repr)  # W

    def forward(self, input_ids: LongTensor, tokens: BoolTensor) -> Tensor:
        """e_repr `(batch, d_repr)` of texts `(batch, length)`; `tokens` is True at a token, False at padding."""
        if self.pooling == "classification":
            input_ids, tokens = pad(input_ids, (1, 0), value=self.classification_id), pad(tokens, (1, 0), value=True)
            return self.project(self.states(input_ids, tokens)[:, 0])
        total = (self.states(input_ids, tokens) * tokens[:, :, None]).sum(dim=1)
        return self.project(total / tokens.sum(dim=1, keepdim=True).sqrt())

    def states(self, input_ids: LongTensor, tokens: BoolTensor) -> Tensor:
        """h, a state for every token: `(batch, length, d_model)`."""
        mask = attention_mask(bidirectional(tokens))
        states = self.words(input_ids)
        for layer in (*self.layers, *self.additional):
            states = layer(states, mask)
        return self.norm(states)

    def freeze(self) -> None:
        """Keep what pre-training has made, tokens' vectors and first layers; the rest goes on learning (Table 1)."""
        self.words.requires_grad_(False)
        self.layers.requires_grad_(False)
