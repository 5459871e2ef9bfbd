"""Pictures with controls: a picture first, and sliders under it where a person sits in front of the notebook.

Every widget is a pure function of its controls to a picture, so the one that a notebook shows without a kernel, or
saves, is the widget at its first values. Only controls of ipywidgets itself are used; Colab and VS Code bring them
along.

    from magnet_lab import widgets
    widgets.mask_explorer(["John", " was", " lifting", " there", "."])
"""

from magnet_lab.widgets.controls import explore
from magnet_lab.widgets.explorers import (
    embedding_map,
    infill_playground,
    loss_mixer,
    mask_explorer,
    objective_stepper,
)
from magnet_lab.widgets.live import live_training

__all__ = [
    "embedding_map",
    "explore",
    "infill_playground",
    "live_training",
    "loss_mixer",
    "mask_explorer",
    "objective_stepper",
]
