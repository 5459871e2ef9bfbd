"""What a run leaves: a plain PEFT adapter, or a model, with all that is needed to make it again and to know it."""

import copy
import dataclasses
import json
from importlib.metadata import version
from pathlib import Path

import torch

from magnet_lab.training.recipe import Recipe

OBJECTIVES = ("mntp", "msg", "mtp", "sscl")


def save_adapter(out: Path, recipe: Recipe, adapter) -> None:
    """The result: a plain PEFT adapter in bfloat16, and how it was made."""
    state = {
        name: parameter.detach().to(torch.bfloat16)
        for name, parameter in adapter.state_dict().items()
        if "lora_" in name
    }
    adapter.peft_config["default"].base_model_name_or_path = recipe.model
    adapter.save_pretrained(out, state_dict=state, save_embedding_layers=False)
    _describe(out, recipe)
    (out / "adapter_model.safetensors").chmod(0o644)  # safetensors writes for the owner alone


def save_model(out: Path, recipe: Recipe, model) -> None:
    """The result where every weight was trained: the model in bfloat16, and how it was made."""
    copy.deepcopy(model).to(torch.bfloat16).save_pretrained(out)
    _describe(out, recipe)
    (out / "model.safetensors").chmod(0o644)


def _describe(out: Path, recipe: Recipe) -> None:
    """How a result was made: the recipe and versions for programs, a model card in place of PEFT's empty one."""
    packages = ("torch", "transformers", "peft", "magnet-lab")
    versions = {package: version(package) for package in packages}
    made = {"recipe": dataclasses.asdict(recipe), "versions": versions}
    (out / "magnet_config.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    (out / "README.md").write_text(_card(recipe, versions, _last_losses(out)), encoding="utf-8")


def _last_losses(out: Path, steps: int = 50) -> dict[str, float]:
    """Means over the last steps that a run has logged, by objective (nats)."""
    logs = [path for path in (out / "log.jsonl", out.parent / "log.jsonl") if path.is_file()]
    lines = [json.loads(line) for path in logs[:1] for line in path.read_text(encoding="utf-8").splitlines()[-steps:]]
    found = {name: [line[name] for line in lines if name in line] for name in OBJECTIVES}
    return {name: sum(values) / len(values) for name, values in found.items() if values}


def _card(recipe: Recipe, versions: dict[str, str], losses: dict[str, float]) -> str:
    """What this is, what it was made from and how, what came of it, how it is used."""
    phases = "\n".join(
        f"| {phase.steps} | {phase.mntp:g} | {phase.sscl:g} | {phase.msg:g} | {phase.mtp:g} |"
        for phase in recipe.phases
    )
    lora, contrast, optimizer = recipe.lora, recipe.contrast, recipe.optimizer
    kind = f"LoRA (r = {lora.r}, alpha = {lora.alpha}) for {recipe.model}" if lora else "every weight trained"
    pairs_line = ""
    if contrast is not None:
        source = ", ".join(Path(path).name for path in contrast.paths) or "the same texts"
        pairs_line = (
            f"Contrastive pairs: {contrast.positives} from {source}, {contrast.batch} a step, temperature "
            f"{contrast.temperature:g}, {contrast.pooling} token.\n\n".replace("mean token", "mean pooling")
        )
    use = (
        f'lab = ml.Magnet.from_pretrained({recipe.model!r}, adapter="FOLDER")\n'
        'lab.infill("Tom had a red ball. [blank] He was very sad.")'
        if lora
        else 'lab = ml.Magnet.from_pretrained("FOLDER", adapter=None)\nlab.generate("Once upon a time")'
    )
    return (
        ("---\nlibrary_name: peft\ntags: [magnet, lora, infilling, sentence-embeddings]\n---\n" if lora else "")
        + f"# {kind}\n\nTrained by magnet_lab on {', '.join(Path(path).name for path in recipe.corpus.paths)}: "
        f"{recipe.steps} steps of {recipe.batch} rows of up to {recipe.length} tokens, learning rate {optimizer.lr:g} "
        f"({optimizer.schedule}, {optimizer.warmup} steps of warm-up).\n\n"
        f"| steps | MNTP | SSCL | MSG | MTP |\n| --- | --- | --- | --- | --- |\n{phases}\n\n{pairs_line}"
        + "Losses, mean of the last steps (nats): "
        + ", ".join(f"{name} {loss:.3f}" for name, loss in losses.items())
        + ".\n\nThe whole recipe is in `magnet_config.json`. Made with "
        + ", ".join(f"{name} {number}" for name, number in versions.items())
        + f".\n\n```python\nimport magnet_lab as ml\n\n{use}\n```\n"
    )
