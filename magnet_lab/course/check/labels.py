"""What is to be predicted, and where: labels of MNTP, MSG, MTP and of a prefix LM."""

from collections.abc import Callable

import torch
from torch import LongTensor, Tensor

from magnet_lab import views
from magnet_lab.attention import CONTEXT, PADDING
from magnet_lab.course.check import pictures
from magnet_lab.course.check.comparing import first_difference
from magnet_lab.course.check.examine import Mistake, compare, examine
from magnet_lab.course.check.verdict import Verdict
from magnet_lab.relatives.prefix_lm.data import split
from magnet_lab.views import NO_LABEL

_MASK = 3  # the mask token in the cases

_TOO_SHORT = (
    "the labels are one position short: shifted ids have lost a column; start from a tensor full of -100 of the same "
    "shape and fill labels[:, :-1]"
)
_ROUND_THE_END = (
    "the shift wraps around (torch.roll): the last position is asked for the first token of the text; nothing follows "
    "the last token, its label is -100"
)
_NO_SHIFT = (
    "the labels stand at the hidden token's own place (this is MTP, BERT's way): a decoder's output at position l "
    "speaks of the token at l + 1, so the label of a token belongs one position to its left"
)
_WRONG_WAY = (
    "the labels are shifted the wrong way: the output at l would be asked for the token at l - 1, which it has seen; "
    "it must be the token at l + 1"
)
_ZERO = "places without a question hold 0, which is a token's id: they must be -100, which cross entropy leaves out"


def mntp_labels(function) -> Verdict:
    """Labels of masked next-token prediction (Equation 2): `mntp_labels(input_ids, corrupted, selected)`.

    A hidden token is predicted from one position to its left: the label at l is the *uncorrupted* token at l + 1 where
    that one was selected, and -100 everywhere else.

    Args of your function:
        input_ids: `(batch, length)`, the text as it was.
        corrupted: `(batch, length)`, the text with its hidden tokens.
        selected: `(batch, length)` booleans, True at the hidden tokens; never at a row's first token.

    It returns `(batch, length)` integers.

        input_ids 10 11 12 13, selected · · ■ ·  ->  -100 12 -100 -100
    """
    right = _shifted

    def of(ids: Callable, where: Callable):
        return lambda input_ids, corrupted, selected: views.next_token_labels(
            ids(input_ids, corrupted), where(input_ids, corrupted, selected)
        )

    judge = compare(
        _hidden_cases(),
        right,
        mistakes=[
            Mistake(_NO_SHIFT, lambda ids, corrupted, selected: views.same_token_labels(ids, selected)),
            Mistake(_WRONG_WAY, lambda ids, corrupted, selected: _backwards(ids, selected)),
            Mistake(
                "the labels are tokens of the corrupted text: the model would learn to predict the mask token; the "
                "answer is in input_ids",
                of(lambda ids, corrupted: corrupted, lambda ids, corrupted, selected: selected),
            ),
            Mistake(
                "every position has a label: this is plain next-token prediction; only the selected tokens are asked "
                "for, since under a bidirectional mask all others can be read off",
                of(lambda ids, corrupted: ids, lambda ids, corrupted, selected: torch.ones_like(selected)),
            ),
            Mistake(
                "only the tokens that look different are asked for: a tenth of the selected ones stays as it is, and "
                "is a target too; use selected",
                of(lambda ids, corrupted: ids, lambda ids, corrupted, selected: ids != corrupted),
            ),
            Mistake(
                "only places with the mask token are asked for: random and unchanged tokens are targets too; use "
                "selected",
                of(lambda ids, corrupted: ids, lambda ids, corrupted, selected: corrupted == _MASK),
            ),
            Mistake(
                "the label stands in the right place but is the wrong token: at l it must be input_ids[l + 1]; here "
                "it is the token at l, which the model has in front of it",
                lambda ids, corrupted, selected: torch.where(
                    right(ids, corrupted, selected) == NO_LABEL, NO_LABEL, ids
                ),
            ),
            Mistake(
                "the selection is not shifted along with the ids: whether there is a label at l depends on token l + 1",
                lambda ids, corrupted, selected: torch.cat(
                    [torch.where(selected[:, :-1], ids[:, 1:], NO_LABEL), torch.full_like(ids[:, :1], NO_LABEL)], dim=1
                ),
            ),
            *_common(right),
        ],
        explain=_explain,
        details=_columns_of("input_ids", "corrupted", "selected"),
    )
    praise = "Hidden tokens at the end, side by side and unchanged ones: each is asked for one position to its left."
    return examine(function, "mntp_labels(input_ids, corrupted, selected)", judge, praise)


