"""Pictures of results: every number is where it belongs, nothing hides anything, and the text says the same."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from magnet_lab.evaluation import reproduce
from magnet_lab.evaluation.data import Data
from magnet_lab.evaluation.experiment import Experiment, Figure, Setting
from magnet_lab.viz.results import LINES, results_figure, results_text

ROWS = {
    "base": {"chunking": Figure(80, 78, 82, 9), "perplexity": Figure(20, 18, 23, 9)},
    "a row of a rather long name, left context only": {"chunking": Figure(85, 84, 86, 9)},
    "MAGNET": {"chunking": Figure(90, 88, 91, 9), "perplexity": Figure(12, 11, 14, 9)},
}
PRINTED = {"base": {"chunking": 83.0, "perplexity": 200.0}, "MAGNET": {"chunking": 92.0}, "other": {"chunking": 1.0}}
CURVES = {
    "MNTP": {"found, 0 steps": Figure(10, 10, 10, 1), "found, 8 steps": Figure(30, 25, 35, 3),
             "loss, 8 steps": Figure(4, 3, 5, 3)},
    "MTP": {"found, 0 steps": Figure(9, 9, 9, 1), "found, 8 steps": Figure(5, 2, 8, 3),
            "loss, 8 steps": Figure(6, 5, 7, 3)},
}  # fmt: skip


def test_every_dot_and_every_interval_is_where_it_was_measured():
    chunking, perplexity = results_figure(ROWS).axes
    for axes, column, places in ((chunking, "chunking", (0, 1, 2)), (perplexity, "perplexity", (0, 2))):
        assert axes.get_title(loc="left") == column
        whiskers, dots = axes.lines[::2], axes.lines[1::2]
        measured = [(list(ROWS)[place], place) for place in places]
        for (row, place), whisker, dot in zip(measured, whiskers, dots, strict=True):
            figure = ROWS[row][column]
            assert list(whisker.get_xdata()) == [figure.low, figure.high] and set(whisker.get_ydata()) == {place}
            assert (list(dot.get_xdata()), list(dot.get_ydata())) == ([figure.value], [place])
        low, high = axes.get_ylim()
        assert low > high  # the first row stands on top
    assert [name.get_text().replace("\n", " ") for name in chunking.get_yticklabels()] == list(ROWS)


def test_the_papers_numbers_are_hollow_and_only_beside_what_was_measured():
    chunking, perplexity = results_figure(ROWS, printed=PRINTED).axes
    hollow = [line for line in chunking.lines if line.get_markerfacecolor() == "none"]
    assert [list(line.get_xydata().flatten()) for line in hollow] == [[83, 0, 92, 2]]
    left, right = perplexity.get_xlim()
    assert left < 11 and right < 200  # a number far away does not press ours into a corner …
    (edge,) = perplexity.texts  # … and is written at the edge
    assert edge.get_text() == "◇ 200 →" and edge.get_position()[1] == 0


def test_curves_and_their_bands():
    found, loss = results_figure(CURVES).axes
    assert found.get_title(loc="left") == "found" and found.get_xlabel() == "steps"
    assert [line.get_label() for line in found.lines] == ["MNTP", "MTP"]
    assert np.array_equal(found.lines[0].get_xydata(), [[0, 10], [8, 30]])
    assert np.array_equal(loss.lines[1].get_xydata(), [[8, 6]])
    corners = {tuple(corner) for corner in found.collections[0].get_paths()[0].vertices}
    assert {(8, 25), (8, 35), (0, 10)} <= corners


def test_perplexities_far_apart_are_drawn_on_a_logarithmic_axis():
    curve = {"MAGNET": {"stories, 1 words": Figure(500, 400, 900, 9), "stories, 2 words": Figure(20, 10, 30, 9)}}
    assert results_figure(curve).axes[0].get_yscale() == "log"
    assert results_figure(CURVES).axes[0].get_yscale() == "linear"
    shares = {"MTP": {"found (%), 0 steps": Figure(0.4, 0.4, 0.4, 1), "found (%), 8 steps": Figure(17, 15, 19, 3)}}
    assert results_figure(shares).axes[0].get_yscale() == "linear"


def test_lines_are_told_apart_without_any_hue():
    def grey(colour: str) -> float:
        red, green, blue = (int(to_hex(colour)[i : i + 2], 16) for i in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for key in ("marker", "linestyle"):
        assert len({style[key] for style in LINES}) == len(LINES)
    assert abs(grey(LINES[0]["color"]) - grey(LINES[1]["color"])) > 60


@pytest.mark.parametrize("rows", [ROWS, CURVES, {f"row number {n} of some": ROWS["base"] for n in range(14)}])
def test_nothing_is_cut_off_and_no_name_hides_another(rows):
    title = "table6: What each of the objectives is for, one by one, two by two and all of them, and more (small)"
    figure = results_figure(rows, printed=PRINTED, title=title)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    page = figure.bbox
    texts = [figure._suptitle]
    for axes in figure.axes:
        left, right = axes.get_xlim()  # a tick beyond them is not drawn
        ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
        texts += [axes._left_title, axes.xaxis.label, *axes.get_yticklabels()]
        texts += [name for place, name in ticks if left <= place <= right]
    boxes = [text.get_window_extent(renderer) for text in texts if text.get_text() and text.get_visible()]
    assert all(box.x0 >= page.x0 and box.x1 <= page.x1 and box.y0 >= page.y0 and box.y1 <= page.y1 for box in boxes)
    names = [text.get_window_extent(renderer) for text in figure.axes[0].get_yticklabels() if text.get_text()]
    assert not any(one.overlaps(other) for number, one in enumerate(names) for other in names[:number])
    titles = [axes._left_title.get_window_extent(renderer) for axes in figure.axes]
    assert not any(one.overlaps(other) for number, one in enumerate(titles) for other in titles[:number])


def test_dots_in_text():
    """80 (78 to 82) on a strip of 41 places from 78 to 91: 0 to 12.3, the dot at 6.2."""
    chunking, perplexity = results_text(ROWS, printed=PRINTED).split("\n\n")
    lines = chunking.splitlines()
    assert lines[0] == "chunking: 78 … 91"
    strip = lines[1].split("│")[1]
    assert (strip.index("─"), strip.index("●"), strip.rindex("─")) == (0, 6, 12) and len(strip) == 41
    assert strip.index("◇") == 15 and lines[1].endswith("80 (78 to 82)  ◇ the paper's 83")  # 5/13 of 40
    assert "◇" not in lines[2] and lines[3].split("│")[1].count("◇") == 0  # 92 lies outside, and is written only
    assert "the paper's 92" in lines[3] and "the paper's 200" in perplexity


def test_curves_in_text():
    found, loss = results_text(CURVES).split("\n\n")
    assert found.splitlines() == [
        "found",
        "  MNTP",
        "         0 steps: 10 (10 to 10)",
        "         8 steps: 30 (25 to 35)",
        "  MTP",
        "         0 steps: 9 (9 to 9)",
        "         8 steps: 5 (2 to 8)",
    ]
    assert loss.startswith("loss\n  MNTP\n         8 steps: 4 (3 to 5)")


def test_no_figure_at_all_is_named():
    with pytest.raises(ValueError, match="there is no measured figure in any row"):
        results_figure({"MAGNET": {}})


def test_an_experiment_leaves_its_picture_beside_its_figures(tmp_path):
    rows = {name: lambda _, figures=figures: figures for name, figures in ROWS.items()}
    experiment = Experiment("table1", "Words", rows, [])
    reproduce.run(experiment, Setting("tiny", Data("samples")), tmp_path)
    first = (tmp_path / "tiny" / "table1.png").read_bytes()
    assert first.startswith(b"\x89PNG")
    reproduce.run(experiment, Setting("tiny", Data("samples")), tmp_path)
    assert (tmp_path / "tiny" / "table1.png").read_bytes() == first
