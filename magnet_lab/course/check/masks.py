"""Who may look at whom: the one rule, span ids, reach over layers."""

import torch
from torch import BoolTensor, Tensor

from magnet_lab import attention
from magnet_lab.attention import CONTEXT, PADDING
from magnet_lab.course.check import pictures
from magnet_lab.course.check.comparing import first_difference, same
from magnet_lab.course.check.examine import Mistake, compare, examine
from magnet_lab.course.check.verdict import Verdict
from magnet_lab.relatives.prefix_lm.masks import printed_mask

WORDS = ("John", "was", "lifting", "there", "at", "the", "gym", "with", "his", "friend", "Tom", ".")

NUMBERS = "numbers in place of booleans: the rule is right, but True and False are wanted; end with .bool()"
LEAK = "the answer leaks into the context, from there into every prediction"


def mask(function) -> Verdict:
    """The one rule (Section 3.1): `mask(span_ids)`.

    Query q may attend to key k when k is a context token, or q and k are in the same span and k is not after q.

    Args of your function:
        span_ids: `(batch, length)` integers; 0 context, k >= 1 the k-th span, -1 padding.

    It returns `(batch, 1, length, length)` booleans, indexed `[batch, head, query, key]`, True where the query may
    attend to the key; `(batch, length, length)` will do. What padding sees is open, but it must see something.

        mask(torch.tensor([[0, 1, 1, 0]])) ->  ■ · · ■
                                               ■ ■ · ■
                                               ■ ■ ■ ■
                                               ■ · · ■
    """
    cases = [
        ([[0, 0, 0]],),
        ([[1, 1, 1, 1]],),
        ([[0, 1, 1, 0, 0]],),
        ([[0, 0, 0, 1, 1]],),
        ([[0, 1, 1, 0, 2, 2, 0]],),
        ([[1, 1, 1, -1]],),
        ([[0, 1, 1, 0, 0], [0, 0, 0, 1, 0]],),
        ([[-1, -1, 0, 0, 0, 1, 1, 1, 1, 0, 0]],),
        ([[0, 2, 2, 2, 0, 0, 1, 1, 0, -1, -1], [0, 0, 0, 1, 1, 1, 1, 0, 0, -1, -1]],),
    ]
    right = attention.attention_mask
    judge = compare(
        [(torch.tensor(ids),) for (ids,) in cases],
        right,
        mistakes=[
            Mistake(
                "everybody sees everybody: the answer does not look at span_ids at all, so no span is hidden", _all
            ),
            Mistake(
                "this is the plain causal mask: the context must see to its right as well, and a span all of the "
                "context; what is causal is only a span within itself",
                lambda ids: _all(ids).tril(),
            ),
            Mistake(
                "the mask is upside down: True must mean may attend (PyTorch's SDPA), here it means blocked",
                lambda ids: ~right(ids),
            ),
            Mistake(
                "queries and keys are swapped: rows are queries (who looks), columns are keys (what is seen); "
                "transpose the last two dimensions",
                lambda ids: right(ids).transpose(2, 3),
            ),
            Mistake(
                NUMBERS,
                lambda ids: right(ids).long(),
            ),
            Mistake(
                NUMBERS,
                lambda ids: right(ids).float(),
            ),
            Mistake(
                "this is the additive mask, 0 and minus infinity, that eager attention adds to its scores; booleans "
                "are wanted here, True = may attend",
                lambda ids: torch.zeros(right(ids).shape).masked_fill(~right(ids), -torch.inf),
            ),
            Mistake(
                "this is the additive mask, 0 and the lowest number, that eager attention adds to its scores; booleans "
                "are wanted here, True = may attend",
                lambda ids: attention.for_backend(right(ids), "eager", torch.float32),
            ),
            Mistake(
                "every row of the batch gets the first row's mask: each text has spans of its own",
                lambda ids: right(ids[:1]).expand(len(ids), -1, -1, -1),
            ),
            Mistake(
                "only the first text of the batch gets a mask: the answer needs one for each row of span_ids",
                lambda ids: right(ids[:1]),
            ),
        ],
        explain=_why_mask,
        details=_both_masks,
        draw=_draw_masks,
        alike=_alike_but_for_padding,
        tidy=_with_heads,
    )
    praise = "Causal, bidirectional, prefix, one span and two, batches, and padding on either side: one rule for all."
    return examine(function, "mask(span_ids)", judge, praise)


