"""The first cell of every notebook: quiet libraries, a seed, and the model."""

import warnings

import torch
from transformers.utils import logging

from magnet_lab.model import Magnet, best_device


def start(model: str | None = "tiny", *, adapter: str | None = "magnet") -> Magnet | None:
    """Make a notebook's setting the same for everybody, and load its model.

    On a CPU in float32, in which every processor finds the same answers.

    Args:
        model: "tiny", "small", "llama-2-7b", or any that `Magnet.from_pretrained` takes; None where none is needed.

    Returns:
        The model; what it is, is printed as well.
    """
    warnings.filterwarnings("ignore", category=FutureWarning)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.manual_seed(0)
    if model is None:
        return None
    dtype = torch.float32 if best_device().type == "cpu" else None
    lab = Magnet.from_pretrained(model, adapter=adapter, dtype=dtype)
    print(lab)
    return lab
