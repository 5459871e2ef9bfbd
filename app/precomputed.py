"""Answers to the pages' own examples, kept as data: a page shows them before its model is there.

    python -m magnet_lab.app.precomputed tiny small

makes them anew, one file a model in `app/precomputed/`. In float32 and without drawing by chance, so that they come out
the same.
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .handlers import embeddings, infill, start

if TYPE_CHECKING:
    from magnet_lab.model import Magnet

FOLDER = Path(__file__).parent / "precomputed"
OTHERWISE = "small"  # whose answers are shown for a model that has none


@dataclass(frozen=True)
class Fillings:
    """A story as every system of a model fills it."""

    model: str
    fillings: list[infill.Filling]


@dataclass(frozen=True)
class Similarities:
    """Sentences as every system of a model sees them: `{system: cosine similarities}`."""

    model: str
    similarities: dict[str, list[list[float]]]


def outcomes(model: str) -> tuple[str, list[start.Outcome]] | None:
    """The first page's sentence in three modes, and by which model."""
    name, kept = _kept(model)
    return (name, [start.Outcome(**outcome) for outcome in kept["start"]]) if kept else None


def fillings(model: str) -> Fillings | None:
    """`infill.STORY` as every system fills it."""
    name, kept = _kept(model)
    return Fillings(name, [infill.Filling(**filling) for filling in kept["infill"]]) if kept else None


def similarities(model: str) -> Similarities | None:
    """How alike `embeddings.SENTENCES` are to every system."""
    name, kept = _kept(model)
    return Similarities(name, kept["embeddings"]) if kept else None


def compute(lab: "Magnet") -> dict:
    """All of the above by one model, as JSON has it."""
    *_, outcomes = start.answer(lab, start.SENTENCE, start.MISSING)
    *_, filled = infill.fill_by_each(lab, infill.STORY, infill.systems(lab.name))
    alike = {}
    for system in embeddings.systems(lab.name):
        vectors = embeddings.encode(lab, system, embeddings.SENTENCES)
        alike[system] = [[round(value, 5) for value in row] for row in lab.similarity(vectors, vectors).tolist()]
    return {
        "start": [asdict(outcome) for outcome in outcomes],
        "infill": [
            asdict(one) | {"shades": [[text, p if p is None else round(p, 4)] for text, p in one.shades]}
            for one in filled
        ],
        "embeddings": alike,
    }


def _kept(model: str) -> tuple[str, dict | None]:
    for name in (model, OTHERWISE):
        file = FOLDER / f"{Path(name).name}.json"
        if file.is_file():
            return name, json.loads(file.read_text(encoding="utf-8"))
    return model, None


def main(models: list[str]) -> None:
    import torch

    from magnet_lab.model import Magnet

    for model in models:
        lab = Magnet.from_pretrained(model, device="cpu", dtype=torch.float32)
        FOLDER.mkdir(exist_ok=True)
        written = json.dumps(compute(lab), ensure_ascii=False)
        (FOLDER / f"{model}.json").write_text(f"{written}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or ["tiny", "small"])
