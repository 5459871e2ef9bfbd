"""From one vector back to its text: the passage decoders (Sections 3.2 and 3.3, Figure 2).

All of them write a text from left to right. They differ in how they come to see the vector e_repr:

    input     it stands where the first token would, and is seen through self-attention          (Figure 2a)
    cross     every layer attends to it: its cross attention has this one vector as its memory   (Figure 2b)
    product   the same, with Equation 3 as it is printed
    gating    every layer takes from it what the text so far asks for, element by element        (Figure 2c)

Two decoders bear the name "cross" because the document describes two. A softmax over a single key gives it the weight
1, whatever the query: ordinary cross attention, that of T5 too, adds the *same* vector at every position, and only
later parts of the layer can sort out what is wanted of it. Equation 3 instead lets the query choose a factor
c = q · e_repr, which is attention without the softmax. Either way the query has no say in *which* elements come; the
gating layer gives it that.
"""

import torch
from torch import BoolTensor, LongTensor, Tensor, nn
from torch.nn.functional import pad

from magnet_lab.attention import attention_mask, causal
from magnet_lab.relatives.pseudo_masked.vocabulary import SOS
from magnet_lab.relatives.restorable.layers import EPSILON, Attention, Layer, Shape, Words, linear
from magnet_lab.views import NO_LABEL


class CrossAttention(Attention):
    """Attention to one vector; as its softmax has nothing to choose from, the queries change nothing."""

    def forward(self, queries: Tensor, e_repr: Tensor) -> Tensor:
        """`(batch, length, d_model)` and `(batch, d_repr)` -> `(batch, length, d_model)`."""
        return super().forward(queries, e_repr[:, None])


class ProductAttention(Attention):
    """Equation 3: c · e_repr with c = q · e_repr, in each head and between the projections of attention."""

    def forward(self, queries: Tensor, e_repr: Tensor) -> Tensor:
        """`(batch, length, d_model)` and `(batch, d_repr)` -> `(batch, length, d_model)`."""
        query = self.by_head(self.query(queries))
        key, value = self.by_head(self.key(e_repr[:, None])), self.by_head(self.value(e_repr[:, None]))
        factor = (query * key).sum(dim=-1, keepdim=True) / key.shape[-1] ** 0.5  # (batch, heads, length, 1)
        return self.out((factor * value).transpose(1, 2).flatten(2))


class Gating(nn.Module):
    """The gating layer (Figure 2d, Equations 4 and 5): what of e_repr is wanted now, after all that was taken before.

        q̃_i = q_i W_1
        q̄_i = Σ_{j ≤ i} q̃_j / √i
        q̌_i = (Act([q̄_i; e_repr] W_2) ⊙ e_repr) W_3

    Act is the gated ReLU, relu(a) ⊙ b with a and b the two halves of its input. So W_2 is 2 d_repr × 2 d_repr here;
    the document prints 2 d_repr × d_repr, which leaves no second half. Its text divides by i, its equation by √i,
    which is followed.
    """

    def __init__(self, shape: Shape):
        super().__init__()
        self.w1 = linear(shape.d_model, shape.d_repr)
        self.w2 = linear(2 * shape.d_repr, 2 * shape.d_repr)
        self.w3 = linear(shape.d_repr, shape.d_model)

    def forward(self, queries: Tensor, e_repr: Tensor) -> Tensor:
        """`(batch, length, d_model)` and `(batch, d_repr)` -> `(batch, length, d_model)`."""
        count = torch.arange(1, queries.shape[1] + 1, device=queries.device)[:, None]
        so_far = self.w1(queries).cumsum(dim=1) / count.sqrt()
        vector = e_repr[:, None].expand_as(so_far)
        gate, amount = self.w2(torch.cat([so_far, vector], dim=2)).chunk(2, dim=2)
        return self.w3(gate.relu() * amount * vector)


READERS = {
    "input": lambda shape: None,
    "cross": lambda shape: CrossAttention(shape),
    "product": lambda shape: ProductAttention(shape),
    "gating": lambda shape: Gating(shape),
}


class Decoder(nn.Module):
    """Vector to text.

    Args:
        kind: "input", "cross", "product" or "gating".
        shape: sizes; only the gating decoder takes a d_repr other than d_model.
        words: the tokens' vectors, shared with the encoder where there is one.
        begin_id: the id before a text, [BOS]. The input decoder has e_repr in its place.

    Raises:
        ValueError: for an unknown kind, or widths that do not fit it.
    """

    def __init__(self, kind: str, shape: Shape, words: Words, *, begin_id: int = SOS):
        super().__init__()
        if kind not in READERS:
            raise ValueError(f"decoder {kind!r} is not known; choose one of {', '.join(READERS)}")
        if kind != "gating" and shape.d_repr != shape.d_model:
            raise ValueError(
                f"the {kind} decoder needs d_repr = d_model, not {shape.d_repr} and {shape.d_model}; the gating "
                "decoder takes any two"
            )
        self.kind, self.begin_id = kind, begin_id
        self.words = words
        self.layers = nn.ModuleList(Layer(shape, READERS[kind](shape)) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.d_model, eps=EPSILON)

    def forward(self, e_repr: Tensor, input_ids: LongTensor, tokens: BoolTensor) -> Tensor:
        """Next-token scores `(batch, length + 1, vocabulary)` for texts `(batch, length)` padded on the right.

        The scores at 0 speak of the first token; those after a text's last token speak of its end.
        """
        states = self.words(pad(input_ids, (1, 0), value=self.begin_id))
        if self.kind == "input":
            states = torch.cat([e_repr[:, None], states[:, 1:]], dim=1)
        mask = attention_mask(causal(pad(tokens, (1, 0), value=True)))
        for layer in self.layers:
            states = layer(states, mask, e_repr)
        return self.words.scores(self.norm(states))


def labels(input_ids: LongTensor, tokens: BoolTensor, end_id: int) -> LongTensor:
    """What `Decoder` is scored against (Equation 6): `(batch, length + 1)`, each text's ids, its end, then -100."""
    labels = pad(input_ids.masked_fill(~tokens, NO_LABEL), (0, 1), value=NO_LABEL)
    return labels.scatter(1, tokens.sum(dim=1, keepdim=True), end_id)
