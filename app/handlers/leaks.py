"""One cell of a mask made visible against the rule: which predictions come to know their own answer, and how soon."""

import re
from dataclasses import dataclass

import magnet_lab as ml

from .. import limits
from . import mask_row

CLOSED, OPEN, HEARS, ANSWER, OPENED = "closed", "open", "hears", "answer", "opened"
TOO_WIDE = (
    f"The grid is for rows of at most {limits.GRID_TOKENS} tokens; shorten the text to see it. "
    "A cell can be opened by its row and column all the same."
)
COLUMNS = ["after", "cells that the opening adds", "predictions that know their own answer"]


@dataclass(frozen=True)
class Leaks:
    """A mask, cell by cell, and what an opened cell lets through.

    Attributes:
        tokens: what each row and each column stands for.
        cells: `[query][key]`, each one of the words above, after as many layers as were asked for.
        sentences: what happens, in words.
        rows: of `COLUMNS`, one for each number of layers until nothing more comes.
    """

    tokens: list[str]
    cells: list[list[str]]
    sentences: list[str]
    rows: list[list[str]]


def find(row: mask_row.Row, cell: str = "", layers: int = 2) -> Leaks:
    """Make a closed cell of a mask visible and see what leaks.

    Args:
        cell: the token that is to look and the one that it is to see, by their numbers: "3, 9"; "" shows the mask.
        layers: of which the cells are shown.

    Raises:
        ValueError: if the cell cannot be read, is not in the mask, or is open already.
    """
    limits.check_number("the number of layers", layers, 1, limits.MASK_LAYERS, whole=True)
    if not (cell or "").strip():
        cells = [[OPEN if seen else CLOSED for seen in line] for line in row.mask.tolist()]
        return Leaks(row.tokens, cells, [_invitation(row)], [])
    query, key = _parse_cell(cell, len(row.tokens))
    if row.mask[query, key]:
        raise ValueError(f"row {query} may look at column {key} already; choose a closed cell, one with a ·")
    opened = row.mask.clone()
    opened[query, key] = True
    found = list(_by_layer(row, opened))
    shown = found[min(int(layers), len(found)) - 1]
    return Leaks(row.tokens, _cells(row, shown, query, key), _sentences(row, found, query, key), _table(row, found))


def _parse_cell(cell: str, length: int) -> tuple[int, int]:
    match = re.fullmatch(r"\s*(\d{1,6})\s*[,;:\s]\s*(\d{1,6})\s*", cell)
    if not match:
        raise ValueError(f"the cell {cell[:40]!r} cannot be read; write its row and its column, as in 3, 9")
    query, key = int(match[1]), int(match[2])
    if max(query, key) >= length:
        raise ValueError(f"the cell {query}, {key} is not in the mask; its rows and columns go from 0 to {length - 1}")
    return query, key


@dataclass(frozen=True)
class _Layer:
    """After some layers: the cells `(query, key)` that the opening adds, and the predictions that it spoils."""

    added: list[tuple[int, int]]
    spoilt: list[tuple[int, int]]


def _by_layer(row: mask_row.Row, opened):
    """A `_Layer` for 1, 2, … layers, until another layer brings nothing new."""
    last = None
    for layers in range(1, limits.MASK_LAYERS + 1):
        reach = ml.attention.receptive_field(opened, layers)
        added = (reach & ~ml.attention.receptive_field(row.mask, layers)).nonzero().tolist()
        if added == last:
            return
        last = added
        cells = {(query, key) for query, key in added}
        yield _Layer(sorted(cells), [prediction for prediction in row.predictions if prediction in cells])


def _cells(row: mask_row.Row, shown: _Layer, query: int, key: int) -> list[list[str]]:
    cells = [[OPEN if seen else CLOSED for seen in line] for line in row.mask.tolist()]
    for kind, places in ((HEARS, shown.added), (OPENED, [(query, key)]), (ANSWER, shown.spoilt)):
        for where, what in places:
            cells[where][what] = kind
    return cells


def _invitation(row: mask_row.Row) -> str:
    if row.mask.all():
        return "Every cell is open: what is to be predicted has to be hidden in the text itself. Choose another mask."
    return "Choose a closed cell (·), in the grid or by its row and column: it is made visible, and what leaks is told."


def _sentences(row: mask_row.Row, found: list[_Layer], query: int, key: int) -> list[str]:
    sentences = [f"Now row {_name(row, query)} may look at column {_name(row, key)}."]
    first = next((layers for layers, layer in enumerate(found, start=1) if layer.spoilt), None)
    if first is None:
        sentences.append("No prediction comes to know its own answer, through any number of layers.")
    else:
        answers = "; ".join(
            f"{_name(row, where)} is to predict {_name(row, what)}" for where, what in found[first - 1].spoilt[:4]
        )
        more = len(found[first - 1].spoilt) - 4
        sentences.append(
            f"A leak after {_layers(first)}: {answers}{f', and {more} more' if more > 0 else ''}, "
            "and can read it off. The loss falls, and nothing is learned."
        )
    count = len(found[-1].spoilt)
    if first is not None:
        sentences.append(
            f"In the end {count} of {len(row.predictions)} predictions know their answer, after {_layers(len(found))}; "
            "more layers change nothing."
        )
    elif len(found[-1].added) > 1:
        sentences.append(
            f"But {len(found[-1].added)} cells are reached that were not: what is there when the model is trained and "
            "missing when it writes."
        )
    return sentences


def _table(row: mask_row.Row, found: list[_Layer]) -> list[list[str]]:
    rows = []
    for layers, layer in enumerate(found, start=1):
        spoilt = ", ".join(f"{where} → {_name(row, what)}" for where, what in layer.spoilt)
        rows.append([_layers(layers), str(len(layer.added)), spoilt or "none"])
    return rows


def _layers(number: int) -> str:
    return "1 layer" if number == 1 else f"{number} layers"


def _name(row: mask_row.Row, place: int) -> str:
    return f"{place} “{ml.viz.visible(row.tokens[place]).strip()}”"
