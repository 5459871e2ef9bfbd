"""magnet_lab: one decoder-only language model that generates, encodes and infills.

All that changes between the three is who may look at whom: see `magnet_lab.attention`.
"""

import importlib

__version__ = "0.1.0"

# Loaded on first use, so that `import magnet_lab` stays quick: attribute -> module that holds it.
_ATTRIBUTES = {"Magnet": "magnet_lab.model"}
_MODULES = (
    "attention",
    "blanks",
    "course",
    "decoder",
    "encoding",
    "infilling",
    "objectives",
    "scoring",
    "spans",
    "views",
    "viz",
    "widgets",
    "zoo",
)

__all__ = [*_ATTRIBUTES, *_MODULES, "__version__"]


def __getattr__(name: str):
    if name in _ATTRIBUTES:
        return getattr(importlib.import_module(_ATTRIBUTES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"magnet_lab.{name}")
    raise AttributeError(f"module 'magnet_lab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
