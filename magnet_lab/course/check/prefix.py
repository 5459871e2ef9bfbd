"""Who may look at whom in a prefix LM."""

import torch
from torch import BoolTensor

from magnet_lab import attention
from magnet_lab.course.check import pictures
from magnet_lab.course.check.comparing import first_difference
from magnet_lab.course.check.examine import Mistake, compare, examine
from magnet_lab.course.check.masks import LEAK, NUMBERS
from magnet_lab.course.check.verdict import Verdict
from magnet_lab.relatives.prefix_lm.masks import printed_mask


def prefix_mask(function) -> Verdict:
    """The mask of a prefix LM: `prefix_mask(length, prefix_length)`.

    The prefix is read in both directions; a target token sees the whole prefix and what is not after itself.

    Args of your function:
        length: tokens in all.
        prefix_length: how many of them, from the left, are the prefix; 0 is causal, `length` bidirectional.

    It returns `(length, length)` booleans, True where the query (row) may attend to the key (column).

        prefix_mask(4, 2) ->  ■ ■ · ·
                              ■ ■ · ·
                              ■ ■ ■ ·
                              ■ ■ ■ ■
    """
    cases = [(3, 1), (4, 2), (6, 3), (5, 0), (5, 5), (9, 4)]

    def of(maker):
        def answer(length, prefix_length):
            return maker(attention.prefix(torch.ones(1, length), prefix_length))[0, 0]

        return answer

    right = of(attention.attention_mask)

    def corner(length, prefix_length):
        seen = torch.zeros(length, length, dtype=torch.bool)
        seen[:prefix_length, :prefix_length] = True
        return seen

    def causal(length, prefix_length):
        return torch.ones(length, length).tril().bool()

    judge = compare(
        cases,
        right,
        mistakes=[
            Mistake(
                "the prefix sees the target: its rows must end at the prefix. With two layers a target token reads "
                "from the prefix what the prefix has read of the tokens to come, so the answer leaks",
                of(printed_mask),
            ),
            Mistake(
                "this is the causal mask: within the prefix everybody sees everybody, also to the right",
                causal,
            ),
            Mistake(
                "everybody sees everybody: a target token must not see the targets after it",
                lambda length, prefix_length: torch.ones(length, length, dtype=torch.bool),
            ),
            Mistake(
                "queries and keys are swapped: rows are queries (who looks), columns are keys (what is seen)",
                lambda length, prefix_length: right(length, prefix_length).T,
            ),
            Mistake(
                "the mask is upside down: True must mean may attend, here it means blocked",
                lambda length, prefix_length: ~right(length, prefix_length),
            ),
            Mistake(
                "the prefix is one token too long: it is the tokens 0 … prefix_length - 1, so compare with <",
                lambda length, prefix_length: right(length, min(length, prefix_length + 1)),
            ),
            Mistake(
                "the prefix is one token too short: its last token, prefix_length - 1, belongs to it",
                lambda length, prefix_length: right(length, max(0, prefix_length - 1)),
            ),
            Mistake(
                "a target token does not see the targets before it: it sees the prefix and its own past",
                lambda length, prefix_length: (
                    (torch.arange(length) < prefix_length)[None].expand(length, length) | torch.eye(length).bool()
                ),
            ),
            Mistake(
                "a target token does not see itself: what is not after it may be seen, so compare with <=",
                lambda length, prefix_length: (
                    corner(length, prefix_length) | torch.ones(length, length).tril(-1).bool()
                ),
            ),
            Mistake(
                NUMBERS,
                lambda length, prefix_length: right(length, prefix_length).long(),
            ),
            Mistake(
                NUMBERS,
                lambda length, prefix_length: right(length, prefix_length).float(),
            ),
        ],
        explain=lambda arguments, expected, got: _why_prefix(arguments[1], expected, got),
        details=lambda arguments, expected, got: pictures.masks_text(expected, got, _prefix_names(*arguments)),
        draw=lambda arguments, expected, got: pictures.masks_figure(expected, got, _prefix_names(*arguments)),
    )
    praise = "Prefixes of every length, none and all included: 0 is causal, all is bidirectional."
    return examine(function, "prefix_mask(length, prefix_length)", judge, praise)


def _prefix_names(length: int, prefix_length: int) -> list[str]:
    return [f"{place} {'prefix' if place < prefix_length else 'target'}" for place in range(length)]


def _why_prefix(prefix_length: int, expected: BoolTensor, got: BoolTensor) -> str:
    query, key = first_difference(expected, got)
    who, what = ("prefix" if place < prefix_length else "target" for place in (query, key))
    if not got[query, key]:
        return f"row {query}: a {who} token does not see {what} token {key}, which it may"
    if who == "prefix":
        return f"row {query}: a prefix token sees target token {key}: {LEAK}"
    return f"row {query}: a target token sees target token {key}, which comes after it"
