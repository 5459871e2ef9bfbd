"""Pictures of masks, tokens and vectors: pure functions to a matplotlib `Figure`, each with a twin in plain text."""

import importlib

# Loaded on first use: the colours alone are wanted by pages that open before matplotlib is there.
_FUNCTIONS = {
    "map_figure": "embeddings",
    "map_text": "embeddings",
    "similarity_figure": "embeddings",
    "similarity_text": "embeddings",
    "mask_figure": "masks",
    "mask_text": "masks",
    "ranges": "tokens",
    "strip_text": "tokens",
    "token_texts": "tokens",
    "visible": "tokens",
}

__all__ = [*_FUNCTIONS]


def __getattr__(name: str):
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(f"magnet_lab.viz.{_FUNCTIONS[name]}"), name)
    raise AttributeError(f"module 'magnet_lab.viz' has no attribute {name!r}")
