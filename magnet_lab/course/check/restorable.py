"""The gating layer of restorable embeddings (Figure 2d, Equations 4 and 5): what is wanted now, after all before."""

import torch
from torch import Tensor

from magnet_lab.course.check.comparing import first_difference
from magnet_lab.course.check.examine import Mistake, compare, examine
from magnet_lab.course.check.verdict import Verdict
from magnet_lab.relatives.restorable.decoders import Gating
from magnet_lab.relatives.restorable.layers import Shape


def running_sum(function) -> Verdict:
    """The sum of what was said so far (Equation 4): `running_sum(queries)`.

    At position i, counted from 1: the sum of the queries 1 … i, divided by √i, so that its size does not grow.

    Args of your function:
        queries: `(batch, length, width)`.

    It returns `(batch, length, width)`.

        queries 1, 1, 4 (width 1)  ->  1, 2/√2 = 1.414, 6/√3 = 3.464
    """
    generator = torch.Generator().manual_seed(0)
    cases = [
        (torch.tensor([[[1.0], [1.0], [4.0]]]),),
        (torch.tensor([[[1.0, 2.0], [0.5, -1.0]]]),),
        (torch.randn(2, 4, 3, generator=generator).round(decimals=1),),
        (torch.randn(3, 7, 2, generator=generator).round(decimals=1),),
    ]

    def roots(queries):
        return torch.arange(1, queries.shape[1] + 1)[:, None].sqrt()

    judge = compare(
        cases,
        _so_far,
        mistakes=[
            Mistake(
                "divided by i, which makes it a mean (the document's text says so, its equation has the root): divide "
                "by √i",
                lambda q: q.cumsum(dim=1) / roots(q).square(),
            ),
            Mistake("the sum is not divided by √i: it would grow with the text", lambda q: q.cumsum(dim=1)),
            Mistake(
                "the sum runs over the whole text, the future too: position i must know only of 1 … i",
                lambda q: q.sum(dim=1, keepdim=True) / roots(q),
            ),
            Mistake(
                "the sum runs over the whole text, the future too: position i must know only of 1 … i",
                lambda q: (q.sum(dim=1, keepdim=True) / q.shape[1] ** 0.5).expand_as(q),
            ),
            Mistake(
                "divided by the root of the text's length: a position cannot know how long the text will be; divide by "
                "√i",
                lambda q: q.cumsum(dim=1) / q.shape[1] ** 0.5,
            ),
            Mistake(
                "the query at i itself is left out: the sum runs over j <= i",
                lambda q: (q.cumsum(dim=1) - q) / roots(q),
            ),
            Mistake(
                "positions are counted from 0 under the root: that divides the first by 0; count from 1",
                lambda q: q.cumsum(dim=1) / torch.arange(q.shape[1])[:, None].sqrt(),
            ),
            Mistake(
                "the sum runs over the texts of the batch (dim 0): it must run along the text, dim 1",
                lambda q: q.cumsum(dim=0) / roots(q),
            ),
            Mistake(
                "the sum runs over a vector's elements (dim 2): it must run along the text, dim 1",
                lambda q: q.cumsum(dim=2) / roots(q),
            ),
            Mistake(
                "the sum runs from the end to the beginning: that is the future; position i must know only of 1 … i",
                lambda q: q.flip(1).cumsum(dim=1).flip(1) / roots(q),
            ),
            Mistake("nothing is summed: this is only the query at i, divided by √i", lambda q: q / roots(q)),
            Mistake(
                "each query is divided by the root of its own position before the sum: the root of i is outside",
                lambda q: (q / roots(q)).cumsum(dim=1),
            ),
        ],
        explain=lambda arguments, expected, got: f"position {first_difference(expected, got)[1] + 1} comes out wrong",
    )
    praise = "Several lengths, widths and texts in a batch: causal, and of a size that does not grow."
    return examine(function, "running_sum(queries)", judge, praise)


