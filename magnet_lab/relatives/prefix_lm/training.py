"""The loop, the loss of every target token, and writing."""

from collections.abc import Callable

import torch
from torch import LongTensor, Tensor, nn
from torch.nn.functional import cross_entropy

from magnet_lab.objectives import msg_loss
from magnet_lab.relatives.prefix_lm.data import Batch, split
from magnet_lab.relatives.prefix_lm.masks import mode_span_ids
from magnet_lab.views import NO_LABEL


def fit(
    make: Callable[[], nn.Module],
    draw: Callable[[torch.Generator], Batch],
    steps: int,
    *,
    seed: int,
    lr: float = 1e-3,
) -> tuple[nn.Module, list[float]]:
    """Train a new model; its first weights, dropout and batches follow from the seed alone.

    Args:
        make: makes the model.
        draw: makes the batch of a step.

    Returns:
        The model, ready for use, and the loss (nats a target token) of every step.
    """
    generator = torch.Generator().manual_seed(seed)
    losses = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make().train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        for _ in range(steps):
            batch = draw(generator)
            loss = msg_loss(model(batch.input_ids, batch.span_ids), batch.labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
    return model.eval(), losses


@torch.no_grad()
def token_losses(model: nn.Module, batch: Batch) -> Tensor:
    """The loss (nats) at each position that has a label, NaN at the others: `(batch, length)`."""
    scores = model(batch.input_ids, batch.span_ids)
    losses = cross_entropy(scores.transpose(1, 2), batch.labels, ignore_index=NO_LABEL, reduction="none")
    return losses.masked_fill(batch.labels == NO_LABEL, float("nan"))


def losses_by_position(model: nn.Module, rows: LongTensor, prefix_length: int) -> Tensor:
    """The mean loss (nats) of the first target token, the second, and so on: `(length - prefix_length,)`."""
    lengths = torch.full((len(rows),), prefix_length)
    return token_losses(model, split(rows, lengths)).mean(dim=0)[prefix_length - 1 : -1]


@torch.no_grad()
def losses_in_writing(model: nn.Module, rows: LongTensor, prefix_length: int) -> Tensor:
    """The same losses as they are met in writing, `(rows, length - prefix_length)`: nothing stands after a token yet.

    Under a sound mask the one pass of training gives the same numbers.
    """
    losses = []
    for place in range(prefix_length, rows.shape[1]):
        scores = next_scores(model, rows[:, :place], prefix_length)
        losses.append(cross_entropy(scores, rows[:, place], reduction="none"))
    return torch.stack(losses, dim=1)


@torch.no_grad()
def write(
    model: nn.Module,
    prefix: LongTensor,
    new_tokens: int,
    *,
    mode: str = "prefix",
    temperature: float = 0.0,
    generator: torch.Generator | None = None,
) -> LongTensor:
    """Go on after prefixes of one length, `(batch, k)` -> `(batch, k + new_tokens)`; what is written joins the target.

    Args:
        mode: "prefix", or "unidirectional" for a model that reads its prefix causally too.
        temperature: at 0 the likeliest token is taken; else tokens are drawn from `generator`.
    """
    rows = prefix
    for _ in range(new_tokens):
        scores = next_scores(model, rows, prefix.shape[1], mode)
        if temperature == 0:
            chosen = scores.argmax(dim=-1, keepdim=True)
        else:
            chosen = torch.multinomial((scores / temperature).softmax(dim=-1), 1, generator=generator)
        rows = torch.cat([rows, chosen], dim=1)
    return rows


def next_scores(model: nn.Module, rows: LongTensor, prefix_length: int, mode: str = "prefix") -> Tensor:
    """Scores of the token after rows of which so many tokens are prefix, `(batch, vocabulary)`."""
    return model(rows, mode_span_ids(mode, torch.ones_like(rows), prefix_length))[:, -1]
