"""The Transformer layer that encoder and decoders are made of, small enough to be read at one glance.

The paper takes T5-small for encoder and decoder (Table 6) and puts its own layers in. Kept of T5: every part reads its
input normalised and adds to it, matrices have no bias, and the words' vectors are shared between encoder, decoder and
the scores over the vocabulary. Left out: dropout, as training here is short, and relative positions, which
tell a shallow model too little about where in its sentence a word stands.
"""

import math
from dataclasses import dataclass

import torch
from torch import BoolTensor, LongTensor, Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

EPSILON = 1e-6  # of layer normalisation, Table 6


@dataclass(frozen=True)
class Shape:
    """Sizes of encoder and decoder; the paper's (Table 6) are 512, 512, 8, 6 and 2048 at a vocabulary of 32,128.

    Attributes:
        vocabulary: how many tokens there are.
        d_model: width of encoder and decoder.
        d_repr: width of the vector that stands for a text.
        heads, layers, d_feedforward: of encoder and decoder alike.
    """

    vocabulary: int = 1200
    d_model: int = 96
    d_repr: int = 96
    heads: int = 4
    layers: int = 1
    d_feedforward: int = 384


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A matrix as T5 draws it (initialize factor 1, Table 6): what goes in comes out about as large."""
    made = nn.Linear(inputs, outputs, bias=False)
    nn.init.normal_(made.weight, std=inputs**-0.5)
    return made


class Words(nn.Embedding):
    """The vectors of the tokens, read on the way in and, by their products with a state, scored on the way out."""

    def __init__(self, shape: Shape):
        super().__init__(shape.vocabulary, shape.d_model)
        nn.init.normal_(self.weight, std=shape.d_model**-0.5)

    def forward(self, input_ids: LongTensor) -> Tensor:
        """`(batch, length)` -> `(batch, length, d_model)`: each token's vector, plus one for its place."""
        scale = self.embedding_dim**0.5
        return scale * super().forward(input_ids) + places(input_ids.shape[1], self.embedding_dim).to(self.weight)

    def scores(self, states: Tensor) -> Tensor:
        """`(..., d_model)` -> `(..., vocabulary)`."""
        return states @ self.weight.T


def places(length: int, width: int) -> Tensor:
    """Sines and cosines of the positions, `(length, width)`; the waves get longer from column to column."""
    frequencies = torch.exp(-math.log(10_000) * torch.arange(0, width, 2) / width)
    angles = torch.arange(length)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Attention(nn.Module):
    """Attention with several heads, of a sequence to itself or to another."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.heads = shape.heads
        self.query, self.key, self.value, self.out = (linear(shape.d_model, shape.d_model) for _ in range(4))

    def forward(self, queries: Tensor, memory: Tensor, mask: BoolTensor | None = None) -> Tensor:
        """`(batch, length, d_model)` and `(batch, keys, d_model)` -> `(batch, length, d_model)`.

        `mask`: `(batch, 1, length, keys)`, True where a query may attend to a key.
        """
        attended = scaled_dot_product_attention(
            self.by_head(self.query(queries)), self.by_head(self.key(memory)), self.by_head(self.value(memory)), mask
        )
        return self.out(attended.transpose(1, 2).flatten(2))

    def by_head(self, states: Tensor) -> Tensor:
        """`(batch, length, d_model)` -> `(batch, heads, length, d_model / heads)`."""
        return states.unflatten(2, (self.heads, -1)).transpose(1, 2)


class Layer(nn.Module):
    """Self-attention, perhaps a reader of the text's vector, and a feed-forward network.

    Args:
        shape: sizes.
        reader: takes queries `(batch, length, d_model)` and vectors `(batch, d_repr)`, returns what is to be added to
            the queries: the cross attention of Figure 2b or the gating layer of 2c. None for an encoder's layer.
    """

    def __init__(self, shape: Shape, reader: nn.Module | None = None):
        super().__init__()
        self.attention = Attention(shape)
        self.reader = reader
        self.feed_forward = nn.Sequential(
            linear(shape.d_model, shape.d_feedforward), nn.ReLU(), linear(shape.d_feedforward, shape.d_model)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(shape.d_model, eps=EPSILON) for _ in range(2 if reader is None else 3))

    def forward(self, states: Tensor, mask: BoolTensor, e_repr: Tensor | None = None) -> Tensor:
        """`(batch, length, d_model)` -> the same, under a mask `(batch, 1, length, length)`."""
        normalised = self.norms[0](states)
        states = states + self.attention(normalised, normalised, mask)
        if self.reader is not None:
            states = states + self.reader(self.norms[1](states), e_repr)
        return states + self.feed_forward(self.norms[-1](states))
