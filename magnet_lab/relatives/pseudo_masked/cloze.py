"""What the one pass replaces: for every factorization step a text of its own, with its own blanks (Figure 3).

An instance for step i holds what step i may know and nothing more: the given tokens, the true tokens of the steps
before it, and its own pseudo masks. What is told later is not hidden here by a mask: it is not there at all.

Within the instance every token sees what was told before it or with it. It does not see what was told after it, and
that is the price of the one pass: the context is encoded once, before anything is told, and never learns of it. BERT
would encode the context anew in every instance, with all that has been told in view; `everyone_sees_everyone` is that
instance. From the second layer on the two differ.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch

from magnet_lab.attention import PADDING
from magnet_lab.relatives.pseudo_masked.layout import Layout, Token, batch, given
from magnet_lab.relatives.pseudo_masked.masking import Order
from magnet_lab.relatives.pseudo_masked.vocabulary import MASK, PSEUDO


def par_row(text: Sequence[int], order: Order, step: int, *, conventional: bool = True) -> list[Token]:
    """The cloze instance of the factorization step with index `step`; the rest as in `layout.one_pass`.

    Its pseudo masks come last, in a step after all others.
    """
    tokens, hidden = given(text), {position for told in order for position in told}
    row = [token for token in tokens if token.position not in hidden]
    if conventional:
        row += [tokens[position]._replace(shows=MASK) for position in sorted(hidden)]
    for number, told in enumerate(order[:step], start=1):
        row += [tokens[position]._replace(step=number) for position in told]
    return row + [tokens[p]._replace(shows=PSEUDO, step=step + 1, is_pseudo=True) for p in order[step]]


def ae_row(text: Sequence[int], order: Order) -> list[Token]:
    """The one instance of AE, which is BERT's input: every hidden token an [M]."""
    hidden = {position for told in order for position in told}
    return [t._replace(shows=MASK, is_masked=True) if t.position in hidden else t for t in given(text)]


def instances(rows: list[list[Token]]) -> Layout:
    """Cloze instances as a batch, under the order of telling: a token sees what was told before it or with it."""
    layout = batch(rows)
    query, key = layout.steps[:, :, None], layout.steps[:, None, :]
    itself = torch.eye(layout.steps.shape[1], dtype=torch.bool)
    return replace(layout, mask=(((key <= query) & (key != PADDING)) | itself)[:, None])


def everyone_sees_everyone(layout: Layout) -> Layout:
    """The same instances as BERT would read them."""
    return replace(layout, mask=(layout.steps != PADDING)[:, None, None, :].expand_as(layout.mask))
