"""The row of tokens for one forward pass, and who may look at whom in it (Figures 4 and 5).

x1 … x6 told in the order 4, 5 → 2 becomes twelve tokens. Under each stand its position and its step:

    x1 [M] x3 [M] [M] x6   [P] [P] x4 x5   [P] x2
     1   2  3   4   5  6     4   5  4  5     2  2     position: several tokens may share one
     0   0  0   0   0  0     1   1  1  1     2  2     step in which the token is told; 0: given from the start

The context and the conventional masks [M] are all that BERT would see; at [M] the hidden tokens are predicted by AE.
Each step adds its pseudo masks [P], at which they are predicted by PAR, and then its true tokens, for later steps to
look at. In which order these stand in the row is of no matter: a Transformer knows of a token's place only what its
position embedding says.

The rule of the mask: query q may attend to key k when

    k is given (step 0),  or  k is a true token of an earlier step,  or  q and k are of one step and one kind.

So a pseudo mask does not see its own true token or those told with it (explicit leakage), and nobody sees what is told
later, not even through a third token (implicit leakage).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import BoolTensor, LongTensor

from magnet_lab.attention import PADDING
from magnet_lab.relatives.pseudo_masked.masking import Order
from magnet_lab.relatives.pseudo_masked.vocabulary import EOS, MASK, PAD, PSEUDO
from magnet_lab.views import same_token_labels

GIVEN = 0


class Token(NamedTuple):
    """One token of a row: what it shows, the text's token that it stands for, and when it is told."""

    shows: int
    true: int
    position: int
    segment: int
    step: int = GIVEN
    is_pseudo: bool = False
    is_masked: bool = False  # a conventional mask, whatever it shows


@dataclass(frozen=True)
class Layout:
    """A batch for one forward pass; all `(batch, width)` but the mask.

    Attributes:
        input_ids: the tokens shown.
        position_ids: shared by the tokens that stand for the same token of the text.
        segment_ids: 0 up to the text's first [EOS], 1 after it.
        steps: the factorization step in which the token is told; 0 given, -1 padding.
        pseudo: True at [P].
        mask: `(batch, 1, width, width)`, indexed `[batch, head, query, key]`; True where the query may attend.
        ae_labels, par_labels: the true token at each conventional mask, and at each [P]; elsewhere -100.
    """

    input_ids: LongTensor
    position_ids: LongTensor
    segment_ids: LongTensor
    steps: LongTensor
    pseudo: BoolTensor
    mask: BoolTensor
    ae_labels: LongTensor
    par_labels: LongTensor


def attention_mask(steps: LongTensor, pseudo: BoolTensor) -> BoolTensor:
    """The rule as a dense mask (Figure 5).

    Args:
        steps: `(batch, width)`; 0 given, i >= 1 told in the i-th step, -1 padding.
        pseudo: `(batch, width)`, True at [P].

    Returns:
        `(batch, 1, width, width)`, True where the query may attend to the key. Every token sees itself, padding too:
        a softmax over an empty row would be NaN.
    """
    query, key = steps[:, :, None], steps[:, None, :]
    told_before = (key < query) & ~pseudo[:, None, :]
    of_one_step_and_kind = (key == query) & (pseudo[:, :, None] == pseudo[:, None, :])
    allowed = ((key == GIVEN) | told_before | of_one_step_and_kind) & (key != PADDING)
    itself = torch.eye(steps.shape[1], dtype=torch.bool, device=steps.device)
    return (allowed | itself)[:, None]


def one_pass(
    texts: Sequence[Sequence[int]],
    orders: Sequence[Order],
    *,
    conventional: bool = True,
    pseudo: bool = True,
    shown: Callable[[int], int] = lambda token: MASK,
) -> Layout:
    """Texts laid out so that one forward pass predicts every hidden token: by AE, by PAR (or AR), or by both.

    Args:
        texts: ids, `[SOS] S1 [EOS]` or `[SOS] S1 [EOS] S2 [EOS]`.
        orders: for each text the steps in which its hidden tokens are told.
        conventional: put a conventional mask in each hidden token's place: for AE, and for PAR to know from the start
            which positions are hidden.
        pseudo: add the pseudo masks and the true tokens of the steps: for PAR.
        shown: what a conventional mask shows in place of a token.

    Raises:
        ValueError: if an order names a position twice or one that its text does not have.
    """
    rows = []
    for text, order in zip(texts, orders, strict=True):
        hidden = {position for step in order for position in step}
        if len(hidden) < sum(map(len, order)) or not hidden <= set(range(len(text))):
            raise ValueError(f"the order {order} names a position twice or one that is not in 0…{len(text) - 1}")
        tokens = given(text)
        row = [token for token in tokens if token.position not in hidden or conventional]
        row = [t._replace(shows=shown(t.true), is_masked=True) if t.position in hidden else t for t in row]
        for number, step in enumerate(order if pseudo else [], start=1):
            told = [tokens[position]._replace(step=number) for position in step]
            row += [token._replace(shows=PSEUDO, is_pseudo=True) for token in told] + told
        rows.append(row)
    return batch(rows)


def plain(texts: Sequence[Sequence[int]]) -> Layout:
    """Texts with nothing hidden, every token in view of every other: the encoder of BERT, for NLU tasks."""
    return batch([given(text) for text in texts])


def given(text: Sequence[int]) -> list[Token]:
    """A text's tokens as they are, given from the start."""
    return [Token(token, token, position, EOS in text[:position]) for position, token in enumerate(text)]


def batch(rows: list[list[Token]]) -> Layout:
    """Rows of tokens as one batch, padded on the right."""
    width = max(map(len, rows))
    padding = Token(PAD, PAD, position=0, segment=0, step=PADDING)
    table = torch.tensor([row + [padding] * (width - len(row)) for row in rows], dtype=torch.long)
    shows, true, position, segment, steps, is_pseudo, is_masked = table.unbind(dim=-1)
    pseudo = is_pseudo.bool()
    return Layout(
        input_ids=shows,
        position_ids=position,
        segment_ids=segment,
        steps=steps,
        pseudo=pseudo,
        mask=attention_mask(steps, pseudo),
        ae_labels=same_token_labels(true, is_masked.bool()),
        par_labels=same_token_labels(true, pseudo),
    )
