"""What was measured: the project's results and the user's own, the paper's numbers beside, and which claims hold."""

import functools
import json
import math
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from magnet_lab.evaluation.experiment import Experiment, Result

FOLDER = "MAGNET_LAB_RESULTS"  # in the environment
ADAPTERS = "adapters"  # a measurement of ours, that has neither claims nor rows of the paper's
HELD, NOT_HELD, NOT_MEASURABLE, NOT_MEASURED = "held", "not held", "not measurable here", "not measured"
MARKS = {HELD: "✓", NOT_HELD: "✗", NOT_MEASURABLE: "?", NOT_MEASURED: "·"}  # words stand beside


@dataclass(frozen=True)
class Line:
    """A row of a table: its cells as text, the first one its name; `is_papers` where the paper printed them."""

    cells: list[str]
    is_papers: bool = False


@dataclass(frozen=True)
class Overview:
    """Which claims hold: a sentence for each model, and a table of claims by model."""

    sentences: list[str]
    columns: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)


@dataclass(frozen=True)
class ResultView:
    """One table or figure as one model was measured; without a result only what would measure it.

    Attributes:
        claims: what the paper says, and one of the verdicts.
        facts: where, how long and from what it was measured: name, value.
        command: that measures it again.
        written: examples of what was written, as Markdown.
        file: the result as it is kept, and under which name to download it.
    """

    title: str
    columns: list[str]
    lines: list[Line]
    claims: list[tuple[str, str]]
    facts: list[tuple[str, str]]
    command: str
    figure: "Figure | None" = None
    text: str = ""
    written: str = ""
    file: bytes | None = None
    file_name: str = ""


def own_folder() -> Path:
    """Where `magnet-lab reproduce` puts the user's own results: `MAGNET_LAB_RESULTS`, else `results` where we are."""
    return Path(os.environ.get(FOLDER) or "results").expanduser()


_importing = threading.Lock()


def known() -> "dict[str, Experiment]":
    """Every experiment, by id."""
    with _importing:  # the first one waits some seconds for a dozen modules; the others wait for the first one
        return _known()


@functools.cache
def _known() -> "dict[str, Experiment]":
    from magnet_lab.evaluation import reproduce

    found = reproduce.experiments()
    # The paper's own, in its order of numbers, stand before what goes beyond it.
    return dict(sorted(found.items(), key=lambda entry: _place(entry[0])))


def _place(id: str) -> tuple:
    kinds = ["table", "figure", "app"]
    kind = next((number for number, kind in enumerate(kinds) if id.startswith(kind)), len(kinds))
    digits = "".join(filter(str.isdigit, id))
    return (kind, int(digits) if kind < len(kinds) and digits else 0, id)


def models(own: str) -> list[str]:
    """The models that anything was measured of, the one that is in use, and the small ones of the relatives' own."""
    from magnet_lab.evaluation.experiment import OWN_MODELS, SHIPPED

    folders = [folder for place in (SHIPPED, own_folder()) if place.is_dir() for folder in place.iterdir()]
    measured = {folder.name for folder in folders if folder.is_dir() and any(folder.glob("*.json"))}
    first = ["tiny", "small", Path(own).name]
    return list(dict.fromkeys([*first, *sorted(measured - {OWN_MODELS}), OWN_MODELS]))


def _of(model: str) -> "dict[str, Experiment]":
    """What can be measured of a model: the relatives have models of their own, of which nothing else is measured."""
    from magnet_lab.evaluation.experiment import OWN_MODELS

    return {id: each for id, each in known().items() if each.own_models == (model == OWN_MODELS)}


def own_or_measured(own: str) -> str:
    """The model to begin with: the one in use if anything was measured of it, else the first one that has results."""
    own = Path(own).name
    measured = [name for name in models(own) if any(_path(name, id) for id in (ADAPTERS, *known()))]
    return own if own in measured or not measured else measured[0]


def check_model(own: str, model: str) -> None:
    """Raise a ValueError if it is none of `models`: a name becomes a part of a path."""
    if model not in (there := models(own)):
        raise ValueError(f"there are no results of a model {model!r}; choose one of {', '.join(there)}")


