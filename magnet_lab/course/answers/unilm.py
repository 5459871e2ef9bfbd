"""Answers to the checks of UniLMv2."""

import torch

from magnet_lab.course.answers import right, wrong

# pseudo_mask(steps, pseudo)


def _both_sides(steps, pseudo):
    return steps[:, :, None], steps[:, None, :], pseudo[:, :, None], pseudo[:, None, :]


@right("pseudo_mask")
def pseudo_by_loops(steps, pseudo):
    batch, width = steps.shape
    allowed = torch.zeros(batch, width, width, dtype=torch.bool)
    for b in range(batch):
        for q in range(width):
            for k in range(width):
                given = steps[b, k] == 0
                told_before = 0 < steps[b, k] < steps[b, q] and not pseudo[b, k]
                together = steps[b, k] == steps[b, q] and pseudo[b, k] == pseudo[b, q]
                allowed[b, q, k] = bool(given) or bool(told_before) or bool(together)
    return allowed


@right("pseudo_mask")
def pseudo_by_comparison(steps, pseudo):
    query, key, query_pseudo, key_pseudo = _both_sides(steps, pseudo)
    allowed = (key == 0) | ((key < query) & ~key_pseudo) | ((key == query) & (key_pseudo == query_pseudo))
    allowed &= key >= 0
    return (allowed | torch.eye(steps.shape[1]).bool())[:, None]


@wrong("pseudo_mask", "explicit leakage")
def pseudo_sees_its_true_token(steps, pseudo):
    query, key, query_pseudo, key_pseudo = _both_sides(steps, pseudo)
    allowed = (key == 0) | ((key <= query) & ~key_pseudo) | ((key == query) & (key_pseudo == query_pseudo))
    return (allowed & (key >= 0)) | torch.eye(steps.shape[1]).bool()


@wrong("pseudo_mask", "explicit leakage")
def pseudo_without_kinds(steps, pseudo):
    query, key, _, key_pseudo = _both_sides(steps, pseudo)
    allowed = (key == 0) | ((key < query) & ~key_pseudo) | (key == query)
    return (allowed & (key >= 0)) | torch.eye(steps.shape[1]).bool()


@wrong("pseudo_mask", "serves its own step alone")
def pseudo_of_earlier_steps(steps, pseudo):
    query, key, query_pseudo, key_pseudo = _both_sides(steps, pseudo)
    allowed = (key < query) | ((key == query) & (key_pseudo == query_pseudo))
    return (allowed & (key >= 0)) | torch.eye(steps.shape[1]).bool()


@wrong("pseudo_mask", "implicit leakage")
def pseudo_given_sees_all_true_tokens(steps, pseudo):
    query, key, query_pseudo, key_pseudo = _both_sides(steps, pseudo)
    allowed = (key == 0) | ((key < query) & ~key_pseudo) | ((key == query) & (key_pseudo == query_pseudo))
    allowed |= (query == 0) & ~key_pseudo
    return (allowed & (key >= 0)) | torch.eye(steps.shape[1]).bool()


@wrong("pseudo_mask", "a block is told at once")
def pseudo_causal_within_a_step(steps, pseudo):
    past = torch.ones(steps.shape[1], steps.shape[1]).tril().bool()
    query, key, query_pseudo, key_pseudo = _both_sides(steps, pseudo)
    allowed = (key == 0) | ((key < query) & ~key_pseudo) | ((key == query) & (key_pseudo == query_pseudo) & past)
    return (allowed & (key >= 0)) | torch.eye(steps.shape[1]).bool()


@wrong("pseudo_mask", "nobody may look at padding")
def pseudo_sees_padding(steps, pseudo):
    query, key, query_pseudo, key_pseudo = _both_sides(steps, pseudo)
    return (key == 0) | ((key < query) & ~key_pseudo) | ((key == query) & (key_pseudo == query_pseudo))


@wrong("pseudo_mask", "swapped")
def pseudo_transposed(steps, pseudo):
    return pseudo_by_comparison(steps, pseudo).transpose(2, 3)