def msg_labels(function) -> Verdict:
    """Labels of missing-span generation (Equation 4): `msg_labels(input_ids, span_ids)`.

    Every token of a span is predicted from the position before it: the label at l is the token at l + 1 where that one
    is a span token, and -100 everywhere else. So the first token of a span is predicted from the context token to its
    left, and the token right after a span is no target.

    Args of your function:
        input_ids: `(batch, length)`.
        span_ids: `(batch, length)`; 0 context, k >= 1 the k-th span, -1 padding.

    It returns `(batch, length)` integers. A row's first token has no predictor, not even behind padding.

        input_ids 10 11 12 13, span_ids 0 1 1 0  ->  11 12 -100 -100
    """
    spans = [
        [[0, 1, 1, 0]],
        [[0, 0, 1, 1, 1, 0, 0]],
        [[0, 0, 0, 1, 1]],
        [[0, 1, 0, 2, 2, 0]],
        [[1, 1, 1, 1, 1]],
        [[0, 1, 1, 0, 0, -1], [0, 0, 0, 2, 0, 1]],
        [[-1, -1, 1, 1, 1, 1], [-1, 0, 0, 1, 1, 0]],
    ]
    cases = [(_ids(torch.tensor(ids)), torch.tensor(ids)) for ids in spans]

    def right(input_ids: LongTensor, span_ids: LongTensor) -> LongTensor:
        # As make_views has it: not a row's first token, even where every token is a span token.
        targets = (span_ids > 0) & ((span_ids != PADDING).cumsum(dim=1) > 1)
        return views.next_token_labels(input_ids, targets)

    def where(targets: Callable):
        return lambda input_ids, span_ids: views.next_token_labels(input_ids, targets(span_ids))

    def here_too(span_ids: LongTensor) -> Tensor:
        """Targets whose predictor is a span token as well."""
        before = torch.zeros_like(span_ids)
        before[:, 1:] = span_ids[:, :-1]
        return (span_ids > 0) & (before > 0)

    judge = compare(
        cases,
        right,
        mistakes=[
            Mistake(_NO_SHIFT, lambda ids, spans: views.same_token_labels(ids, spans > 0)),
            Mistake(_WRONG_WAY, lambda ids, spans: _backwards(ids, spans > 0)),
            Mistake(
                "the first token of a span is not asked for: the context token to its left predicts it, which sees "
                "nothing of the span; whether there is a label at l depends on token l + 1 alone",
                where(here_too),
            ),
            Mistake(
                "the token after a span is a target here: the span's last token predicts it and can see it, so there "
                "is nothing to learn; whether there is a label at l depends on token l + 1, not on l",
                lambda ids, spans: torch.cat(
                    [torch.where(spans[:, :-1] > 0, ids[:, 1:], NO_LABEL), torch.full_like(ids[:, :1], NO_LABEL)], dim=1
                ),
            ),
            Mistake(
                "padding counts as a span token: -1 is not 0 either; ask for span_ids > 0 and not for span_ids != 0",
                where(lambda spans: spans != CONTEXT),
            ),
            Mistake(
                "only the first span is asked for: there may be several, so ask for span_ids > 0 and not for == 1",
                where(lambda spans: (spans == 1) & ((spans != PADDING).cumsum(dim=1) > 1)),
            ),
            Mistake(
                "a row's first token has a label at the padding before it: nothing predicts a first token",
                where(lambda spans: spans > 0),
            ),
            Mistake(
                "context and spans are swapped: it is the span tokens (span_ids > 0) that are to be generated",
                where(lambda spans: spans == CONTEXT),
            ),
            Mistake(
                "every token has a label: the context is given, and under its mask it can be read off; only span "
                "tokens are asked for",
                where(lambda spans: torch.ones_like(spans, dtype=torch.bool)),
            ),
            *_common(right),
        ],
        explain=_explain,
        details=_columns_of("input_ids", "span_ids"),
    )
    praise = "First tokens of spans, two spans, a span at the end, nothing but span, and padding on either side."
    return examine(function, "msg_labels(input_ids, span_ids)", judge, praise)


