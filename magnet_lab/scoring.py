"""How likely a given text is: in a blank, with the context on both sides in view, or from left to right."""

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from magnet_lab import attention
from magnet_lab.blanks import Template, template
from magnet_lab.decoder import continuation_ids, logits, max_length, start_ids, text_ids

SCORING_MODES = ("infill", "causal")


@dataclass(frozen=True)
class Score:
    """How likely given fills are: `log_probs` holds for each blank one number a token (nats)."""

    log_probs: list[Tensor]

    @property
    def perplexity(self) -> float:
        """Over the tokens of all blanks together."""
        return torch.cat(self.log_probs).mean().neg().exp().item()


def score_infill(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, text: str, fills: list[str], *, mode: str = "infill"
) -> Score:
    """How likely the model finds given fills of a text's blanks, their first tokens included (Table 4's measure).

    Args:
        text: a text with blanks; a length given in a blank does not matter here.
        fills: one text for each blank.
        mode: "infill": under the MAGNET mask, with the context on both sides in view; "causal": under the causal mask,
            with all that stands to the left in view, earlier fills included.

    Raises:
        ValueError: for an unknown mode, a number of fills that is not the number of blanks, or an empty fill.
    """
    if mode not in SCORING_MODES:
        raise ValueError(f"mode {mode!r} is not known; choose one of {', '.join(SCORING_MODES)}")
    plan = template(tokenizer, text)
    if isinstance(fills, str) or len(fills) != len(plan.blanks):
        given = "one string" if isinstance(fills, str) else f"{len(fills)} fills"
        raise ValueError(f"the text has {len(plan.blanks)} blank(s) and takes a list of as many fills; {given} came")
    fill_ids = [ids_of_fill(tokenizer, plan, number, fill) for number, fill in enumerate(fills)]
    check_length(model, plan, [len(ids) for ids in fill_ids])

    return Score(span_log_probs(model, plan, fill_ids, mode=mode))


@torch.no_grad()
def span_log_probs(
    model: PreTrainedModel, plan: Template, fill_ids: list[list[int]], *, mode: str = "infill"
) -> list[Tensor]:
    """The log-probabilities (nats) of each blank's tokens, `(tokens,)` a blank, by one forward pass over the text."""
    ids, span_ids, targets, rest = [], [], [], 0
    for number, (anchor, fill) in enumerate(zip(plan.anchors, fill_ids, strict=True), start=1):
        ids += [*plan.ids[rest : anchor + 1], *fill]
        span_ids += [attention.CONTEXT] * (anchor + 1 - rest) + [number] * len(fill)
        targets += range(len(ids) - len(fill), len(ids))
        rest = anchor + 1
    ids += plan.ids[rest:]
    span_ids += [attention.CONTEXT] * (len(plan.ids) - rest)

    spans = torch.tensor([span_ids])
    if mode == "causal":
        spans = attention.causal(torch.ones_like(spans))
    log_probs = _log_probs(model, torch.tensor([ids]), spans, torch.tensor(targets))
    return list(log_probs.split([len(fill) for fill in fill_ids]))


@torch.no_grad()
def causal_score(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, text: str) -> float:
    """Mean log-probability (nats) of a text's tokens read from left to right; the first one is not counted."""
    ids = torch.tensor([start_ids(tokenizer) + text_ids(tokenizer, text)])
    if ids.shape[1] < 2:
        return 0.0
    return _log_probs(model, ids, attention.causal(torch.ones_like(ids)), torch.arange(1, ids.shape[1])).mean().item()


def check_length(model: PreTrainedModel, plan: Template, lengths: list[int]) -> None:
    """Raise a ValueError if a text with blanks of these lengths is longer than the model can read."""
    limit = max_length(model)
    if len(plan.ids) > limit:
        raise ValueError(
            f"the text around the blanks has {len(plan.ids):,} tokens; the model can read {limit:,}; shorten it"
        )
    if len(plan.ids) + sum(lengths) > limit:
        longest = max(range(len(lengths)), key=lambda number: lengths[number])
        raise ValueError(
            f"blank {longest + 1} asks for {lengths[longest]:,} tokens; with {len(plan.ids):,} tokens of context and "
            f"all blanks that exceeds the model's {limit:,} positions"
        )


def ids_of_fill(tokenizer: PreTrainedTokenizerBase, plan: Template, number: int, fill: str) -> list[int]:
    """The ids of a fill as a part of its text: the space before a blank belongs to the fill, one after it does not."""
    if not fill.strip():
        raise ValueError(f"the fill of blank {number + 1} is empty; it needs at least one word")
    blank = plan.blanks[number]
    fill = fill.rstrip() if blank.before_space else fill
    fill = " " + fill.lstrip() if blank.after_space else fill
    opens_text = number == 0 and not plan.segments[0]
    return text_ids(tokenizer, fill) if opens_text else continuation_ids(tokenizer, fill)


def _log_probs(model: PreTrainedModel, input_ids: Tensor, span_ids: Tensor, targets: Tensor) -> Tensor:
    """Log-probabilities (nats) of the tokens at the indices `targets` of one row, read one position to the left."""
    targets, input_ids = targets.to(model.device), input_ids.to(model.device)
    scores = logits(model, input_ids, span_ids.to(model.device), at=targets - 1)[0]
    return scores.float().log_softmax(dim=-1).gather(1, input_ids[0, targets, None])[:, 0].cpu()
