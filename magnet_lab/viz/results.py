"""Measured results as pictures: a panel a column with a dot and its interval for every row, or curves with bands.

Which of the two it is follows from the columns: "Rep-4, 10 steps" and "Rep-4, 20 steps" are two points of a curve.
A figure is anything with a `value` and the ends of its interval, `low` and `high`.
"""

import math
import re
import textwrap
from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from magnet_lab.viz import palette

POINT = re.compile(r"(.+), (\d+) (\w+)")  # curve, place, unit
PER_LINE = 3  # panels
STRIP = 41  # characters of an interval in text
WIDE = 20  # highest by lowest value from which on an axis is logarithmic
PAPERS = "the paper's"

# Told apart by lightness, mark and line, so that they hold in grey as well.
LINES = (
    {"color": palette.SEES.background, "marker": "o", "linestyle": "-"},
    {"color": palette.REACHED.background, "marker": "s", "linestyle": "--"},
    {"color": palette.FAINT, "marker": "^", "linestyle": ":"},
    {"color": palette.MASKED.light.background, "marker": "D", "linestyle": "-."},
)

Rows = Mapping[str, Mapping]  # row -> column -> figure
Printed = Mapping[str, Mapping[str, float]]  # row -> column -> the paper's number


def results_figure(rows: Rows, *, printed: Printed | None = None, title: str = "") -> Figure:
    """Draw the rows of a result.

    Args:
        rows: row -> column -> figure.
        printed: the paper's numbers; those of a row and a column that are measured here too are drawn hollow.
        title: written above.

    Raises:
        ValueError: if there is no figure in any row.
    """
    panels = _panels(rows)
    if _are_curves(rows):
        return _curves_figure(panels, title)
    return _dots_figure(panels, printed or {}, title)


def results_text(rows: Rows, *, printed: Printed | None = None) -> str:
    """The same picture in characters; arguments and errors as `results_figure`."""
    panels = _panels(rows)
    if _are_curves(rows):
        return "\n\n".join(_curve_text(name, lines) for name, lines in panels.items())
    return "\n\n".join(
        _dots_text(name, lines, _of_column(printed or {}, name, lines)) for name, lines in panels.items()
    )


def _are_curves(rows: Rows) -> bool:
    return all(POINT.fullmatch(column) for columns in rows.values() for column in columns)


def _panels(rows: Rows) -> dict[str, dict]:
    """Panel -> row -> figure; of curves, panel -> row -> [(place, unit, figure)]."""
    panels: dict[str, dict] = {}
    for row, columns in rows.items():
        for column, figure in columns.items():
            if _are_curves(rows):
                name, place, unit = POINT.fullmatch(column).groups()
                panels.setdefault(name, {}).setdefault(row, []).append((int(place), unit, figure))
            else:
                panels.setdefault(column, {})[row] = figure
    if not panels:
        raise ValueError("there is no measured figure in any row, so there is nothing to draw")
    return panels


def _of_column(printed: Printed, column: str, lines: Mapping) -> dict[str, float]:
    """The paper's numbers of one column, for the rows that were measured; those it left out are NaN."""
    found = {row: printed[row].get(column, math.nan) for row in lines if row in printed}
    return {row: value for row, value in found.items() if not math.isnan(value)}


def _grid(count: int, height: float, width: float = 3.3, margin: float = 0.0):
    """A figure with so many panels, at most three a line, and their axes."""
    across = min(count, PER_LINE)
    down = math.ceil(count / across)
    figure = palette.card(width * across + margin, height * down + 0.9)
    axes = [figure.add_subplot(down, across, number) for number in range(1, count + 1)]
    for one in axes:
        one.tick_params(labelsize=8, colors=palette.FAINT, length=0)
        one.set_axisbelow(True)
        for side, spine in one.spines.items():
            spine.set_color("#C8C8C8")
            spine.set_visible(side in ("left", "bottom"))
    return figure, axes, across


def _finish(figure: Figure, axes, title: str, legend: bool) -> Figure:
    if title:
        figure.suptitle("\n".join(textwrap.wrap(title, 22 * min(len(axes), PER_LINE) + 24)), color=palette.INK,
                        fontsize=12, parse_math=False)  # fmt: skip
    if legend:
        handles = {}
        for one in axes:
            for handle, name in zip(*one.get_legend_handles_labels(), strict=True):
                handles.setdefault(name, handle)
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=min(4, len(handles)),
                      frameon=False, fontsize=9, labelcolor=palette.INK)  # fmt: skip
    return figure


def _name(axes, text: str) -> None:
    wrapped = "\n".join(textwrap.wrap(text, 32, break_on_hyphens=False))
    axes.set_title(wrapped, fontsize=10, color=palette.INK, loc="left", parse_math=False)