def span_ids(function) -> Verdict:
    """Two modes as span ids: `span_ids(tokens, mode)`.

    Args of your function:
        tokens: `(batch, length)` booleans, True at a token, False at padding.
        mode: "causal" (generation) or "bidirectional" (encoding).

    It returns `(batch, length)` integers: 0 context, k >= 1 the k-th span, -1 padding, so that the one rule makes that
    mask of them. No span at all is bidirectional; everything one span is causal.

        span_ids(torch.tensor([[True, True, False]]), "causal") -> tensor([[1, 1, -1]])
    """
    batches = [[[1, 1, 1]], [[1, 1, 1, 0, 0]], [[1, 1, 0, 0], [0, 1, 1, 1]]]
    cases = [
        (torch.tensor(tokens).bool(), mode) for tokens in batches for mode in ("bidirectional", "causal")
    ]  # the smallest first

    def right(tokens, mode):
        return attention.causal(tokens) if mode == "causal" else attention.bidirectional(tokens)

    def other(mode):
        return "bidirectional" if mode == "causal" else "causal"

    def flat(value, padding=PADDING):
        return lambda tokens, mode: torch.where(tokens, torch.tensor(value(mode)), torch.tensor(padding))

    def numbered(tokens, mode):
        return torch.where(tokens, tokens.long().cumsum(1) if mode == "causal" else CONTEXT, PADDING)

    judge = compare(
        cases,
        right,
        mistakes=[
            Mistake(
                "the two modes are swapped: context (0) is what everybody sees, so all 0 is bidirectional; within a "
                "span nobody looks ahead, so all 1 is causal",
                lambda tokens, mode: right(tokens, other(mode)),
            ),
            Mistake(
                "every token got a span of its own: spans do not see each other, so nobody would see their past; "
                "causal is one span for all",
                numbered,
            ),
            Mistake(
                "padding counts as context (0): every token would look at it; its number is -1",
                flat(lambda mode: int(mode == "causal"), padding=CONTEXT),
            ),
            Mistake(
                "padding is not marked: `tokens` says where there is none, and its number is -1",
                lambda tokens, mode: torch.full(tokens.shape, int(mode == "causal")),
            ),
            Mistake("the mode is not used: both modes get context alone, which is bidirectional", flat(lambda mode: 0)),
            Mistake("the mode is not used: both modes get one span, which is causal", flat(lambda mode: 1)),
            Mistake(
                "this is a mask of tokens (1 and 0) and not span ids: 0 is context and padding is -1",
                lambda tokens, mode: tokens.long(),
            ),
        ],
    )
    praise = "Both modes are two fillings of one tensor, with padding on either side."
    return examine(function, "span_ids(tokens, mode)", judge, praise)


def reach(function) -> Verdict:
    """What reaches a token after some layers: `reach(mask, layers)`.

    One layer lets a query read its keys; the next lets it read what those keys have read.

    Args of your function:
        mask: `(length, length)` booleans, True where the query (row) may attend to the key (column).
        layers: how many layers of attention, >= 1.

    It returns `(length, length)` booleans, True where the input at the key can change the output at the query.

        mask  ■ · ·    reach(mask, 2)  ■ · ·
              ■ ■ ·                    ■ ■ ·
              · ■ ■                    ■ ■ ■     2 hears of 0 through 1
    """
    window = torch.ones(6, 6).tril().triu(-1).bool()
    span = torch.tensor([[0, 0, 1, 1, 0, 0]])
    hybrid, printed = attention.attention_mask(span)[0, 0], printed_mask(torch.tensor([[0, 0, 0, 1, 1, 1]]))[0, 0]
    chain = torch.eye(7, dtype=torch.bool) | torch.eye(7, dtype=torch.bool).roll(2, 0)
    cases = [
        *((window[:3, :3], layers) for layers in (1, 2)),
        *((window, layers) for layers in (1, 2, 3)),
        *((hybrid, layers) for layers in (1, 3)),
        *((printed, layers) for layers in (1, 2)),
        *((chain, layers) for layers in (2, 4)),
    ]

    def power(mask, exponent):
        return torch.linalg.matrix_power(mask.float(), exponent)

    right = attention.receptive_field
    judge = compare(
        cases,
        right,
        mistakes=[
            Mistake(
                "the number of layers makes no difference to the answer: this is the mask itself, one layer",
                lambda mask, layers: mask,
            ),
            Mistake(
                "one layer too many: after one layer a query has read its keys and nothing else, which is the mask",
                lambda mask, layers: right(mask, layers + 1),
            ),
            Mistake(
                "one layer too few: after two layers a query knows what its keys have read",
                lambda mask, layers: right(mask, max(1, layers - 1)),
            ),
            Mistake(
                "queries and keys are swapped: a row must say what reaches that query",
                lambda mask, layers: right(mask, layers).T,
            ),
            Mistake(
                "the mask is applied elementwise (`*` or `&`), which never leaves the mask; a path through a third "
                "token is a matrix product: mask @ mask",
                lambda mask, layers: mask & mask,
            ),
            Mistake(
                "the answer counts paths: a token is reached or it is not; compare with > 0",
                lambda mask, layers: power(mask, layers),
            ),
            Mistake(
                "the answer counts paths: a token is reached or it is not; compare with > 0",
                lambda mask, layers: power(mask, layers).long(),
            ),
            Mistake(
                "only tokens with exactly one path are kept: there may be several, so compare with > 0 and not == 1",
                lambda mask, layers: power(mask, layers) == 1,
            ),
            Mistake(
                "the mask is squared in every layer: that doubles the number of layers each time; multiply what was "
                "reached so far by the mask itself",
                lambda mask, layers: right(mask, 2 ** (layers - 1)) if layers > 2 else right(mask, layers),
            ),
            Mistake(
                "the answer goes on until nothing new is reached, which is what infinitely many layers do",
                lambda mask, layers: right(mask, len(mask)),
            ),
        ],
        explain=lambda arguments, expected, got: _why_reach(expected, got),
        details=lambda arguments, expected, got: pictures.masks_text(expected, got, _positions(len(expected))),
        draw=lambda arguments, expected, got: pictures.masks_figure(expected, got, _positions(len(expected))),
    )
    praise = "A window grows layer by layer, the printed prefix mask leaks from two layers on, the MAGNET mask never."
    return examine(function, "reach(mask, layers)", judge, praise)


