"""Which claims hold, over all that was measured: a table of claims by model."""

from pathlib import Path

from magnet_lab.evaluation import reproduce
from magnet_lab.evaluation.experiment import OWN_MODELS, Experiment, Result

NOT_MEASURED = ""


def measured(known: dict[str, Experiment], *folders: Path) -> dict[str, dict[str, Result]]:
    """Model -> id -> result, for the experiments that are `known`; of two results that of the first folder."""
    found: dict[str, dict[str, Result]] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("*/*.json"))):
        experiment = known.get(path.stem)
        # The relatives' experiments have models of their own, of which nothing else is measured.
        if experiment is not None and experiment.own_models == (path.parent.name == OWN_MODELS):
            found.setdefault(path.parent.name, {}).setdefault(path.stem, Result.load(path))
    return found


def table(known: dict[str, Experiment], found: dict[str, dict[str, Result]]) -> str:
    """Every claim of what was measured of any model, and what came of it, as a Markdown table."""
    verdicts = {
        (model, id): [verdict for _, verdict in reproduce.claims(known[id], result)]
        for model, results in found.items()
        for id, result in results.items()
    }
    lines = [["", "claim", *found], ["---"] * (2 + len(found))]
    for id, experiment in known.items():
        if not any(id in results for results in found.values()):
            continue
        for number, claim in enumerate(experiment.claims):
            cells = [verdicts[model, id][number] if (model, id) in verdicts else NOT_MEASURED for model in found]
            lines.append([id, claim.text, *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
