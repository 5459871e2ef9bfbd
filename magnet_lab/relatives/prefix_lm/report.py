"""What becomes of measured figures: intervals over seeds, lines to read, a file."""

import json
import statistics
from importlib.metadata import version
from pathlib import Path

from scipy.stats import t

from magnet_lab.bench._report import hardware


def over_seeds(values: list[float]) -> dict[str, float | int | None]:
    """Mean over seeds and its 95 % interval (Student's t); one seed alone has none.

    The interval is of the mean over trainings, not over texts: the texts are the same for all seeds.
    """
    mean, count = statistics.fmean(values), len(values)
    if count < 2:
        return {"mean": mean, "low": None, "high": None, "seeds": count}
    half = float(t.ppf(0.975, count - 1)) * statistics.stdev(values) / count**0.5
    return {"mean": mean, "low": mean - half, "high": mean + half, "seeds": count}


def lines(figures: dict, path: tuple[str, ...] = ()) -> list[str]:
    """Nested figures as lines of text, an interval in brackets after its mean."""
    made = []
    for name, value in figures.items():
        here = (*path, str(name))
        if isinstance(value, dict) and "mean" in value:
            interval = "" if value["low"] is None else f"  [{value['low']:.4g}, {value['high']:.4g}]"
            made.append(f"{' · '.join(here)}: {value['mean']:.4g}{interval}")
        elif isinstance(value, dict):
            made += lines(value, here)
        else:
            made.append(f"{' · '.join(here)}: {f'{value:.4g}' if isinstance(value, float) else value}")
    return made


def save(path: Path, name: str, figures: dict) -> None:
    """Write the figures with what they were made on."""
    versions = {package: version(package) for package in ("torch", "transformers", "magnet-lab")}
    result = {"measurement": name, "hardware": hardware(), "versions": versions, "figures": figures}
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
