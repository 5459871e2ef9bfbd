"""Which claims hold, over all that was measured: a table of claims by model."""

from collections.abc import Iterator
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


def verdicts(
    known: dict[str, Experiment], found: dict[str, dict[str, Result]]
) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Every claim of what was measured of any model: id, claim, and what came of it by model, where it was measured."""
    for id, experiment in known.items():
        by_model = {
            model: reproduce.claims(experiment, results[id]) for model, results in found.items() if id in results
        }
        for number, claim in enumerate(experiment.claims if by_model else []):
            yield id, claim.text, {model: claims[number][1] for model, claims in by_model.items()}


def table(known: dict[str, Experiment], found: dict[str, dict[str, Result]]) -> str:
    """Every claim of what was measured of any model, and what came of it, as a Markdown table."""
    lines = [["", "claim", *found], ["---"] * (2 + len(found))]
    for id, claim, by_model in verdicts(known, found):
        lines.append([id, claim, *(by_model.get(model, NOT_MEASURED) for model in found)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