def tables(own: str, model: str) -> list[tuple[str, str]]:
    """What can be looked at: a title that says whether it was measured of this model, and its id."""
    check_model(own, model)
    titles = [(id, experiment.title) for id, experiment in _of(model).items()]
    found = [(f"{name_of(id)} · {title}{_unless(_path(model, id))}", id) for id, title in titles]
    if _path(model, ADAPTERS):
        found.insert(0, ("What the adapters changed", ADAPTERS))
    return found


def _unless(path: Path | None) -> str:
    return "" if path else " (not measured)"


def name_of(id: str) -> str:
    """`table2` as people write it."""
    for kind, word in (("table", "Table"), ("figure", "Figure"), ("app", "Appendix")):
        if id.startswith(kind) and len(id) > len(kind) and (kind == "app" or id[len(kind) :].isdigit()):
            return f"{word} {id[len(kind) :]}"
    return id


def first_measured(own: str, model: str) -> str:
    """The table to begin with: one that was measured, if there is any."""
    ids = [id for _, id in tables(own, model)]
    return next((id for id in ids if _path(model, id)), ids[0])


def overview(own: str) -> Overview:
    """Every claim of the experiments that were measured of any model, and what came of it."""
    from magnet_lab.evaluation.overview import verdicts

    found: dict[str, dict[str, Result]] = {}  # model -> id -> result
    problems = []
    for model in models(own):
        for id in _of(model):
            try:
                result = _load(model, id)
            except ValueError as problem:
                problems.append(f"Left out: {problem}.")
                continue
            if result is not None:
                found.setdefault(model, {})[id] = result
    if not found:
        return Overview(
            [
                "None of the paper's tables and figures was measured here yet: below stands what the paper printed, "
                "and the command that measures each.",
                f"`magnet-lab reproduce all --model {Path(own).name} --quick` tries everything on a few examples.",
                *problems,
            ]
        )
    claims = list(verdicts(known(), found))
    sentences = [_counts(model, results, claims) for model, results in found.items()]
    lines = []
    for id, claim, by_model in claims:
        cells = [
            marked(by_model.get(model, NOT_MEASURED))
            + (" (few examples)" if id in results and results[id].quick else "")
            for model, results in found.items()
        ]
        lines.append(Line([name_of(id), claim, *cells]))
    return Overview([*sentences, *problems], ["", "what is claimed", *found], lines)


def marked(verdict: str) -> str:
    """A verdict with a sign before it, for the eye."""
    return f"{MARKS[verdict]} {verdict}"


def _counts(model: str, results: "dict[str, Result]", claims: list[tuple[str, str, dict[str, str]]]) -> str:
    verdicts = [by_model[model] for _, _, by_model in claims if model in by_model]
    counts = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in (HELD, NOT_HELD, NOT_MEASURABLE))
    share = f"{len(results)} of {len(_of(model))} tables and figures measured"
    return f"{model}: {share}; of their {len(verdicts)} claims {counts}."


def show(own: str, model: str, id: str) -> ResultView:
    """One table or figure of one model."""
    check_model(own, model)
    if id == ADAPTERS and (path := _path(model, ADAPTERS)):
        return _adapters(model, path)
    if id not in known():
        raise ValueError(f"there is no table {id!r}; choose one of {', '.join(known())}")
    experiment = known()[id]
    model = experiment.model(model)
    result = _load(model, id)
    title = f"{name_of(id)}: {experiment.title}"
    command = f"magnet-lab reproduce {id}" + ("" if experiment.own_models else f" --model {model}")
    if result is None:
        columns, lines = _papers(id)
        claims = [(claim.text, NOT_MEASURED) for claim in experiment.claims]
        return ResultView(f"{title}: not measured with {model} yet", columns, lines, claims, [], command)

    from magnet_lab.evaluation import reproduce

    columns, lines = _read_markdown(reproduce.table(experiment, result))
    return ResultView(
        title,
        columns,
        _side_by_side(lines),
        reproduce.claims(experiment, result),
        _facts(model, result),
        f"{command}{_options(experiment, result)}",
        *_picture(id, result, title),
        _written(id, experiment, result),
        _path(model, id).read_bytes(),
        f"{model}-{id}.json",
    )


def _path(model: str, id: str) -> Path | None:
    """Where a result lies, the user's own before the project's. Both names are known ones when this is called."""
    from magnet_lab.evaluation.experiment import SHIPPED

    places = (folder / model / f"{id}.json" for folder in (own_folder(), SHIPPED))
    return next((path for path in places if path.is_file()), None)