@wrong("pseudo_mask", "told before: that is what autoregressive means")
def pseudo_of_its_own_step_only(steps, pseudo):
    query, key, query_pseudo, key_pseudo = _both_sides(steps, pseudo)
    allowed = (key == 0) | ((key == query) & (key_pseudo == query_pseudo))
    return (allowed & (key >= 0)) | torch.eye(steps.shape[1]).bool()


@wrong("pseudo_mask", "is NaN")
def pseudo_with_empty_rows(steps, pseudo):
    query, key, query_pseudo, key_pseudo = _both_sides(steps, pseudo)
    allowed = (key == 0) | ((key < query) & ~key_pseudo) | ((key == query) & (key_pseudo == query_pseudo))
    return allowed & (key >= 0) & (query >= 0)


# factorization_order(maskable, generator)


def _integer(low, high, generator):
    return int(torch.randint(low, high + 1, (1,), generator=generator))


def _order(maskable, generator, chance=0.4, longest=6, share=0.15):
    free, steps, wanted = list(maskable), [], share * sum(maskable)
    while sum(len(step) for step in steps) < wanted:
        size = _integer(2, longest, generator) if torch.rand(1, generator=generator) < chance else 1
        start = _integer(0, len(free) - size, generator)
        if all(free[start : start + size]):
            steps.append(list(range(start, start + size)))
            for place in steps[-1]:
                free[place] = False
    return steps


@right("factorization_order")
def order_by_drawing(maskable, generator):
    return _order(maskable, generator)


@right("factorization_order")
def order_of_free_starts(maskable, generator):
    hidden, order = set(), []
    while len(hidden) < 0.15 * sum(maskable):
        is_block = torch.rand(1, generator=generator).item() < 0.4
        size = _integer(2, 6, generator) if is_block else 1
        blocks = [range(s, s + size) for s in range(len(maskable) - size + 1)]
        blocks = [block for block in blocks if all(maskable[p] and p not in hidden for p in block)]
        if blocks:
            block = blocks[_integer(0, len(blocks) - 1, generator)]
            order.append(list(block))
            hidden.update(block)
    return order


@wrong("factorization_order", "sorted from left to right")
def order_sorted(maskable, generator):
    return sorted(_order(maskable, generator))


@wrong("factorization_order", "every step is a single token")
def order_of_single_tokens(maskable, generator):
    return _order(maskable, generator, chance=0.0)


@wrong("factorization_order", "every step is a block")
def order_of_blocks(maskable, generator):
    return _order(maskable, generator, chance=1.1)


@wrong("factorization_order", "40 and 60 are swapped")
def order_swapped(maskable, generator):
    return _order(maskable, generator, chance=0.62)


@wrong("factorization_order", "never a block of 6 tokens")
def order_without_the_longest(maskable, generator):
    return _order(maskable, generator, longest=5)


@wrong("factorization_order", "special tokens are never hidden")
def order_of_special_tokens(maskable, generator):
    return _order([True] * len(maskable), generator)


@wrong("factorization_order", "is told twice")
def order_that_overlaps(maskable, generator):
    steps, wanted = [], 0.15 * sum(maskable)
    while sum(map(len, steps)) < wanted:
        size = _integer(2, 6, generator) if torch.rand(1, generator=generator) < 0.4 else 1
        start = _integer(0, len(maskable) - size, generator)
        if all(maskable[start : start + size]):
            steps.append(list(range(start, start + size)))
    return steps


@wrong("factorization_order", "runs past the end")
def order_past_the_end(maskable, generator):
    free, steps = [*maskable, *[True] * 6], []
    while sum(map(len, steps)) < 0.15 * sum(maskable):
        start = _integer(0, len(maskable) - 1, generator)
        size = _integer(2, 6, generator) if torch.rand(1, generator=generator) < 0.4 else 1
        if all(free[start : start + size]):
            steps.append(list(range(start, start + size)))
            free[start : start + size] = [False] * size
    return steps


@wrong("factorization_order", "fewer than 15 %")
def order_too_few(maskable, generator):
    return _order(maskable, generator)[:-1] or [[1]]


@wrong("factorization_order", "also a single token is a step, [7]")
def order_of_numbers(maskable, generator):
    return [place for step in _order(maskable, generator) for place in step]
