"""Losses over the steps of a run: a line each, a band where there are several seeds."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from magnet_lab.viz import palette
from magnet_lab.viz.results import LINES

ROWS = 8  # steps that the text shows


def losses_figure(
    runs: Mapping, *, steps: Sequence[int] | None = None, quantity: str = "loss (nats)", title: str = ""
) -> Figure:
    """Draw losses, or whatever else is measured along a run.

    Args:
        runs: name -> `(steps,)`, or `(seeds, steps)`: then the line is the mean over the seeds and the band reaches
            from the lowest to the highest. NaN where there is nothing, as for an objective that joins later.
        steps: the steps' numbers; by default 1, 2, 3 …
        quantity: what is measured, with its unit.
        title: written above.

    Raises:
        ValueError: if there is no run, or one has not as many values as there are steps.
    """
    places, curves = _curves(runs, steps)
    figure = palette.card(7.2, 3.8)
    axes = figure.add_subplot()
    ends = []
    for number, (name, (mean, low, high)) in enumerate(curves.items()):
        style = LINES[number % len(LINES)]
        marked = max(1, len(places) // 8)
        axes.plot(places, mean, label=name, linewidth=1.8, markersize=5, markevery=marked, **style)
        if (high > low).any():
            axes.fill_between(places, low, high, color=style["color"], alpha=0.18, linewidth=0)
        there = np.flatnonzero(~np.isnan(mean))
        if len(there):
            ends.append((float(mean[there[-1]]), places[there[-1]], name))
    _name_at_the_ends(axes, ends)
    axes.set_xlabel("step", color=palette.INK)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel(quantity, color=palette.INK, parse_math=False)
    axes.tick_params(labelsize=8, colors=palette.FAINT)
    axes.grid(color="#E4E4E4", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        figure.suptitle(title, color=palette.INK, fontsize=12, parse_math=False)
    return figure


def losses_text(runs: Mapping, *, steps: Sequence[int] | None = None, quantity: str = "loss (nats)") -> str:
    """The same as a table of some of the steps, the lowest and highest of several seeds in brackets; arguments and
    errors as `losses_figure`.
    """
    places, curves = _curves(runs, steps)
    if not len(places):
        return f"{quantity}: no step yet"
    chosen = np.unique(np.linspace(0, len(places) - 1, min(ROWS, len(places))).round().astype(int))
    columns = {name: [_cell(*(values[step] for values in curve)) for step in chosen] for name, curve in curves.items()}
    widths = {name: max(len(name), *map(len, cells)) for name, cells in columns.items()}
    lines = [f"{quantity}", "  step" + "".join(f"  {name:>{widths[name]}}" for name in columns)]
    for row, step in enumerate(chosen):
        lines.append(f"{places[step]:>6}" + "".join(f"  {cells[row]:>{widths[n]}}" for n, cells in columns.items()))
    return "\n".join(lines)


def _curves(runs: Mapping, steps: Sequence[int] | None) -> tuple[list[int], dict[str, tuple]]:
    """The steps' numbers, and for each run the mean, the lowest and the highest over its seeds."""
    if not runs:
        raise ValueError("there is no run to draw; give at least one name with its values")
    values = {name: np.atleast_2d(np.asarray(run, dtype=float)) for name, run in runs.items()}
    length = len(steps) if steps is not None else next(iter(values.values())).shape[1]
    for name, run in values.items():
        if run.ndim != 2 or run.shape[1] != length:
            raise ValueError(f"{name} has shape {run.shape}; (seeds, steps) with {length} steps is needed")
    places = list(steps) if steps is not None else list(range(1, length + 1))
    return places, {name: (run.mean(axis=0), run.min(axis=0), run.max(axis=0)) for name, run in values.items()}


def _name_at_the_ends(axes, ends: list[tuple[float, int, str]]) -> None:
    """Write each line's name beside its last point; names of lines that end together give way upwards."""
    low, high = axes.get_ylim()
    apart, last = (high - low) * 0.07, -np.inf
    for value, place, name in sorted(ends):
        last = max(value, last + apart)
        axes.text(place, last, f"  {name}", fontsize=9, color=palette.INK, va="center", parse_math=False)


def _cell(mean: float, low: float, high: float) -> str:
    if np.isnan(mean):
        return "–"
    return f"{mean:.3f} ({low:.3f}–{high:.3f})" if high > low else f"{mean:.3f}"
