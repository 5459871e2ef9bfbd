"""Checkpoints: whole or not there at all, so that a run killed at any moment goes on from the last one.

A checkpoint is a folder `checkpoint-000100` that is written under another name and renamed when all of it is on the
disk. It holds tensors (safetensors) and a JSON file. The place in the data and all random numbers follow from the
number of the step, so they need not be kept.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from magnet_lab.training.recipe import parse


class CheckpointError(RuntimeError):
    """A checkpoint could not be written or does not belong to this run; the message says what to do."""


def check_writable(folder: Path) -> None:
    """Make the folder of a run, and see that files can be written in it: before hours of training, not after them.

    Raises:
        CheckpointError: if not.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CheckpointError(f"nothing can be written to {folder}: {error.strerror}. Choose another --out") from None


def save(folder: Path, step: int, recipe: str, parameters: dict[str, nn.Parameter], optimizer) -> Path:
    """Write the state after `step` steps, and then delete the older checkpoint.

    Raises:
        CheckpointError: if it cannot be written; earlier checkpoints are as they were.
    """
    tensors = {f"parameter.{name}": parameter.detach() for name, parameter in parameters.items()}
    for name, parameter in parameters.items():
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer.{key}.{name}"] = torch.as_tensor(value)
    target, temporary = folder / f"checkpoint-{step:06d}", folder / f".checkpoint-{step:06d}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        save_file(
            {name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, temporary / "state.safetensors"
        )
        (temporary / "state.json").write_text(json.dumps({"step": step, "recipe": recipe}), encoding="utf-8")
        for path in temporary.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        shutil.rmtree(target, ignore_errors=True)
        temporary.rename(target)
    except Exception as error:  # safetensors has an exception of its own for a full disk
        shutil.rmtree(temporary, ignore_errors=True)
        kept = latest(folder)
        raise CheckpointError(
            f"the checkpoint after step {step} could not be written to {folder}: {error}. "
            + (f"{kept.name} is intact: make room or choose another folder, then" if kept else "Make room, then")
            + " start the same command again."
        ) from error
    for older in checkpoints(folder):
        if older != target:
            shutil.rmtree(older, ignore_errors=True)
    return target


def restore(checkpoint: Path, recipe: str, parameters: dict[str, nn.Parameter], optimizer) -> int:
    """Put a saved state back; the number of steps that it stands after.

    Raises:
        CheckpointError: if it is of a run by another recipe.
    """
    state = json.loads((checkpoint / "state.json").read_text(encoding="utf-8"))
    if parse(state["recipe"]) != parse(recipe):  # as values: a later version may know of more settings
        raise CheckpointError(
            f"{checkpoint.parent} holds a run by another recipe; choose another folder, or delete it to start anew"
        )
    tensors = load_file(checkpoint / "state.safetensors")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(tensors[f"parameter.{name}"])
            optimizer.state[parameter] = _optimizer_state(tensors, name, parameter)
    return state["step"]


def latest(folder: Path) -> Path | None:
    """The newest checkpoint in a folder, if there is one."""
    return max(checkpoints(folder), default=None)


def checkpoints(folder: Path) -> list[Path]:
    return [path for path in folder.glob("checkpoint-*") if (path / "state.json").is_file()]


def _optimizer_state(tensors: dict[str, Tensor], name: str, parameter: nn.Parameter) -> dict[str, Tensor]:
    keys = ("step", "exp_avg", "exp_avg_sq")
    state = {key: tensors[f"optimizer.{key}.{name}"] for key in keys if f"optimizer.{key}.{name}" in tensors}
    # AdamW counts its steps on the CPU, wherever the parameter is.
    return {key: value if key == "step" else value.to(parameter.device) for key, value in state.items()}
