"""`magnet-lab reproduce` and `magnet-lab results`: run an experiment, put the paper's rows beside ours.

A row is saved as soon as it is measured, so an experiment that is stopped goes on where it was.
"""

import importlib
import math
import pkgutil
import sys
import time
import tomllib
from pathlib import Path

from tqdm import tqdm

import magnet_lab.evaluation
from magnet_lab.bench._report import hardware
from magnet_lab.evaluation.experiment import SHIPPED, Claim, Experiment, Result, Setting, commit, versions
from magnet_lab.evaluation.written import side_by_side
from magnet_lab.viz.results import results_figure
from magnet_lab.zoo import ModelUnavailable


def experiments() -> dict[str, Experiment]:
    """All of them, by id."""
    names = [module.name for module in pkgutil.iter_modules(magnet_lab.evaluation.__path__)]
    modules = [importlib.import_module(f"magnet_lab.evaluation.{name}") for name in sorted(names)]
    found = [module.EXPERIMENT for module in modules if hasattr(module, "EXPERIMENT")]
    found += [experiment for module in modules for experiment in getattr(module, "EXPERIMENTS", [])]
    return {experiment.id: experiment for experiment in found}


def published() -> dict[str, dict]:
    """What the paper printed: id -> title, columns, rows."""
    path = Path(__file__).parent / "published.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def printed(id: str) -> dict[str, dict[str, float]]:
    """What the paper printed, as row -> column -> number, NaN for an empty cell; nothing where it has no such table."""
    theirs = published().get(id, {"columns": [], "rows": {}})
    return {row: dict(zip(theirs["columns"], values, strict=True)) for row, values in theirs["rows"].items()}


def run(experiment: Experiment, setting: Setting, folder: Path) -> Result:
    """Measure what is not measured yet, saving row by row to `folder/MODEL/ID.json`.

    A row that cannot be measured here (a model without that adapter) is left out, with a sentence why.
    """
    model = experiment.model(setting.model)
    path = folder / model / f"{experiment.id}.json"
    result = Result(
        id=experiment.id,
        model=model,
        data=model if experiment.own_models else Path(setting.data.source).name,
        quick=setting.quick,
        seed=setting.seed,
        hardware=hardware(),
        versions=versions(),
        commit=commit(),
    )
    if path.is_file() and (earlier := Result.load(path)).is_of(result):
        result = earlier
    setting.folder = path.parent  # where a row keeps what it trains
    missing = [row for row in experiment.rows if row not in result.rows]
    for row in (bar := tqdm(missing, desc=experiment.id, unit=" rows", disable=not missing)):
        bar.set_postfix_str(row)
        start = time.perf_counter()
        try:
            result.rows[row] = experiment.rows[row](setting)
        except ModelUnavailable as error:
            tqdm.write(f"{experiment.id}, {row}: left out. {error}", file=sys.stderr)
            continue
        result.seconds[row] = round(time.perf_counter() - start, 1)
        result.save(path)
    if any(result.rows.values()):
        picture(experiment, result, path.with_suffix(".png"))
    return result


def picture(experiment: Experiment, result: Result, path: Path) -> None:
    """Write a result's picture, the paper's numbers in it where they stand in the same row and column."""
    rows = {row: result.rows[row] for row in experiment.rows if result.rows.get(row)}
    title = f"{experiment.id}: {experiment.title} ({result.model})"
    results_figure(rows, printed=printed(experiment.id), title=title).savefig(path, metadata={"Software": None})


def shipped(model: str, name: str) -> Result | None:
    """A result that comes with the project."""
    path = SHIPPED / model / f"{name}.json"
    return Result.load(path) if path.is_file() else None


def table(experiment: Experiment, result: Result) -> str:
    """Ours, each with its 95 % interval, and under them what the paper printed, as a Markdown table."""
    columns = list(dict.fromkeys(column for row in result.rows.values() for column in row))
    theirs = printed(experiment.id)
    columns = list(dict.fromkeys([*columns, *(column for row in theirs.values() for column in row)]))
    lines = [["", *columns], ["---", *["---:"] * len(columns)]]
    for row in dict.fromkeys([*experiment.rows, *result.rows]):  # people's agreement is a row that nothing measures
        if row in result.rows:
            lines.append([row, *(_cell(result.rows[row].get(column)) for column in columns)])
    for row, numbers in theirs.items():
        cells = [numbers.get(column, math.nan) for column in columns]
        lines.append([f"*paper: {row}*", *("" if math.isnan(cell) else f"*{cell:.4g}*" for cell in cells)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def claims(experiment: Experiment, result: Result) -> list[tuple[str, str]]:
    """Each of the paper's claims, and whether it holds here."""
    words = {True: "held", False: "not held", None: "not measurable here"}

    def holds(claim: Claim) -> bool | None:
        try:
            return claim.holds(result.rows)
        except (LookupError, ArithmeticError):  # a result that was stopped half-way lacks figures that the claim reads
            return None

    return [(claim.text, words[holds(claim)]) for claim in experiment.claims]


def report(experiment: Experiment, result: Result) -> str:
    """Title, table and claims."""
    where = "Small models of its own" if experiment.own_models else f"{result.model} on {result.data}"
    size = ", few examples" if result.quick else ""
    lines = [
        f"## {experiment.id}: {experiment.title}",
        "",
        f"{where}{size}, 95 % intervals.",
        "",
    ]
    lines += [table(experiment, result), ""]
    lines += [f"- {text}: **{verdict}**" for text, verdict in claims(experiment, result)]
    printed = published().get(experiment.id, {}).get("texts", {})
    lines += side_by_side(result.rows, printed, experiment.shown)
    return "\n".join(lines) + "\n"


def _cell(figure) -> str:
    if figure is None:
        return ""
    return f"{figure.value:.4g} ({figure.low:.3g} to {figure.high:.3g})"
