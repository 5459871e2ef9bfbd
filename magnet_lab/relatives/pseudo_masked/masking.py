"""Which tokens of a text are hidden, and in which order they are told: Algorithm 1 and the factorizations of Table 1.

A factorization order is a list of steps, each a list of positions. For the hidden tokens 2, 4 and 5:

    [[4, 5], [2]]      partially autoregressive: 4 and 5 at once, then 2, which may use them
    [[5], [2], [4]]    autoregressive: one token a step, in any order

Autoencoding knows the hidden positions only; which step they belong to makes no difference to it.
"""

from collections.abc import Callable, Sequence

import torch

from magnet_lab.relatives.pseudo_masked.vocabulary import MASK, SPECIAL

Order = list[list[int]]


def blockwise_masking(
    maskable: Sequence[bool],
    generator: torch.Generator,
    *,
    share: float = 0.15,
    block_share: float = 0.4,
    longest: int = 6,
) -> Order:
    """Draw the hidden tokens of a text and their order (Algorithm 1).

    Where the algorithm is silent: |x| counts the tokens that may be hidden, and a block that runs past the end of the
    text or over a token that may not be hidden is drawn anew, like one that meets a hidden token. As printed, the last
    block may take the share beyond 15 %.

    Args:
        maskable: for every token whether it may be hidden; special tokens may not.
        share: at least this share of the maskable tokens is hidden.
        block_share: how often a block of 2 to `longest` tokens is drawn, and not one token. This is a share of draws:
            by tokens, nearly three quarters of what is hidden lies in blocks.

    Returns:
        The steps in the order in which they were drawn; positions count from 0.

    Raises:
        ValueError: if no token may be hidden.
    """
    wanted = share * sum(maskable)
    if wanted <= 0:
        raise ValueError("none of the text's tokens may be hidden; give a text with words, and a share above 0")
    free, order = list(maskable), []
    while sum(map(len, order)) < wanted:
        start = _integer(0, len(free) - 1, generator)
        is_block = float(torch.rand((), generator=generator)) < block_share
        stop = start + (_integer(2, longest, generator) if is_block else 1)
        if stop <= len(free) and all(free[start:stop]):
            order.append(list(range(start, stop)))
            free[start:stop] = [False] * (stop - start)
    return order


def one_by_one(order: Order, generator: torch.Generator) -> Order:
    """The same hidden tokens one a step, in an order drawn anew: autoregressive, Table 6's "– blockwise
    factorization"."""
    positions = [position for step in order for position in step]
    return [[positions[place]] for place in torch.randperm(len(positions), generator=generator).tolist()]


def left_to_right(positions: range) -> Order:
    """One position a step, in the order in which text is written (Section 3.4)."""
    return [[position] for position in positions]


def eighty_ten_ten(vocabulary: int, generator: torch.Generator) -> Callable[[int], int]:
    """What a conventional mask shows by Section 4.1: 80 % of the time [M], 10 % a random token, 10 % the token itself.

    A token that is left standing stands in plain view of the pseudo mask that is to predict it: with this rule PAR
    leaks (`proof.leaks`). By default, therefore, a conventional mask here always shows [M].

    Args:
        vocabulary: its size; a random token is any but a special one.

    Returns:
        A function from the hidden token to the token shown: `layout.one_pass(shown=...)`.
    """

    def shown(token: int) -> int:
        fate = float(torch.rand((), generator=generator))
        if fate < 0.8:
            return MASK
        return _integer(len(SPECIAL), vocabulary - 1, generator) if fate < 0.9 else token

    return shown


def _integer(low: int, high: int, generator: torch.Generator) -> int:
    return int(torch.randint(low, high + 1, (), generator=generator))