def gating(function) -> Verdict:
    """The whole gating layer (Equations 4 and 5): `gating(queries, e_repr, w1, w2, w3)`.

        q̃ = W₁ q                                       at every position
        q̄_i = Σ_{j ≤ i} q̃_j / √i                       `running_sum`
        a, b = the two halves of W₂ [q̄_i; e_repr]
        out_i = W₃ (relu(a) ⊙ b ⊙ e_repr)

    Args of your function:
        queries: `(batch, length, d_model)`.
        e_repr: `(batch, d_repr)`, one vector a text.
        w1: `(d_repr, d_model)`; w2: `(2 · d_repr, 2 · d_repr)`; w3: `(d_model, d_repr)`: as in `nn.Linear`, x @ w.T.

    It returns `(batch, length, d_model)`.
    """
    generator = torch.Generator().manual_seed(0)

    def case(batch, length, d_model, d_repr):
        shapes = (
            (batch, length, d_model),
            (batch, d_repr),
            (d_repr, d_model),
            (2 * d_repr, 2 * d_repr),
            (d_model, d_repr),
        )
        return tuple(torch.randn(*shape, generator=generator).round(decimals=1) for shape in shapes)

    cases = [case(1, 1, 2, 2), case(1, 3, 2, 2), case(2, 4, 3, 2), case(3, 5, 4, 3)]

    def layer(
        so_far=lambda q: _so_far(q),
        joined=lambda q, e: torch.cat([q, e], dim=-1),
        act=lambda a, b: a.relu() * b,
        taken=lambda gate, e: gate * e,
        turned=lambda weight: weight.T,
    ):
        """The layer with one of its parts another."""

        def answer(queries, e_repr, w1, w2, w3):
            summed = so_far(queries @ turned(w1))
            e = e_repr[:, None].expand(-1, queries.shape[1], -1)
            return taken(act(*(joined(summed, e) @ turned(w2)).chunk(2, dim=-1)), e) @ turned(w3)

        return answer

    judge = compare(
        cases,
        _whole_layer,
        mistakes=[
            Mistake(
                "the two halves are swapped: relu belongs to the first, the second stays as it is",
                layer(act=lambda a, b: a * b.relu()),
            ),
            Mistake(
                "the gate is a sigmoid: here it is relu, which can shut altogether and open without a limit",
                layer(act=lambda a, b: a.sigmoid() * b),
            ),
            Mistake("the relu is missing: without it nothing is ever shut out", layer(act=lambda a, b: a * b)),
            Mistake(
                "relu is taken of both halves: the second says how much, with either sign",
                layer(act=lambda a, b: a.relu() * b.relu()),
            ),
            Mistake("relu is taken of the product: of the first half alone", layer(act=lambda a, b: (a * b).relu())),
            Mistake(
                "the vector itself is missing in the end: what the gate lets through is e_repr, so multiply by it",
                layer(taken=lambda gate, e: gate),
            ),
            Mistake(
                "e_repr is added and not multiplied: the gate chooses among its elements",
                layer(taken=lambda gate, e: gate + e),
            ),
            Mistake(
                "the two are joined in the other order: [q̄; e_repr], the query first",
                layer(joined=lambda q, e: torch.cat([e, q], dim=-1)),
            ),
            Mistake(
                "the matrices are not transposed: they are (out, in), as in nn.Linear, so x @ w.T",
                layer(turned=lambda weight: weight),
            ),
            Mistake(
                "only the current query is asked: q̄ is the running sum, so that the gate knows what was taken before",
                layer(so_far=lambda q: q),
            ),
            Mistake(
                "the running sum is divided by i and not by √i",
                layer(so_far=lambda q: q.cumsum(1) / torch.arange(1, q.shape[1] + 1)[:, None]),
            ),
            Mistake("the running sum is not divided by √i", layer(so_far=lambda q: q.cumsum(1))),
            Mistake(
                "the running sum knows the future: it must be causal, 1 … i",
                layer(so_far=lambda q: q.sum(1, keepdim=True) / torch.arange(1, q.shape[1] + 1)[:, None].sqrt()),
            ),
        ],
        explain=lambda arguments, expected, got: f"position {first_difference(expected, got)[1] + 1} comes out wrong",
    )
    praise = "Several lengths, widths and texts: the numbers of relatives/restorable."
    return examine(function, "gating(queries, e_repr, w1, w2, w3)", judge, praise)


@torch.no_grad()
def _so_far(queries: Tensor) -> Tensor:
    """The running sum as the project's own layer makes it, seen where it enters the second matrix."""
    width = queries.shape[-1]
    layer = Gating(Shape(d_model=width, d_repr=width))
    layer.w1.weight.copy_(torch.eye(width))
    seen: list[Tensor] = []
    layer.w2.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0][..., :width]))
    layer(queries, torch.zeros(len(queries), width))
    return seen[0]


@torch.no_grad()
def _whole_layer(queries: Tensor, e_repr: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    layer = Gating(Shape(d_model=queries.shape[-1], d_repr=e_repr.shape[-1]))
    for linear, weight in ((layer.w1, w1), (layer.w2, w2), (layer.w3, w3)):
        linear.weight.copy_(weight)
    return layer(queries, e_repr)