def mtp_labels(function) -> Verdict:
    """Labels of masked token prediction (Appendix E, Figure 7): `mtp_labels(input_ids, corrupted, selected)`.

    BERT's way, which fails in a decoder: each hidden token is predicted from its own position.

    Args of your function: as in `mntp_labels`. It returns `(batch, length)` integers: the uncorrupted token where it
    was selected, else -100.

        input_ids 10 11 12 13, selected · · ■ ·  ->  -100 -100 12 -100
    """

    def right(input_ids, corrupted, selected):
        return views.same_token_labels(input_ids, selected)

    judge = compare(
        _hidden_cases(),
        right,
        mistakes=[
            Mistake(
                "the labels are shifted by one: this is MNTP; here, to see it fail, the output at l is asked for the "
                "token at l itself",
                _shifted,
            ),
            Mistake(
                "the labels are tokens of the corrupted text: the model would learn to copy the mask token; the "
                "answer is in input_ids",
                lambda ids, corrupted, selected: right(corrupted, corrupted, selected),
            ),
            Mistake(
                "every token has a label: the tokens that are not hidden can be copied; only the selected ones are "
                "asked for",
                lambda ids, corrupted, selected: ids,
            ),
            Mistake(
                "the selection is upside down: labels stand at the tokens that were not hidden",
                lambda ids, corrupted, selected: right(ids, corrupted, ~selected),
            ),
            Mistake(
                "only the tokens that look different are asked for: a tenth of the selected ones stays as it is, and "
                "is a target too; use selected",
                lambda ids, corrupted, selected: right(ids, corrupted, ids != corrupted),
            ),
            Mistake(
                "only places with the mask token are asked for: random and unchanged tokens are targets too; use "
                "selected",
                lambda ids, corrupted, selected: right(ids, corrupted, corrupted == _MASK),
            ),
            Mistake(_WRONG_WAY, lambda ids, corrupted, selected: _backwards(ids, selected)),
            *_common(right),
        ],
        explain=_explain,
        details=_columns_of("input_ids", "corrupted", "selected"),
    )
    praise = "Each hidden token at its own place, unchanged ones too. Now compare with mntp_labels."
    return examine(function, "mtp_labels(input_ids, corrupted, selected)", judge, praise)


def prefix_labels(function) -> Verdict:
    """Labels of a prefix LM: `prefix_labels(input_ids, prefix_lengths)`.

    Every target token is predicted from the position before it, the first one from the prefix's last token; within the
    prefix nothing is asked, since there everybody sees everybody.

    Args of your function:
        input_ids: `(batch, length)`.
        prefix_lengths: `(batch,)`, at least 1: how many tokens of each row are its prefix.

    It returns `(batch, length)` integers: at l the token at l + 1 where that is a target, else -100.

        input_ids 10 11 12 13, prefix_lengths 2  ->  -100 12 13 -100
    """
    cases = [
        (_ids(torch.zeros(1, length).long()), torch.tensor([prefix]))
        for length, prefix in ((4, 2), (5, 1), (6, 4), (5, 5))
    ]
    cases.append((_ids(torch.zeros(3, 7).long()), torch.tensor([2, 5, 1])))

    def right(input_ids, prefix_lengths):
        return split(input_ids, prefix_lengths).labels

    def targets(input_ids, prefix_lengths):
        return torch.arange(input_ids.shape[1])[None] >= prefix_lengths[:, None]

    judge = compare(
        cases,
        right,
        mistakes=[
            Mistake(
                _NO_SHIFT.replace("hidden", "target").replace(" (this is MTP, BERT's way)", ""),
                lambda ids, lengths: views.same_token_labels(ids, targets(ids, lengths)),
            ),
            Mistake(_WRONG_WAY, lambda ids, lengths: _backwards(ids, targets(ids, lengths))),
            Mistake(
                "the first target token is not asked for: the prefix's last token predicts it, at l = prefix_length - "
                "1; without it the model never learns to begin",
                lambda ids, lengths: right(ids, lengths + 1),
            ),
            Mistake(
                "the prefix's last token is asked for: the position before it belongs to the prefix and can see it; "
                "the first label stands at l = prefix_length - 1",
                lambda ids, lengths: right(ids, lengths - 1),
            ),
            Mistake(
                "the prefix is asked for as well: there everybody sees everybody, so its tokens can be read off",
                lambda ids, lengths: right(ids, torch.ones_like(lengths)),
            ),
            Mistake(
                "prefix and target are swapped: labels stand in the prefix, where everything can be read off",
                lambda ids, lengths: views.next_token_labels(ids, ~targets(ids, lengths)),
            ),
            Mistake(
                "the first row's prefix length is used for all rows: each row has its own; compare with "
                "prefix_lengths[:, None]",
                lambda ids, lengths: right(ids, lengths[:1].expand(len(ids))),
            ),
            *_common(right),
        ],
        explain=_explain,
        details=_columns_of("input_ids"),
    )
    praise = "Prefixes of every length, one and all included, and several in one batch."
    return examine(function, "prefix_labels(input_ids, prefix_lengths)", judge, praise)


