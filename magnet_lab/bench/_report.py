"""What every measurement does: time things side by side, say where, print a table and write it as JSON."""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import torch

from magnet_lab import Magnet


def parser(description: str) -> argparse.ArgumentParser:
    """The options that all measurements have."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--model", default="small")
    options.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    options.add_argument("--repeats", type=int, default=3, help="how often each thing is timed; the median counts")
    options.add_argument("--json", type=Path, help="write the result to this file as well")
    return options


def load(options: argparse.Namespace) -> Magnet:
    """The base model: an adapter adds the same work to both sides of a ratio."""
    return Magnet.from_pretrained(options.model, adapter=None, dtype=getattr(torch, options.dtype))


def side_by_side(repeats: int, **tasks: Callable[[], object]) -> dict[str, float]:
    """Median seconds of each task. Their turns alternate, so that a busy machine slows all of them alike."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()  # the first call of anything is slower
    for _ in range(repeats):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def hardware() -> str:
    """The processor (and GPU) that a figure was taken on."""
    cpu = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        cpu = names[0] if names else cpu
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return f"{os.cpu_count()} cores of {cpu}{gpu}"


def publish(name: str, options: argparse.Namespace, figures: dict) -> None:
    """Print the figures, one a line, and write them where `--json` says."""
    result = {
        "measurement": name,
        "model": options.model,
        "dtype": options.dtype,
        "hardware": hardware(),
        "versions": {package: version(package) for package in ("torch", "transformers", "magnet-lab")},
        **figures,
    }
    for key, value in result.items():
        print(f"{key:>24}: {value:.3g}" if isinstance(value, float) else f"{key:>24}: {value}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
