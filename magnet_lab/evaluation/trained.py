"""Adapters that an experiment trains for itself: by the project's recipes, once, in the folder of the results.

Rows of several experiments may want the same training. Its folder is named after all that it depends on, so it is run
by the first that asks and found by the others; one that was stopped goes on from its last checkpoint.
"""

import dataclasses
import hashlib
import json
import shutil
from pathlib import Path

from tqdm import tqdm

from magnet_lab import zoo
from magnet_lab.evaluation.experiment import Setting
from magnet_lab.training import checkpoint
from magnet_lab.training.loop import Trainer
from magnet_lab.training.recipe import Phase, Recipe, dump, load, names
from magnet_lab.training.result import save_adapter

TINY_SHARE = 1 / 15  # of a recipe's steps for `tiny`: enough to see a direction, in minutes on a laptop
TINY_BATCH, TINY_PAIRS, TINY_LENGTH = 8, 16, 96


def recipe_for(setting: Setting, name: str) -> Recipe:
    """A recipe of the project as it is for the setting's model.

    `tiny` takes a fifteenth of the steps, on 8 rows and 16 pairs each; with `--quick` every model takes two steps a
    phase. A model that has no recipe of its own is trained like `small`.
    """
    model = Path(setting.model).name
    own = {"llama-2-7b": "paper"}.get(model, model)
    recipe = load(name, like=own if own in names() else "small")
    recipe = dataclasses.replace(recipe, model=setting.model, samples=[])
    if setting.data.source == "samples":  # nothing is fetched: the project's own stories and pairs
        own_texts = load("small")
        recipe = dataclasses.replace(recipe, corpus=own_texts.corpus, contrast=recipe.contrast and own_texts.contrast)
    if model == "tiny":
        recipe = dataclasses.replace(recipe, batch=TINY_BATCH, length=TINY_LENGTH)
        if recipe.contrast is not None:
            recipe.contrast = dataclasses.replace(recipe.contrast, batch=TINY_PAIRS)
        recipe = _shorter(recipe, TINY_SHARE)
    return _shorter(recipe, 0) if setting.quick else recipe


def with_phases(recipe: Recipe, phases: list[Phase]) -> Recipe:
    """The same run with other phases, and pairs only where they are wanted."""
    contrast = recipe.contrast if any(phase.sscl for phase in phases) else None
    return dataclasses.replace(recipe, phases=phases, contrast=contrast)


def seeds(setting: Setting) -> range:
    """Those of the trainings: three, or one with `--quick`."""
    return range(setting.seed, setting.seed + setting.some(3, 1))


def adapters(setting: Setting, name: str, recipe: Recipe, *, stops: int = 1) -> dict[int, Path]:
    """Train by a recipe.

    Args:
        name: what the folder's name begins with.
        stops: how many adapters are kept, evenly along the training; the last one is the result.

    Returns:
        Folders of PEFT adapters by the step that they stand after. Beside them, in `log.jsonl`, the losses.
    """
    places = [max(1, round(recipe.steps * stop / stops)) for stop in range(1, stops + 1)]
    out = setting.folder / "trained" / f"{name}-seed{recipe.seed}-{_key(setting, recipe)}"
    folders = {step: out / f"step-{step:06d}" for step in places}
    if all((folder / "adapter_config.json").is_file() for folder in folders.values()):
        return folders
    trainer = Trainer(recipe, out)
    done = trainer.resume()
    bar = tqdm(desc=f"{name}, seed {recipe.seed}", total=recipe.steps, initial=done, unit="step", leave=False)
    with bar:
        for step, _ in enumerate(trainer.steps(done), start=done + 1):
            bar.update()
            if step in folders:
                save_adapter(folders[step], recipe, trainer.trained)
                trainer.save(step)  # so that what goes on from here does not make this adapter again
    shutil.rmtree(checkpoint.latest(out))  # the optimizer's state is of no more use, and larger than the adapter
    return folders


def losses(folder: Path, name: str) -> dict[int, float]:
    """What a training has logged of one objective: step -> loss (nats); `folder` is one of those of `adapters`."""
    lines = (folder.parent / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return {line["step"]: line[name] for line in map(json.loads, lines)}


def _shorter(recipe: Recipe, share: float) -> Recipe:
    """The same recipe with a share of its steps, two a phase at least."""
    phases = [dataclasses.replace(phase, steps=max(2, round(phase.steps * share))) for phase in recipe.phases]
    optimizer = dataclasses.replace(recipe.optimizer, warmup=round(recipe.optimizer.warmup * share))
    return dataclasses.replace(recipe, phases=phases, optimizer=optimizer)


def _key(setting: Setting, recipe: Recipe) -> str:
    """Of the recipe and the base weights: another `tiny` must not find the adapters of this one."""
    folder = zoo.find(setting.model)
    weights = sorted((path.name, path.stat().st_mtime_ns) for path in folder.glob("*.safetensors")) if folder else []
    return hashlib.sha256(f"{dump(recipe)}{weights}".encode()).hexdigest()[:8]
