"""What a verdict shows: text and picture with the same content."""

import io

import numpy as np
import pytest
import torch

from magnet_lab.course import check
from magnet_lab.course.check import pictures


def leaking(length, prefix_length):
    return torch.ones(length, length).tril(1).bool()


def test_a_verdict_is_true_or_false_and_reads_as_its_message():
    verdict = check.prefix_mask(leaking)
    assert not verdict and repr(verdict) == str(verdict) == verdict.message


def test_praise_is_one_line():
    place = torch.arange
    verdict = check.prefix_mask(lambda n, k: (place(n)[None] < k) | (place(n)[None] <= place(n)[:, None]))
    assert verdict and verdict.message.startswith("prefix_mask: right. ") and "\n" not in verdict.message
    assert verdict._repr_png_() is None


def test_wrong_masks_come_with_a_picture_and_its_twin_in_text():
    verdict = check.prefix_mask(leaking)
    assert verdict._repr_png_().startswith(b"\x89PNG")
    assert "expected" in verdict.message and "■" in verdict.message and "·" in verdict.message


def test_the_picture_frames_the_wrong_cells_and_no_others():
    expected = np.tril(np.ones((4, 4), dtype=bool))
    got = expected.copy()
    got[0, 2], got[3, 1] = True, False
    figure = pictures.masks_figure(expected, got, list("abcd"))
    left, right = figure.axes
    assert np.array_equal(left.images[0].get_array(), expected) and np.array_equal(right.images[0].get_array(), got)
    framed = {(int(patch.get_y() + 0.5), int(patch.get_x() + 0.5)) for patch in right.patches}
    assert framed == {(0, 2), (3, 1)} and not left.patches


def test_masks_as_text_by_hand():
    expected, got = [[1, 0], [1, 1]], [[1, 1], [1, 1]]
    lines = pictures.masks_text(expected, got, ["0 a", "1 [b]"]).splitlines()
    assert lines[1:] == ["       expected    got", "0 a    ■ ·         ■ ■ !", "1 [b]  ■ ■         ■ ■"]


def test_columns_by_hand():
    text = pictures.columns({"ids": [10, 7], "chosen": [True, False], "expected": [-100, 7], "got": [10, 7]})
    assert [line.split() for line in text.splitlines()] == [
        ["position", "0", "1"],
        ["ids", "10", "7"],
        ["chosen", "■", "·"],
        ["expected", "·", "7"],
        ["got", "10", "7"],
        ["^"],
    ]


@pytest.mark.slow
def test_in_a_notebook():
    """In a real kernel: text and picture are both shown, an endless loop ends, an error has the cell's own line."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    cells = [
        "from magnet_lab.course import check\nfrom magnet_lab.course.check import calling\nimport torch",
        "def leaking(length, prefix_length):\n    return torch.ones(length, length).tril(1).bool()\n"
        "check.prefix_mask(leaking)",
        "calling.TIME_LIMIT = 0.5\ndef endless(length, prefix_length):\n    while True:\n        x = 1\n"
        "check.prefix_mask(endless)",
        "calling.TIME_LIMIT = 4\ndef broken(length, prefix_length):\n    return undefined_name\n"
        "check.prefix_mask(broken)",
        "def prints(length, prefix_length):\n    print('seen')\ncheck.prefix_mask(prints)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
    texts = ["".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells]
    assert "a prefix token sees target token" in texts[1] or "causal" in texts[1] or "target" in texts[1]
    pngs = [output for output in notebook.cells[1].outputs if "image/png" in output.get("data", {})]
    assert len(pngs) == 1
    assert "No answer after" in texts[2]
    assert "its line `return undefined_name`: NameError" in texts[3]
    assert "prints its answer" in texts[4] and "printed   seen" in texts[4]


def test_a_picture_can_be_read_back():
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(check.prefix_mask(leaking)._repr_png_()))
    assert image.width > 200 and image.height > 100
