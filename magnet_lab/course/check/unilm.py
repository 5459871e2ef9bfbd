"""UniLMv2: the mask of one pass (Figure 5) and the order in which hidden tokens are told (Algorithm 1)."""

from itertools import pairwise

import torch
from torch import Tensor

from magnet_lab.attention import PADDING
from magnet_lab.course.check import pictures
from magnet_lab.course.check.calling import NoAnswer, Seed, Student
from magnet_lab.course.check.comparing import misformed, same
from magnet_lab.course.check.examine import Mistake, Wrong, compare, examine, show
from magnet_lab.course.check.verdict import Verdict
from magnet_lab.relatives.pseudo_masked import layout
from magnet_lab.relatives.pseudo_masked.layout import GIVEN
from magnet_lab.relatives.pseudo_masked.masking import blockwise_masking

_SHARE, _LONGEST = 0.15, 6


def pseudo_mask(function) -> Verdict:
    """Who may look at whom in UniLMv2's one pass (Figure 5): `pseudo_mask(steps, pseudo)`.

    Query q may attend to key k when k is given (step 0), or k is a true token of an earlier step, or q and k are of one
    step and of one kind (both pseudo masks [P], or both true tokens). Nobody looks at padding.

    Args of your function:
        steps: `(batch, width)` integers; 0 given, i >= 1 told in the i-th step, -1 padding.
        pseudo: `(batch, width)` booleans, True at [P].

    It returns `(batch, 1, width, width)` booleans, True where the query may attend to the key; `(batch, width, width)`
    will do. What padding sees is open, but it must see something.

        x1 [P] x2, steps 0 1 1  ->  ■ · ·
                                    ■ ■ ·      [P] does not see x2, which it is to predict
                                    ■ · ■
    """
    texts = [
        ["00"],
        ["0Pp"],
        ["00PPpp"],
        ["0PpqQ"],
        ["000PPppQq"],
        ["PPpp-"],
        ["0PpQqRr0", "00PPpp--"],
    ]
    cases = [_steps(rows) for rows in texts]

    def right(steps, pseudo):
        return layout.attention_mask(steps, pseudo)

    def rule(extra):
        """The rule and something more."""

        def answer(steps, pseudo):
            query, key = steps[:, :, None], steps[:, None, :]
            of_query, of_key = pseudo[:, :, None], pseudo[:, None, :]
            more = extra(query, key, of_query, of_key) & (query != PADDING) & (key != PADDING)
            return right(steps, pseudo) | more[:, None]

        return answer

    judge = compare(
        cases,
        right,
        mistakes=[
            Mistake(
                "everybody sees everybody: a [P] reads what it is to predict",
                lambda steps, pseudo: torch.ones_like(right(steps, pseudo)),
            ),
            Mistake("the mask is upside down: True must mean may attend", lambda s, p: ~right(s, p)),
            Mistake(
                "queries and keys are swapped: rows are queries (who looks), columns are keys (what is seen)",
                lambda steps, pseudo: right(steps, pseudo).transpose(2, 3),
            ),
            Mistake(
                "numbers in place of booleans: the rule is right, but True and False are wanted; end with .bool()",
                lambda steps, pseudo: right(steps, pseudo).long(),
            ),
            Mistake(
                "numbers in place of booleans: the rule is right, but True and False are wanted; end with .bool()",
                lambda steps, pseudo: right(steps, pseudo).float(),
            ),
            Mistake(
                "kinds are not told apart within a step, so a [P] sees the true tokens told with it, its own among "
                "them: explicit leakage",
                rule(lambda query, key, of_query, of_key: query == key),
            ),
            Mistake(
                "pseudo masks of earlier steps are seen as well: a [P] serves its own step alone, later ones have the "
                "true tokens",
                rule(lambda query, key, of_query, of_key: key < query),
            ),
        ],
        explain=_why,
        details=_both,
        draw=_draw,
        alike=_alike,
        tidy=lambda got: got[:, None] if isinstance(got, Tensor) and got.ndim == 3 else got,
    )
    praise = "Blocks, one token a step, true tokens before their masks, and padding: no leakage, explicit or implicit."
    return examine(function, "pseudo_mask(steps, pseudo)", judge, praise)


