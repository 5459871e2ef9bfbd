"""A small BERT that adds a relative position bias to its attention scores (Sections 2.1, 2.2 and 4.1).

Positions enter twice: as absolute position embeddings, and as the bias. Both look at `position_ids` and never at the
place in the row, so tokens that share a position are, but for what they show, the same to the model.
"""

import math
from dataclasses import dataclass

import torch
from torch import LongTensor, Tensor, nn

from magnet_lab.attention import for_backend
from magnet_lab.relatives.pseudo_masked.layout import Layout


@dataclass(frozen=True)
class Shape:
    """The size of a model. The document's: 30,522 tokens, 12 layers of 768 with 12 heads, inner 3072, 512 positions.

    Attributes:
        relative: with the relative position bias.
        buckets, furthest: of the bias; `relative_bucket`.
        spread: standard deviation of the first weights.
    """

    vocabulary: int
    hidden: int = 64
    layers: int = 3
    heads: int = 4
    inner: int = 256
    positions: int = 64
    relative: bool = True
    buckets: int = 32
    furthest: int = 128
    spread: float = 0.02


def relative_bucket(distance: LongTensor, buckets: int, furthest: int) -> LongTensor:
    """The bucket of a distance in positions, key minus query: half the buckets for keys to the right (Raffel et al.).

    On each side the nearest half of the buckets are one distance each; the others widen as a logarithm up to
    `furthest`, and what is further still shares the last.
    """
    side = buckets // 2
    exact = side // 2
    away = distance.abs()
    scaled = torch.log(away.clamp(min=1) / exact) / math.log(furthest / exact)
    far = (exact + (scaled * (side - exact)).long()).clamp(max=side - 1)
    return torch.where(away < exact, away, far) + side * (distance > 0)


class Block(nn.Module):
    """One Transformer layer, its norms after the sums as in BERT (Equations 1 and 2)."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.heads = shape.heads
        self.query, self.key, self.value, self.output = (nn.Linear(shape.hidden, shape.hidden) for _ in range(4))
        self.attention_norm = nn.LayerNorm(shape.hidden, eps=1e-12)
        self.inner = nn.Linear(shape.hidden, shape.inner)
        self.outer = nn.Linear(shape.inner, shape.hidden)
        self.feed_forward_norm = nn.LayerNorm(shape.hidden, eps=1e-12)

    def forward(self, states: Tensor, bias: Tensor) -> Tensor:
        """`(batch, width, hidden)` and a bias `(batch, 1 or heads, query, key)` for the scores -> new states."""
        query, key, value = (
            linear(states).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (batch, heads, width, head size)
            for linear in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) + bias
        mixed = (scores.softmax(dim=-1) @ value).transpose(1, 2).flatten(-2)
        states = self.attention_norm(states + self.output(mixed))
        return self.feed_forward_norm(states + self.outer(nn.functional.gelu(self.inner(states))))


class Encoder(nn.Module):
    """The Transformer with its head over the vocabulary, whose matrix is that of the token embeddings."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.positions = nn.Embedding(shape.positions, shape.hidden)
        self.segments = nn.Embedding(2, shape.hidden)
        self.norm = nn.LayerNorm(shape.hidden, eps=1e-12)
        self.relative = nn.Embedding(shape.buckets, shape.heads) if shape.relative else None
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.vocabulary_bias = nn.Parameter(torch.zeros(shape.vocabulary))
        self.apply(self._start)

    def forward(self, layout: Layout) -> Tensor:
        """The states after the last layer, `(batch, width, hidden)`.

        Raises:
            ValueError: if a text has more positions than the model.
        """
        if (furthest := int(layout.position_ids.max())) >= self.shape.positions:
            raise ValueError(
                f"a text of {furthest + 1} tokens is longer than the model's {self.shape.positions} positions; "
                "shorten it or give the model more positions"
            )
        states = self.tokens(layout.input_ids) + self.positions(layout.position_ids)
        states = self.norm(states + self.segments(layout.segment_ids))
        bias = for_backend(layout.mask, "eager", states.dtype)  # M of Equation 2: what is barred is as good as -∞
        if self.relative is not None:
            # One bias for all layers, (batch, query, key, heads) -> (batch, heads, query, key).
            distance = layout.position_ids[:, None, :] - layout.position_ids[:, :, None]
            buckets = relative_bucket(distance, self.shape.buckets, self.shape.furthest)
            bias = bias + self.relative(buckets).permute(0, 3, 1, 2)
        for block in self.blocks:
            states = block(states, bias)
        return states

    def vocabulary_scores(self, states: Tensor) -> Tensor:
        """`(..., hidden)` -> `(..., vocabulary)`."""
        return states @ self.tokens.weight.T + self.vocabulary_bias

    def _start(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=self.shape.spread)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)


def new_model(shape: Shape, seed: int) -> Encoder:
    """A model with first weights that follow from the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Encoder(shape)
