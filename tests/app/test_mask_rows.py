"""UniLMv2's row, masks side by side, and the leak finder: against rows drawn by hand and paths walked by hand."""

import itertools

import pytest

from magnet_lab.app import limits
from magnet_lab.app.handlers import leaks, mask_row, masks

TOKENS = ["a", "b", "c", "d", "e"]
UNILMV2_ROWS = """
a   ■■■■■······
[M] ■■■■■······
[M] ■■■■■······
d   ■■■■■······
[M] ■■■■■······
[P] ■■■■■■■····
[P] ■■■■■■■····
b   ■■■■■··■■··
c   ■■■■■··■■··
[P] ■■■■■··■■■·
e   ■■■■■··■■·■
"""


def drawn(row):
    lines = ["".join("■" if seen else "·" for seen in line) for line in row.mask.tolist()]
    return "\n".join(f"{token:3} {line}" for token, line in zip(row.tokens, lines, strict=True))


def test_unilmv2s_row_is_that_of_figure_5():
    row = mask_row.row(TOKENS, "unilmv2", "1-2, 4")
    assert drawn(row) == UNILMV2_ROWS.strip()
    assert set(row.predictions) == {(1, 7), (5, 7), (2, 8), (6, 8), (4, 10), (9, 10)}
    assert row.looks == [*("context", "masked", "masked", "context", "masked"), *("masked", "masked", "span", "span"),
                         "masked", "span"]  # fmt: skip
    assert row.kinds[5] == "pseudo mask for “b”, step 1" and row.kinds[10] == "told in step 2"


def test_unilmv2_with_its_rule_broken_leaks_in_two_layers():
    assert "No leak" in masks.draw_mask(TOKENS, "unilmv2", "1-2", layers=12, token=5).sentences[-1]
    view = masks.draw_mask(TOKENS, "unilmv2", "1-2", leak=True, layers=2, token=5)
    assert view.sentences[-1] == "A leak: 7 is what it is still to predict."


@pytest.mark.parametrize(
    ("mode", "spans", "prefix", "predictions"),
    [
        ("causal", "", 0, {(0, 1), (1, 2), (2, 3), (3, 4)}),
        ("bidirectional", "", 0, set()),
        ("prefix", "", 3, {(2, 3), (3, 4)}),
        ("magnet", "1-2, 4", 0, {(0, 1), (1, 2), (3, 4)}),
        ("magnet", "0-1", 0, {(0, 1)}),
    ],
)
def test_what_is_predicted_where(mode, spans, prefix, predictions):
    assert set(mask_row.row(TOKENS, mode, spans, prefix).predictions) == predictions


def test_side_by_side_the_prefix_ends_where_the_span_begins():
    views = dict(masks.side_by_side(TOKENS, "2-3"))
    assert list(views) == ["MAGNET", "Prefix LM, prefix of 2", "UniLMv2"]
    rows = [line.split("  ")[-1] for line in views["Prefix LM, prefix of 2"].text.splitlines()[-5:]]
    assert [row.count("■") for row in rows] == [2, 2, 3, 4, 5]
    assert len(views["UniLMv2"].strip) == 5 + 2 * 2


# --- the leak finder


def knows(sees, where, what, layers):
    """Whether a path of so many looks, or fewer, leads from one token to the other."""
    if layers == 0:
        return where == what
    return any(knows(sees, between, what, layers - 1) for between in range(len(sees)) if sees[where][between])


@pytest.mark.parametrize(
    ("mode", "spans", "prefix"), [("causal", "", 0), ("prefix", "", 2), ("magnet", "1-2, 4", 0), ("unilmv2", "1, 3", 0)]
)
def test_every_cell_leaks_what_paths_through_it_lead_to(mode, spans, prefix):
    row = mask_row.row(TOKENS, mode, spans, prefix)
    size = len(row.tokens)
    for query, key in itertools.product(range(size), repeat=2):
        if row.mask[query, key]:
            with pytest.raises(ValueError, match="choose a closed cell"):
                leaks.find(row, f"{query}, {key}")
            continue
        sees = row.mask.tolist()
        sees[query][key] = True
        for layers in (1, 2, 3):
            found = leaks.find(row, f"{query}, {key}", layers)
            told = {
                (where, what)
                for where, what in itertools.product(range(size), repeat=2)
                if found.cells[where][what] == leaks.ANSWER
            }
            assert told == {pair for pair in row.predictions if knows(sees, *pair, layers)}
            open_now = {
                (where, what)
                for where, what in itertools.product(range(size), repeat=2)
                if found.cells[where][what] != leaks.CLOSED
            }
            assert open_now == {
                (where, what)
                for where, what in itertools.product(range(size), repeat=2)
                if knows(sees, where, what, layers)
            }


def test_a_leak_is_told_with_the_layers_that_it_takes():
    row = mask_row.row(["Tom", " lost", " his", " ball", "."], "magnet", "1-3")
    found = leaks.find(row, "4, 2")
    assert found.rows == [
        ["1 layer", "1", "none"],
        ["2 layers", "4", "1 → 2 “his”"],
        ["3 layers", "5", "0 → 1 “lost”, 1 → 2 “his”"],
    ]
    assert found.sentences[1].startswith("A leak after 2 layers: 1 “lost” is to predict 2 “his”, and can read it off.")
    assert found.cells[4][2] == leaks.OPENED


def test_without_a_cell_the_mask_is_shown_and_a_cell_is_asked_for():
    found = leaks.find(mask_row.row(TOKENS, "causal"), " ")
    assert found.rows == [] and "Choose a closed cell" in found.sentences[0]
    assert "Every cell is open" in leaks.find(mask_row.row(TOKENS, "bidirectional")).sentences[0]


@pytest.mark.parametrize("cell", ["x", "3", "1, 99", "-1, 2", "1.5, 2", "9" * 40, "<b>1</b>, 2", "1, 2, 3"])
def test_cells_that_make_no_sense_get_a_sentence(cell):
    with pytest.raises(ValueError, match="the cell"):
        leaks.find(mask_row.row(TOKENS, "causal"), cell)


@pytest.mark.parametrize("layers", [0, 99, None, float("nan")])
def test_layers_that_make_no_sense_get_a_sentence(layers):
    with pytest.raises(ValueError, match="layers"):
        leaks.find(mask_row.row(TOKENS, "causal"), "0, 1", layers)


def test_the_longest_text_has_a_leak_finder_too():
    row = mask_row.row(["x"] * limits.MASK_TOKENS, "unilmv2", f"0-{limits.MASK_TOKENS - 1}")
    assert leaks.find(row, f"0, {len(row.tokens) - 1}").rows[-1][2] != "none"