def _load(model: str, id: str) -> "Result | None":
    from magnet_lab.evaluation.experiment import Result

    if (path := _path(model, id)) is None:
        return None
    try:
        result = Result.load(path)
    except OSError as problem:
        raise ValueError(f"{path} cannot be read: {problem}") from problem
    if result.id != id:
        raise ValueError(f"{path} is a result of {result.id!r}, not of {id}; give it back its name")
    return result


def _papers(id: str) -> tuple[list[str], list[Line]]:
    from magnet_lab.evaluation import reproduce

    lines = [
        Line([f"paper: {row}", *("" if math.isnan(value) else f"{value:.4g}" for value in numbers.values())], True)
        for row, numbers in reproduce.printed(id).items()
    ]
    return (["", *reproduce.published()[id]["columns"]], lines) if lines else ([], [])


def _read_markdown(table: str) -> tuple[list[str], list[Line]]:
    """A table as the command line prints it: columns and rows; those of the paper stand in asterisks."""
    columns, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines())
    return columns, [Line([cell.strip("*") for cell in row], row[0].startswith("*paper")) for row in rows]


def _side_by_side(lines: Sequence[Line]) -> list[Line]:
    """The paper's row under ours of the same name; what it has beyond stands at the end."""
    papers = {line.cells[0].removeprefix("paper: "): line for line in lines if line.is_papers}
    ordered = []
    for line in lines:
        if not line.is_papers:
            ordered += [line, *filter(None, [papers.pop(line.cells[0], None)])]
    return ordered + list(papers.values())


def _facts(model: str, result: "Result") -> list[tuple[str, str]]:
    own = _path(model, result.id).is_relative_to(own_folder())
    return [
        ("model", result.model),
        ("data", f"{result.data}, few examples: only to see that it runs" if result.quick else result.data),
        ("intervals", "95 %, in brackets"),
        ("hardware", result.hardware),
        ("time", f"{sum(result.seconds.values()):,.0f} seconds in all"),
        ("commit", result.commit or "not known"),
        ("seed", str(result.seed)),
        ("versions", _versions(result.versions)),
        ("from", f"your own results in {own_folder()}" if own else "the results that come with magnet_lab"),
    ]


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{package} {version}" for package, version in versions.items())


def _options(experiment: "Experiment", result: "Result") -> str:
    data = "" if experiment.own_models else f" --data {result.data}"
    return f"{data} --seed {result.seed}{' --quick' if result.quick else ''}"


def _picture(id: str, result: "Result", title: str) -> "tuple[Figure | None, str]":
    from magnet_lab.evaluation import reproduce
    from magnet_lab.viz.results import results_figure, results_text

    if not any(result.rows.values()):
        return None, ""
    printed = reproduce.printed(id)
    return results_figure(result.rows, printed=printed, title=title), results_text(result.rows, printed=printed)


def _written(id: str, experiment: "Experiment", result: "Result") -> str:
    from magnet_lab.evaluation import reproduce
    from magnet_lab.evaluation.written import side_by_side

    printed = reproduce.published().get(id, {}).get("texts", {})
    return "\n".join(side_by_side(result.rows, printed, experiment.shown))


def _adapters(model: str, path: Path) -> ResultView:
    """What `magnet-lab bench adapters --json` wrote."""
    from magnet_lab.bench import adapters

    kept = json.loads(path.read_text(encoding="utf-8"))
    columns, lines = _read_markdown(adapters.table(kept["figures"]))
    limit, infills, prefixes = kept["limits"]
    sts = f" --sts {' '.join(kept['pairs'])}" if kept["pairs"] else ""
    return ResultView(
        f"What the adapters of {model} changed",
        columns,
        lines,
        [],
        [
            ("model", kept["model"]),
            ("data", ", ".join(kept["stories"] + kept["pairs"]) + ": none of the adapters was trained on it"),
            ("hardware", kept["hardware"]),
            ("versions", _versions(kept["versions"])),
        ],
        f"magnet-lab bench adapters --model {model} --limit {limit} --infills {infills} --prefixes {prefixes}{sts}",
        file=path.read_bytes(),
        file_name=f"{model}-{ADAPTERS}.json",
    )
