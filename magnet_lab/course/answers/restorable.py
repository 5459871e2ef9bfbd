"""Answers to the checks of the gating layer."""

import torch

from magnet_lab.course.answers import right, wrong

# running_sum(queries)


@right("running_sum")
def running_by_loops(queries):
    total, out = torch.zeros_like(queries[:, 0]), []
    for i in range(queries.shape[1]):
        total = total + queries[:, i]
        out.append(total / (i + 1) ** 0.5)
    return torch.stack(out, dim=1)


@right("running_sum")
def running_by_a_matrix(queries):
    length = queries.shape[1]
    weights = torch.ones(length, length).tril() / torch.arange(1, length + 1).sqrt()[:, None]
    return weights @ queries


@wrong("running_sum", "divided by i")
def running_mean(queries):
    return queries.cumsum(dim=1) / torch.arange(1, queries.shape[1] + 1).view(-1, 1)


@wrong("running_sum", "not divided by √i")
def running_undivided(queries):
    return torch.cumsum(queries, dim=1)


@wrong("running_sum", "the future too")
def running_total(queries):
    roots = torch.arange(1, queries.shape[1] + 1).view(-1, 1) ** 0.5
    return queries.sum(dim=1, keepdim=True) / roots


@wrong("running_sum", "the root of the text's length")
def running_by_length(queries):
    return queries.cumsum(dim=1) / queries.shape[1] ** 0.5


@wrong("running_sum", "the query at i itself is left out")
def running_strict(queries):
    before = torch.cat([torch.zeros_like(queries[:, :1]), queries.cumsum(dim=1)[:, :-1]], dim=1)
    return before / torch.arange(1, queries.shape[1] + 1).view(-1, 1).sqrt()


@wrong("running_sum", "positions are counted from 0")
def running_from_zero(queries):
    return queries.cumsum(dim=1) / torch.arange(queries.shape[1]).view(-1, 1).sqrt()


@wrong("running_sum", "the texts of the batch")
def running_over_the_batch(queries):
    return queries.cumsum(dim=0) / torch.arange(1, queries.shape[1] + 1).view(-1, 1).sqrt()


# gating(queries, e_repr, w1, w2, w3)


def _joined(queries, e_repr, w1, w2):
    so_far = running_by_loops(queries @ w1.T)
    e = e_repr[:, None].expand(-1, queries.shape[1], -1)
    return (torch.cat([so_far, e], dim=2) @ w2.T).chunk(2, dim=2), e


@right("gating")
def gating_by_tensors(queries, e_repr, w1, w2, w3):
    (a, b), e = _joined(queries, e_repr, w1, w2)
    return (torch.relu(a) * b * e) @ w3.T


@right("gating")
def gating_by_loops(queries, e_repr, w1, w2, w3):
    out = torch.zeros_like(queries)
    for text in range(len(queries)):
        total = torch.zeros(len(w1))
        for i, query in enumerate(queries[text]):
            total = total + w1 @ query
            both = w2 @ torch.cat([total / (i + 1) ** 0.5, e_repr[text]])
            a, b = both[: len(w1)], both[len(w1) :]
            out[text, i] = w3 @ (a.clamp(min=0) * b * e_repr[text])
    return out


@wrong("gating", "the two halves are swapped")
def gating_swapped(queries, e_repr, w1, w2, w3):
    (a, b), e = _joined(queries, e_repr, w1, w2)
    return (a * torch.relu(b) * e) @ w3.T


@wrong("gating", "the gate is a sigmoid")
def gating_sigmoid(queries, e_repr, w1, w2, w3):
    (a, b), e = _joined(queries, e_repr, w1, w2)
    return (torch.sigmoid(a) * b * e) @ w3.T


@wrong("gating", "the relu is missing")
def gating_linear(queries, e_repr, w1, w2, w3):
    (a, b), e = _joined(queries, e_repr, w1, w2)
    return (a * b * e) @ w3.T


@wrong("gating", "the vector itself is missing")
def gating_without_the_vector(queries, e_repr, w1, w2, w3):
    (a, b), _ = _joined(queries, e_repr, w1, w2)
    return (torch.relu(a) * b) @ w3.T


@wrong("gating", "joined in the other order")
def gating_other_order(queries, e_repr, w1, w2, w3):
    so_far = running_by_loops(queries @ w1.T)
    e = e_repr.unsqueeze(1).repeat(1, queries.shape[1], 1)
    a, b = (torch.cat([e, so_far], dim=-1) @ w2.T).chunk(2, dim=-1)
    return (a.relu() * b * e) @ w3.T


@wrong("gating", "only the current query is asked")
def gating_without_memory(queries, e_repr, w1, w2, w3):
    e = e_repr.unsqueeze(1).repeat(1, queries.shape[1], 1)
    a, b = (torch.cat([queries @ w1.T, e], dim=-1) @ w2.T).chunk(2, dim=-1)
    return (a.relu() * b * e) @ w3.T


@wrong("gating", "divided by i and not by √i")
def gating_mean(queries, e_repr, w1, w2, w3):
    e = e_repr.unsqueeze(1).repeat(1, queries.shape[1], 1)
    mean = (queries @ w1.T).cumsum(dim=1) / torch.arange(1, queries.shape[1] + 1)[:, None]
    a, b = (torch.cat([mean, e], dim=-1) @ w2.T).chunk(2, dim=-1)
    return (a.relu() * b * e) @ w3.T


@wrong("gating", "the matrices are not transposed")
def gating_not_transposed(queries, e_repr, w1, w2, w3):
    so_far = running_by_loops(queries @ w1)
    e = e_repr[:, None].expand_as(so_far)
    a, b = (torch.cat([so_far, e], dim=2) @ w2).chunk(2, dim=2)
    return (a.relu() * b * e) @ w3
