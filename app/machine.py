"""Whether this machine has the memory for a model: asked before one is loaded, as it may stop answering otherwise."""

import os
from pathlib import Path

USE = 0.9  # the share of the free memory that a model may take
ON_DISK = 1.2  # memory at work, in sizes of the weights


def check_fits(name: str) -> None:
    """Raise a ValueError, with both figures, if a model is too large for the memory that is free now."""
    import torch

    from magnet_lab.model import best_device, best_dtype

    device = best_device()
    needed, free = needed_gb(name, best_dtype(device)), free_gb(device)
    if needed is None or free is None or needed <= USE * free:
        return
    where = torch.cuda.get_device_name() if device.type == "cuda" else "this machine"
    raise ValueError(
        f"It needs about {needed:.3g} GB of memory and {where} has {free:.3g} GB free: choose a smaller model, or a "
        "larger machine."
    )


def needed_gb(name: str, dtype) -> float | None:
    """What a model needs at work in GB: as its card says, else by its weights on the disk; None if that is not known.

    Weights are counted as if they lay in 16 bits, as nearly all do.
    """
    from magnet_lab import zoo

    if name in zoo.MODELS:
        return zoo.MODELS[name].memory_gb
    if (folder := zoo.find(name)) is None:
        return None
    stored = sum(path.stat().st_size for path in Path(folder).glob("*.safetensors"))
    return stored * (dtype.itemsize / 2) * ON_DISK / 1e9


def free_gb(device) -> float | None:
    """Free memory in GB: the accelerator's, else the machine's; None where that cannot be told."""
    import torch

    if device.type == "cuda":
        return torch.cuda.mem_get_info()[0] / 1e9
    try:  # Linux: what can be had without swapping
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) * 1024 / 1e9
    except (OSError, StopIteration, ValueError):
        pass
    try:  # elsewhere: all there is
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (AttributeError, OSError, ValueError):
        return None
