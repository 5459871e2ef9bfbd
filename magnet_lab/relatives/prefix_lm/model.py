"""The chapter's small decoder, and its twin with an encoder of its own for the prefix.

Both take a row and its span ids and give the scores of the next token at every position, so the same loop trains both.
Letters after a colon below are the chapter's names for the same sizes.
"""

import math
from collections.abc import Callable

import torch
from torch import BoolTensor, LongTensor, Tensor, nn

from magnet_lab.attention import CONTEXT, PADDING, attention_mask


class Attention(nn.Module):
    """Attention with several heads, of tokens to themselves or to a memory."""

    def __init__(self, hidden: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(hidden, hidden) for _ in range(4))

    def forward(self, states: Tensor, memory: Tensor, mask: BoolTensor) -> tuple[Tensor, Tensor]:
        """`(batch, queries, hidden)`, `(batch, keys, hidden)` -> what was read, and the weights it was read with.

        `mask`: `(batch, 1, queries, keys)`, True where a query may attend; weights: `(batch, heads, queries, keys)`.
        """
        query, key, value = (
            linear(read).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (batch, heads, length, hidden / heads)
            for linear, read in ((self.query, states), (self.key, memory), (self.value, memory))
        )
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
        return self.out((weights @ value).transpose(1, 2).flatten(2)), weights


class Block(nn.Module):
    """One layer: attention, perhaps attention to an encoder's states, and a feed-forward network, norms first."""

    def __init__(self, hidden: int, heads: int, dropout: float, reads_memory: bool = False):
        super().__init__()
        self.attention, self.attention_norm = Attention(hidden, heads), nn.LayerNorm(hidden)
        if reads_memory:
            self.cross_attention, self.cross_norm = Attention(hidden, heads), nn.LayerNorm(hidden)
        self.feed_forward_norm = nn.LayerNorm(hidden)
        self.feed_forward = nn.Sequential(
            nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden), nn.Dropout(dropout)
        )

    def forward(
        self, states: Tensor, mask: BoolTensor, memory: Tensor | None = None, memory_mask: BoolTensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """`(batch, length, hidden)` -> the same, and the weights of its self-attention."""
        normed = self.attention_norm(states)
        read, weights = self.attention(normed, normed, mask)
        states = states + read
        if memory is not None:
            states = states + self.cross_attention(self.cross_norm(states), memory, memory_mask)[0]
        return states + self.feed_forward(self.feed_forward_norm(states)), weights


class Embeddings(nn.Module):
    """What a token brings into the first layer: a vector for itself and one for its place."""

    def __init__(self, vocabulary: int, hidden: int, positions: int, dropout: float):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, hidden), nn.Embedding(positions, hidden)
        self.norm, self.dropout = nn.LayerNorm(hidden), nn.Dropout(dropout)

    def forward(self, input_ids: LongTensor) -> Tensor:
        """`(batch, length)` -> `(batch, length, hidden)`."""
        length, positions = input_ids.shape[1], self.positions.num_embeddings
        if length > positions:
            raise ValueError(f"a row of {length} tokens is longer than the model's {positions} positions; cut it")
        place = torch.arange(length, device=input_ids.device)
        return self.dropout(self.norm(self.tokens(input_ids) + self.positions(place)))


class PrefixLM(nn.Module):
    """The chapter's `TinyPrefixLM`: one stack of layers for prefix and target, told apart by the mask alone.

    Args:
        vocabulary: tokens; with 1,000 of them and the sizes below there are 670,184 parameters, as the chapter says.
        hidden, heads, layers, positions: `d_model`, `n_heads`, `n_layers`, `max_len`. Its training runs have 64 hidden.
        rule: span ids -> mask; `masks.printed_mask` for the chapter's.
    """

    def __init__(
        self,
        vocabulary: int,
        hidden: int = 128,
        heads: int = 4,
        layers: int = 2,
        positions: int = 128,
        dropout: float = 0.1,
        rule: Callable[[LongTensor], BoolTensor] = attention_mask,
    ):
        super().__init__()
        self.rule = rule
        self.embeddings = Embeddings(vocabulary, hidden, positions, dropout)
        self.blocks = nn.ModuleList(Block(hidden, heads, dropout) for _ in range(layers))
        self.output = nn.Linear(hidden, vocabulary)

    def forward(self, input_ids: LongTensor, span_ids: LongTensor) -> Tensor:
        """Scores of the next token, `(batch, length, vocabulary)`, of rows and span ids `(batch, length)` each."""
        return self.output(self.read(input_ids, span_ids)[0])

    def read(self, input_ids: LongTensor, span_ids: LongTensor) -> tuple[Tensor, list[Tensor]]:
        """The last states `(batch, length, hidden)` and each layer's weights `(batch, heads, query, key)`."""
        mask = self.rule(span_ids)
        states, weights = self.embeddings(input_ids), []
        for block in self.blocks:
            states, of_block = block(states, mask)
            weights.append(of_block)
        return states, weights


class EncoderDecoder(nn.Module):
    """The other way to build a prefix LM: an encoder reads the prefix, a decoder that attends to it writes the target.

    The decoder starts from the prefix's last token, as a decoder-only model does. It takes the same rows and span ids
    as `PrefixLM`; each half sees the other's tokens as padding. `layers` are those of each half.
    """

    def __init__(
        self,
        vocabulary: int,
        hidden: int = 128,
        heads: int = 4,
        layers: int = 2,
        positions: int = 128,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.embeddings = Embeddings(vocabulary, hidden, positions, dropout)
        self.encoder = nn.ModuleList(Block(hidden, heads, dropout) for _ in range(layers))
        self.decoder = nn.ModuleList(Block(hidden, heads, dropout, reads_memory=True) for _ in range(layers))
        self.output = nn.Linear(hidden, vocabulary)

    def forward(self, input_ids: LongTensor, span_ids: LongTensor) -> Tensor:
        """Scores of the next token, `(batch, length, vocabulary)`; of meaning from the prefix's last token on.

        Raises:
            ValueError: if a row has no prefix, so that there is nothing to encode.
        """
        in_prefix = span_ids == CONTEXT
        if not in_prefix.any(dim=1).all():
            raise ValueError("a row without a prefix leaves the encoder nothing to read; give it at least one token")
        memory = embedded = self.embeddings(input_ids)
        encoder_mask = attention_mask(torch.where(in_prefix, CONTEXT, PADDING))
        for block in self.encoder:
            memory, _ = block(memory, encoder_mask)
        followed = torch.cat([in_prefix[:, 1:], torch.zeros_like(in_prefix[:, :1])], dim=1)
        written = (span_ids > CONTEXT) | (in_prefix & ~followed)
        decoder_mask = attention_mask(torch.where(written, 1, PADDING))
        states = embedded
        for block in self.decoder:
            states, _ = block(states, decoder_mask, memory, in_prefix[:, None, None, :])
        return self.output(states)


def parameter_count(model: nn.Module) -> int:
    """How many numbers training may change."""
    return sum(parameter.numel() for parameter in model.parameters())