def _all(ids: Tensor) -> BoolTensor:
    batch, length = ids.shape
    return torch.ones(batch, 1, length, length, dtype=torch.bool)


def _with_heads(got):
    return got[:, None] if isinstance(got, Tensor) and got.ndim == 3 else got


def _alike_but_for_padding(arguments: tuple, expected: Tensor, got) -> bool:
    """Equal in the rows of tokens; what padding sees nobody reads, but its rows must not be empty."""
    (ids,) = arguments
    if not isinstance(got, Tensor) or got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    tokens = (ids != PADDING)[: len(expected), None, :]
    if got.dtype == torch.bool and expected.any(dim=3).all() and not got.any(dim=3).all():
        return False
    return same(expected[tokens.expand(expected.shape[:3])], got[tokens.expand(got.shape[:3])])


def _first_wrong(ids: Tensor, expected: Tensor, got: Tensor) -> tuple[int, int, int] | None:
    """Text, query and key of the first wrong cell in the row of a token."""
    of_token = (ids != PADDING)[:, None, :, None]
    different = (expected != got) & of_token
    if not different.any():
        return None
    text, _, query, key = different.nonzero()[0].tolist()
    return text, query, key


def _why_mask(arguments: tuple, expected: Tensor, got: Tensor) -> str:
    (ids,) = arguments
    place = _first_wrong(ids, expected, got)
    if place is None:
        text, _, row = (~got.any(dim=3)).nonzero()[0].tolist()
        where = f"row {row}" + (f" of text {text}" if len(ids) > 1 else "")
        return (
            f"{where} is padding and sees nothing at all: softmax over an empty row is NaN, which spreads to all; let "
            "every token see itself"
        )
    text, query, key = place
    here, there = int(ids[text, query]), int(ids[text, key])
    row = f"row {query}" + (f" of text {text}" if len(ids) > 1 else "")
    who = "a context token" if here == CONTEXT else f"a token of span {here}"
    if got[text, 0, query, key]:
        if there == PADDING:
            return f"{row}: {who} sees padding at {key}: nobody may look at padding, it says nothing"
        if here == CONTEXT:
            return f"{row}: {who} sees span token {key}: {LEAK}"
        if here == there:
            return (
                f"{row}: {who} sees token {key} of its own span, which comes after it: what is to be predicted stands "
                "in plain view; within a span compare key <= query"
            )
        return f"{row}: {who} sees token {key} of span {there}: spans never see each other"
    if query == key:
        return f"{row}: {who} does not see itself: not after means before or at its place, so compare with <="
    if there != CONTEXT:
        return f"{row}: {who} does not see token {key}, an earlier one of its own span: a span is causal within itself"
    side = "right" if key > query else "left"
    if here == CONTEXT:
        return f"{row}: {who} does not see context token {key} on its {side}: the context is read in both directions"
    return f"{row}: {who} does not see context token {key} on its {side}: a span sees the whole context, on both sides"


def _names(ids: list[int]) -> list[str]:
    words = [WORDS[place % len(WORDS)] for place in range(len(ids))]
    shown = {CONTEXT: "{}", PADDING: "padding"}
    return [f"{place} " + shown.get(id_, "[{}]").format(words[place]) for place, id_ in enumerate(ids)]


def _both_masks(arguments: tuple, expected: Tensor, got: Tensor) -> str:
    text = _text_to_show(arguments, expected, got)
    return pictures.masks_text(expected[text, 0], got[text, 0], _names(arguments[0][text].tolist()))


def _draw_masks(arguments: tuple, expected: Tensor, got: Tensor):
    text = _text_to_show(arguments, expected, got)
    return pictures.masks_figure(expected[text, 0], got[text, 0], _names(arguments[0][text].tolist()))


def _text_to_show(arguments: tuple, expected: Tensor, got: Tensor) -> int:
    place = _first_wrong(arguments[0], expected, got)
    return place[0] if place else int((~got.any(dim=3)).nonzero()[0, 0])


def _positions(length: int) -> list[str]:
    return [str(place) for place in range(length)]


def _why_reach(expected: BoolTensor, got: BoolTensor) -> str:
    query, key = first_difference(expected, got)
    if got[query, key]:
        return f"row {query}: token {key} is counted as reached, and no path of so many steps leads there"
    return f"row {query}: token {key} is missing: there is a path to it through tokens in between"
