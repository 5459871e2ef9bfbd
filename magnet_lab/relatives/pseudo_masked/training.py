"""Gradient steps, for pre-training and fine-tuning alike."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from magnet_lab.training.loop import course
from magnet_lab.training.recipe import Optimizer


def train(model: nn.Module, loss: Callable[[int], Tensor], steps: int, settings: Optimizer) -> float:
    """Lower `loss(step)`, steps counted from 0; returns its mean over the last tenth of them.

    The weight decay leaves out vectors (norms and biases), as is usual.
    """
    decayed = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
    others = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}],
        betas=tuple(settings.betas),
        eps=settings.eps,
    )
    values = []
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = settings.lr * course(step, steps, settings)
        value = loss(step)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(float(value.detach()))
    model.eval()
    last = values[-max(1, steps // 10) :]
    return sum(last) / len(last)