def _dots_figure(panels: dict, printed: Printed, title: str) -> Figure:
    rows = list(dict.fromkeys(row for lines in panels.values() for row in lines))
    names = ["\n".join(textwrap.wrap(row, 22)) for row in rows]
    inches = sum(0.2 + 0.13 * name.count("\n") for name in names) + 0.1 * len(rows) + 0.65
    longest = max(len(line) for name in names for line in name.splitlines())
    figure, axes, across = _grid(len(panels), inches, width=2.7, margin=0.25 + 0.075 * longest)
    theirs_anywhere = False
    for number, (column, lines) in enumerate(panels.items()):
        here, theirs = axes[number], _of_column(printed, column, lines)
        _name(here, column)
        for row, measured in lines.items():
            place = rows.index(row)
            here.plot([measured.low, measured.high], [place, place], color=palette.SEES.background, linewidth=2)
            here.plot(measured.value, place, "o", color=palette.SEES.background, markersize=6.5, zorder=3)
        theirs_anywhere = theirs_anywhere or bool(theirs)
        _beside(here, {rows.index(row): value for row, value in theirs.items()}, lines)
        here.set_ylim(len(rows) - 0.5, -0.5)
        here.locator_params(axis="x", nbins=4)
        first = number % across == 0
        style = {"fontsize": 9, "color": palette.INK, "parse_math": False}
        here.set_yticks(range(len(rows)), names if first else [""] * len(rows), **style)
        here.grid(color="#E4E4E4", linewidth=0.6)
    return _finish(figure, axes, title, legend=theirs_anywhere)


def _beside(here, theirs: Mapping[int, float], lines: Mapping) -> None:
    """The paper's numbers by the row's place: to scale where they lie near ours, else written at the edge, so that a
    model of another size does not press all of ours into one corner."""
    low, high = min(one.low for one in lines.values()), max(one.high for one in lines.values())
    span = high - low or abs(high) / 10 or 1.0
    near = {place: value for place, value in theirs.items() if low - span <= value <= high + span}
    style = {"markerfacecolor": "none", "markeredgecolor": palette.INK, "markersize": 7, "zorder": 2}
    if theirs:
        here.plot(list(near.values()), list(near), "D", linestyle="", label=PAPERS, **style)
    left, right = min([low, *near.values()]) - 0.1 * span, max([high, *near.values()]) + 0.1 * span
    for place, value in theirs.items() - near.items():
        above = value > high
        side, edge, text = (
            ("right", 0.99, f"◇ {_number(value)} →") if above else ("left", 0.01, f"← {_number(value)} ◇")
        )
        where = {"transform": here.get_yaxis_transform(), "va": "center", "ha": side, "zorder": 4}
        here.text(edge, place, text, fontsize=8.5, color=palette.INK, **where)
    room = 0.55 * (right - left)  # for what is written there
    right += room if any(value > high for place, value in theirs.items() - near.items()) else 0
    left -= room if any(value < low for place, value in theirs.items() - near.items()) else 0
    here.set_xlim(left, right)


def _curves_figure(panels: dict, title: str) -> Figure:
    rows = list(dict.fromkeys(row for lines in panels.values() for row in lines))
    figure, axes, _ = _grid(len(panels), 2.9, width=3.9)
    for here, (name, lines) in zip(axes, panels.items(), strict=True):
        _name(here, name)
        for row, points in lines.items():
            style = LINES[rows.index(row) % len(LINES)]
            places = [place for place, _, _ in points]
            here.plot(places, [one.value for *_, one in points], label=row, linewidth=1.8, markersize=5.5, **style)
            low, high = [one.low for *_, one in points], [one.high for *_, one in points]
            here.fill_between(places, low, high, color=style["color"], alpha=0.16, linewidth=0)
        points = [point for row in lines.values() for point in row]
        lowest, highest = min(one.low for *_, one in points), max(one.high for *_, one in points)
        if highest > 100 and 0 < lowest < highest / WIDE:  # a perplexity: percentages stay on an even scale
            here.set_yscale("log")
        here.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        here.set_xlabel(points[0][1], fontsize=9, color=palette.INK)
        here.grid(color="#E4E4E4", linewidth=0.6)
    return _finish(figure, axes, title, legend=True)


def _number(value: float) -> str:
    return f"{value:.4g}"


def _interval(measured) -> str:
    return f"{_number(measured.value)} ({measured.low:.3g} to {measured.high:.3g})"


def _dots_text(column: str, lines: Mapping, theirs: Mapping[str, float]) -> str:
    low, high = min(one.low for one in lines.values()), max(one.high for one in lines.values())

    def place(value: float) -> int:
        return round((value - low) / (high - low) * (STRIP - 1)) if high > low else STRIP // 2

    margin = max(map(len, lines))
    found = [f"{column}: {_number(low)} … {_number(high)}"]
    for row, one in lines.items():
        strip = [" "] * STRIP
        for position in range(place(one.low), place(one.high) + 1):
            strip[position] = "─"
        beside = ""
        if row in theirs:
            if low <= theirs[row] <= high:
                strip[place(theirs[row])] = "◇"
            beside = f"  ◇ {PAPERS} {_number(theirs[row])}"
        strip[place(one.value)] = "●"
        found.append(f"{row.ljust(margin)} │{''.join(strip)}│ {_interval(one)}{beside}")
    return "\n".join(found)


def _curve_text(name: str, lines: Mapping) -> str:
    found = [name]
    for row, points in lines.items():
        found.append(f"  {row}")
        found += [f"    {place:>6} {unit}: {_interval(one)}" for place, unit, one in points]
    return "\n".join(found)