def factorization_order(function) -> Verdict:
    """Which tokens are hidden, and in which order told (Algorithm 1): `factorization_order(maskable, generator)`.

    Steps are drawn one after the other until 15 % of the maskable tokens are hidden. Each is a block of 2 to 6
    neighbours with a chance of 40 %, else a single token, at a random place where all of it is maskable and still free.
    The steps stand in the order in which they were drawn: that is the order in which they are told.

    Args of your function:
        maskable: a list of booleans, one a token; special tokens are not maskable.
        generator: a `torch.Generator`, the source of every random number.

    It returns a list of steps, each a list of neighbouring positions.

        [[4, 5], [2]]    4 and 5 at once, then 2, which may use them
    """

    def judge(ask: Student) -> Wrong | None:
        for length, texts in ((24, 60), (120, 60)):
            maskable = [place % 23 != 0 for place in range(length)]
            drawn = []
            for seed in range(texts):
                order = _as_order(ask(maskable, Seed(seed)))
                if wrong := _rules(order, maskable):
                    return Wrong(wrong, f"got       {show(order)}")
                drawn.append(order)
            if not same(drawn[-1], _as_order(ask(maskable, Seed(texts - 1)))):
                return Wrong("the same seed gives two different answers: every random number must come from generator")
            if all(order == drawn[0] for order in drawn):
                return Wrong("another seed gives the same answer: draw from the generator, and do not set its seed")
        return _variety(drawn, maskable)

    praise = "120 texts: a share of 15 %, blocks in 40 % of the draws, in the order in which they were drawn."
    return examine(function, "factorization_order(maskable, generator)", judge, praise)


def _steps(rows: list[str]) -> tuple[Tensor, Tensor]:
    """`0` given, `P` and `p` a pseudo mask and a true token of step 1, `Q` and `q` of step 2, `R` and `r` of step 3."""
    kinds = {"0": 0, "p": 1, "P": 1, "q": 2, "Q": 2, "r": 3, "R": 3, "-": PADDING}
    steps = torch.tensor([[kinds[kind] for kind in row] for row in rows])
    return steps, torch.tensor([[kind.isupper() for kind in row] for row in rows])


def _alike(arguments: tuple, expected: Tensor, got) -> bool:
    steps, _ = arguments
    if not isinstance(got, Tensor) or got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    if got.dtype == torch.bool and expected.any(dim=3).all() and not got.any(dim=3).all():
        return False
    tokens = (steps != PADDING)[:, None]
    return same(expected[tokens], got[tokens])


def _first_wrong(steps: Tensor, expected: Tensor, got: Tensor) -> tuple[int, int, int] | None:
    different = (expected != got) & (steps != PADDING)[:, None, :, None]
    if not different.any():
        return None
    text, _, query, key = different.nonzero()[0].tolist()
    return text, query, key


def _why(arguments: tuple, expected: Tensor, got: Tensor) -> str:
    steps, pseudo = arguments
    place = _first_wrong(steps, expected, got)
    if place is None:
        return "a row of padding sees nothing at all: softmax over an empty row is NaN; let every token see itself"
    text, query, key = place
    here, there = int(steps[text, query]), int(steps[text, key])
    looks_pseudo, is_pseudo = bool(pseudo[text, query]), bool(pseudo[text, key])
    row = f"row {query}" + (f" of text {text}" if len(steps) > 1 else "")
    who = f"{row}: " + ("a given token" if here == GIVEN else f"a {_kind(looks_pseudo)} of step {here}")
    if got[text, 0, query, key]:
        if there == PADDING:
            return f"{who} sees padding at {key}: nobody may look at padding"
        what = f"{_kind(is_pseudo)} {key} of step {there}"
        if here == there and looks_pseudo:
            return f"{who} sees {what}, told with it, which it may be asked for itself: explicit leakage"
        if here == there:
            return f"{who} sees {what}: [P] stand only where something is predicted; within a step, kinds do not mix"
        if there > here:
            return (
                f"{who} sees {what}, which is told later: implicit leakage, for what it has read it passes on to "
                "whoever looks at it"
            )
        return f"{who} sees {what}: a [P] serves its own step alone, later ones have the true tokens"
    if query == key:
        return f"{who} does not see itself"
    if there == GIVEN:
        return f"{who} does not see token {key}, which is given: everybody sees what is given"
    if here == there:
        return f"{who} does not see {_kind(is_pseudo)} {key} of its own step and kind: a block is told at once"
    return (
        f"{who} does not see {_kind(is_pseudo)} {key} of step {there}, told before: that is what autoregressive means"
    )


def _kind(is_pseudo: bool) -> str:
    return "pseudo mask" if is_pseudo else "true token"


