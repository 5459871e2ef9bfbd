"""Pictures of masks, tokens and vectors: pure functions to a matplotlib `Figure`, each with a twin in plain text."""

import importlib

# Loaded on first use: the colours alone are wanted by pages that open before matplotlib is there.
_FUNCTIONS = {
    "attention_figure": "learned_attention",
    "attention_text": "learned_attention",
    "attention_row_figure": "learned_attention",
    "attention_row_text": "learned_attention",
    "map_figure": "embeddings",
    "map_text": "embeddings",
    "similarity_figure": "embeddings",
    "similarity_text": "embeddings",
    "mask_figure": "masks",
    "mask_text": "masks",
    "alignment_figure": "distributions",
    "alignment_text": "distributions",
    "lengths_figure": "distributions",
    "lengths_text": "distributions",
    "span_lengths": "distributions",
    "losses_figure": "curves",
    "losses_text": "curves",
    "infilling_figure": "infilling",
    "infilling_text": "infilling",
    "mixing_figure": "mixing",
    "mixing_text": "mixing",
    "four_modes": "modes",
    "links_figure": "modes",
    "links_text": "modes",
    "modes_figure": "modes",
    "modes_text": "modes",
    "objectives_figure": "objectives",
    "objectives_text": "objectives",
    "example": "overview",
    "overview_figure": "overview",
    "overview_text": "overview",
    "likeliest": "probabilities",
    "likelihood_figure": "probabilities",
    "likelihood_text": "probabilities",
    "predictions_figure": "probabilities",
    "predictions_text": "probabilities",
    "step_figure": "stepping",
    "step_text": "stepping",
    "results_figure": "results",
    "results_text": "results",
    "show": "picture",
    "ranges": "tokens",
    "strip_text": "tokens",
    "token_texts": "tokens",
    "contrast_figure": "views",
    "contrast_text": "views",
    "views_figure": "views",
    "views_text": "views",
    "visible": "tokens",
}

__all__ = [*_FUNCTIONS]


def __getattr__(name: str):
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(f"magnet_lab.viz.{_FUNCTIONS[name]}"), name)
    raise AttributeError(f"module 'magnet_lab.viz' has no attribute {name!r}")