def _hidden_cases() -> list[tuple]:
    """Texts, what they look like corrupted, and where: masked (3), random and unchanged tokens."""
    cases = []
    for fates in (["..m."], ["...m"], ["..m.r.s."], [".mm..s"], [".m..r...", "...s.m.m"]):
        ids = _ids(torch.zeros(len(fates), len(fates[0])).long())
        shown, selected = ids.clone(), torch.zeros_like(ids, dtype=torch.bool)
        for row, text in enumerate(fates):
            for place, fate in enumerate(text):
                selected[row, place] = fate != "."
                shown[row, place] = {"m": _MASK, "r": 99}.get(fate, ids[row, place])
        cases.append((ids, shown, selected))
    return cases


def _ids(like: LongTensor) -> LongTensor:
    """Ids that all differ, 10, 11, …; 0 at padding."""
    ids = torch.arange(10, 10 + like.numel()).view(like.shape)
    return ids.masked_fill(like == PADDING, 0)


def _shifted(input_ids, corrupted, selected) -> LongTensor:
    return views.next_token_labels(input_ids, selected)


def _backwards(input_ids: LongTensor, targets: Tensor) -> LongTensor:
    labels = torch.full_like(input_ids, NO_LABEL)
    labels[:, 1:] = torch.where(targets[:, :-1], input_ids[:, :-1], NO_LABEL)
    return labels


def _common(right: Callable) -> list[Mistake]:
    """What goes wrong with labels of every kind."""

    def rolled(input_ids, *rest):
        labels = right(input_ids, *rest)
        labels[:, -1] = input_ids[:, 0]
        return labels

    def zeros(input_ids, *rest):
        labels = right(input_ids, *rest)
        return labels.masked_fill(labels == NO_LABEL, 0)

    def minus_one(input_ids, *rest):
        labels = right(input_ids, *rest)
        return labels.masked_fill(labels == NO_LABEL, -1)

    return [
        Mistake(_TOO_SHORT, lambda *arguments: right(*arguments)[:, :-1]),
        Mistake(_TOO_SHORT, lambda *arguments: right(*arguments)[:, 1:]),
        Mistake(_ROUND_THE_END, rolled),
        Mistake(_ZERO, zeros),
        Mistake("places without a question hold -1; they must be -100, which cross entropy leaves out", minus_one),
    ]


def _explain(arguments: tuple, expected: LongTensor, got: LongTensor) -> str:
    row, place = first_difference(expected, got)
    input_ids, wanted, came = arguments[0], int(expected[row, place]), int(got[row, place])
    where = f"position {place}" + (f" of text {row}" if len(input_ids) > 1 else "")
    if place == input_ids.shape[1] - 1 and wanted == NO_LABEL and came == int(input_ids[row, 0]):
        return f"{where}: {_ROUND_THE_END}"
    if came == NO_LABEL:
        return f"{where} has no label: it must be asked for token {wanted}"
    if wanted == NO_LABEL:
        return f"{where} is asked for token {came}: nothing is to be predicted there"
    return f"{where} is asked for token {came}: it must be {wanted}"


def _columns_of(*names: str):
    """Details in columns, of the first row that is wrong; `names` are the arguments to show."""

    def details(arguments: tuple, expected: LongTensor, got: LongTensor) -> str:
        row, _ = first_difference(expected, got)
        tensors = {**dict(zip(names, arguments, strict=False)), "expected": expected, "got": got}
        text = pictures.columns({name: tensor[row].tolist() for name, tensor in tensors.items()})
        return text if len(expected) == 1 else f"text {row}\n{text}"

    return details