def _names(steps: Tensor, pseudo: Tensor) -> list[str]:
    def name(step: int, is_pseudo: bool) -> str:
        if step == PADDING:
            return "padding"
        return "given" if step == GIVEN else f"{'[P]' if is_pseudo else 'true'} {step}"

    pairs = zip(steps.tolist(), pseudo.tolist(), strict=True)
    return [f"{place} {name(*pair)}" for place, pair in enumerate(pairs)]


def _chosen(arguments: tuple, expected: Tensor, got: Tensor) -> tuple[Tensor, Tensor, list[str]]:
    steps, pseudo = arguments
    place = _first_wrong(steps, expected, got)
    text = place[0] if place else int((~got.any(dim=3)).nonzero()[0, 0])
    return expected[text, 0], got[text, 0], _names(steps[text], pseudo[text])


def _both(arguments: tuple, expected: Tensor, got: Tensor) -> str:
    return pictures.masks_text(*_chosen(arguments, expected, got))


def _draw(arguments: tuple, expected: Tensor, got: Tensor):
    return pictures.masks_figure(*_chosen(arguments, expected, got))


def _as_order(answer) -> list[list[int]]:
    """The answer as lists of integers."""
    if problem := misformed([], answer):
        raise NoAnswer(problem)
    try:
        return [[int(position) for position in step] for step in answer]
    except TypeError:
        raise NoAnswer(
            "the answer must be a list of steps, each a list of positions: also a single token is a step, [7]"
        ) from None


def _rules(order: list[list[int]], maskable: list[bool]) -> str | None:
    positions = [position for step in order for position in step]
    wanted = _SHARE * sum(maskable)
    if not all(order):
        return "a step is empty: each has a token, or a block of them"
    if min(positions, default=0) < 0 or max(positions, default=0) >= len(maskable):
        return f"a block runs past the end of the text, whose positions are 0 … {len(maskable) - 1}: draw it anew"
    if len(set(positions)) < len(positions):
        twice = next(position for position in positions if positions.count(position) > 1)
        return f"position {twice} is told twice: a block that meets a hidden token must be drawn anew"
    if special := [position for position in positions if not maskable[position]]:
        return f"position {special[0]} is hidden and is not maskable: special tokens are never hidden"
    for step in order:
        if any(after != before + 1 for before, after in pairwise(step)):
            return f"the step {step} is no block: its positions must be neighbours, in order"
        if len(step) > _LONGEST:
            return f"the step {step} has {len(step)} tokens: a block has 2 to {_LONGEST}"
    if len(positions) < wanted:
        return (
            f"{len(positions)} tokens are hidden, fewer than 15 % of {sum(maskable)}: go on until that share is reached"
        )
    if len(positions) - max(map(len, order)) >= wanted:
        found = f"{len(positions)} of {sum(maskable)} tokens are hidden"
        return f"{found}: 15 % were reached without the last step; stop there"
    return None


def _variety(drawn: list[list[list[int]]], maskable: list[bool]) -> Wrong | None:
    steps = [step for order in drawn for step in order]
    blocks = [step for step in steps if len(step) > 1]
    share = len(blocks) / len(steps)
    reference = [
        step for seed in range(len(drawn)) for step in blockwise_masking(maskable, torch.Generator().manual_seed(seed))
    ]
    usual = sum(len(step) > 1 for step in reference) / len(reference)
    counted = f"counted   {len(blocks)} blocks among {len(steps)} steps ({share:.0%}); {usual:.0%} are usual"
    if not blocks:
        return Wrong("every step is a single token (autoregressive): 40 % of the draws are blocks", counted)
    if share == 1:
        return Wrong("every step is a block: 60 % of the draws are single tokens", counted)
    if all(order == sorted(order) for order in drawn):
        return Wrong(
            "the steps are always sorted from left to right: they are told in the order in which they were drawn, so "
            "that the model learns to predict in any order"
        )
    for order in drawn:
        if sum(map(len, order[:-1])) >= _SHARE * sum(maskable):
            return Wrong(
                "the steps do not stand in the order in which they were drawn: the last one must be that which reached "
                "15 %",
                f"got       {show(order)}",
            )
    if abs(share - (1 - usual)) < 0.1:
        return Wrong("40 and 60 are swapped: 40 % of the draws are blocks, 60 % single tokens", counted)
    if abs(share - usual) > 0.12:
        return Wrong("blocks are not drawn with a chance of 40 %", counted)
    lengths = {len(step) for step in blocks}
    if missing := set(range(2, _LONGEST + 1)) - lengths:
        return Wrong(
            f"there is never a block of {max(missing)} tokens: torch.randint's upper bound is not drawn, so add 1"
        )
    return None
