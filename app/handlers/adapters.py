"""The adapters that a model comes with: each is put on its weights once, for all visitors."""

import threading
import weakref
from typing import TYPE_CHECKING

import magnet_lab as ml

if TYPE_CHECKING:
    from magnet_lab.model import Magnet

BASE = "base"
NAMES = {BASE: "base model", "magnet": "MAGNET", "llm2vec": "LLM2Vec", "mntp": "LLM2Vec [MNTP]"}  # as pages write them

_made: "weakref.WeakKeyDictionary[Magnet, dict[str, Magnet]]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def available(model: str) -> list[str]:
    """What a model can be asked with, by its name alone: the base model and the adapters that it comes with."""
    return [BASE, *ml.zoo.adapters(model)]


def use(lab: "Magnet", adapter: str) -> "Magnet":
    """The model with another adapter on the same weights, or without one.

    Raises:
        ValueError: if the model comes without it.
    """
    if adapter not in available(lab.name):
        raise ValueError(f"{lab.name} comes without {adapter!r}; choose one of {', '.join(available(lab.name))}")
    with _lock:
        made = _made.setdefault(lab, {})
        if adapter not in made:
            made[adapter] = lab.use(None if adapter == BASE else adapter)
        return made[adapter]
