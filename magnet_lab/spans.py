"""Writing the missing spans of a text: the context is read once, and its keys and values are kept.

The context is read bidirectionally and at its true positions, a gap left for every span. Its keys and values stay
valid while the spans are written, since no context token ever looks at a span. Each span is then decoded like any
text, one token at a time, at the positions of its gap. The result is that of a full forward pass under the MAGNET mask.

How long a span is to be shows in the width of its gap. Where the length is open, several are tried side by side: every
length is a row of the same batch, and so is every blank and every candidate.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import LongTensor, Tensor
from transformers import (
    DynamicCache,
    LogitsProcessorList,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from magnet_lab.attention import attention_mask, bidirectional
from magnet_lab.blanks import Template
from magnet_lab.decoder import backend_mask

MAX_LENGTHS = 8  # lengths tried for one blank; a wider range is sampled evenly
MAX_ROWS = 256  # spans written at once; each keeps a copy of the context's keys and values


@dataclass(frozen=True)
class Sampling:
    """How a token is chosen: the likeliest at temperature 0, else drawn from transformers' filtered distribution."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None

    def __post_init__(self):
        if not 0 <= self.temperature <= 100:
            raise ValueError(f"temperature {self.temperature} is not between 0 (always the likeliest token) and 100")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p {self.top_p} is not a share above 0 and up to 1")
        if self.top_k < 0:
            raise ValueError(f"top_k {self.top_k} is negative; 0 keeps every token")
        if self.seed is not None and not 0 <= self.seed < 2**63:
            raise ValueError(f"seed {self.seed} is not between 0 and 2**63")

    def generator(self, device: torch.device) -> torch.Generator:
        generator = torch.Generator(device)
        if self.seed is None:
            generator.seed()
        else:
            generator.manual_seed(self.seed)
        return generator

    def draw(self, scores: Tensor, generator: torch.Generator) -> LongTensor:
        """One token for every row of `scores`, `(rows, vocabulary)` -> `(rows,)`."""
        if self.temperature == 0:
            return scores.argmax(dim=-1)
        warpers = LogitsProcessorList([TemperatureLogitsWarper(float(self.temperature))])
        if self.top_k:
            warpers.append(TopKLogitsWarper(self.top_k))
        if self.top_p < 1:
            warpers.append(TopPLogitsWarper(self.top_p))
        return torch.multinomial(warpers(None, scores).softmax(dim=-1), 1, generator=generator)[:, 0]


@dataclass
class Rows:
    """The batch being written: one row for each layout of gap widths, blank and sample."""

    layout: LongTensor  # (rows,) index of the layout
    blank: LongTensor  # (rows,) index of the blank
    sample: LongTensor  # (rows,) index of the sample
    length: LongTensor  # (rows,) tokens to write
    start: LongTensor  # (rows,) position of the first of them
    tokens: list[list[int]]
    log_probs: list[list[float]]


@torch.no_grad()
def decode(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    plan: Template,
    blanks: list[int],
    samples: int,
    sampling: Sampling,
) -> Iterator[Rows]:
    """Write the given blanks of a text, every length and every sample at once; yields the rows after each token."""
    layouts = gap_layouts(plan)
    if len(layouts) * len(blanks) * samples > MAX_ROWS:
        raise ValueError(
            f"{samples} candidates of {len(layouts)} lengths in {len(blanks)} blank(s) are more than {MAX_ROWS} spans "
            "at once; ask for fewer candidates or for fewer lengths"
        )
    cache, first_scores = read_context(model, plan, layouts)
    rows = _rows(plan, layouts, blanks, samples)
    cache.batch_select_indices(rows.layout.to(model.device))
    scores = first_scores[rows.layout, rows.blank]  # (rows, vocabulary)
    not_text, not_word_start = forbidden_tokens(tokenizer, scores)

    generator = sampling.generator(model.device)
    active = torch.arange(len(rows.tokens))  # the rows still being written, in the order the cache has them
    for step in range(1, int(rows.length.max()) + 1):
        log_probs = scores.float().log_softmax(dim=-1)
        choices = log_probs.masked_fill(not_text, -torch.inf)
        if step == 1:
            after_space = torch.tensor([plan.blanks[blank].after_space for blank in rows.blank], device=scores.device)
            choices = choices.masked_fill(after_space[:, None] & not_word_start, -torch.inf)
        if step == 1 and sampling.temperature == 0:
            likeliest = choices.topk(samples, dim=-1).indices
            chosen = likeliest.gather(1, rows.sample.to(scores.device)[:, None])[:, 0]
        else:
            chosen = sampling.draw(choices, generator)
        chosen_log_probs = log_probs.gather(1, chosen[:, None])[:, 0].tolist()
        for row, token, log_prob in zip(active.tolist(), chosen.tolist(), chosen_log_probs, strict=True):
            rows.tokens[row].append(token)
            rows.log_probs[row].append(log_prob)
        yield rows

        going_on = rows.length[active] > step
        if not going_on.any():
            return
        if not going_on.all():
            kept = going_on.nonzero()[:, 0].to(model.device)
            cache.batch_select_indices(kept)
            active, chosen = active[going_on], chosen[kept]
        scores = write_token(model, cache, chosen, (rows.start[active] + step - 1).to(model.device))


def gap_layouts(plan: Template) -> LongTensor:
    """The gap widths to try, `(layouts, blanks)`: each blank's evenly over its range, from shortest to longest.

    Several blanks grow together, from all shortest to all longest: every combination would be too many.
    """
    count = min(MAX_LENGTHS, max(blank.longest - blank.shortest + 1 for blank in plan.blanks))
    widths = [torch.linspace(blank.shortest, blank.longest, count).round().long() for blank in plan.blanks]
    return torch.stack(widths, dim=1)


def read_context(model: PreTrainedModel, plan: Template, layouts: LongTensor) -> tuple[DynamicCache, Tensor]:
    """Run the context once for every layout of gap widths, and keep its keys and values.

    Args:
        layouts: `(layouts, blanks)`, the length of each blank in tokens.

    Returns:
        The cache, and the scores of each blank's first token, `(layouts, blanks, vocabulary)`: the context token to the
        left of a blank predicts it.
    """
    input_ids = torch.tensor(plan.ids).repeat(len(layouts), 1).to(model.device)
    positions = torch.arange(len(plan.ids)).repeat(len(layouts), 1)
    for blank, anchor in enumerate(plan.anchors):
        positions[:, anchor + 1 :] += layouts[:, blank, None]
    cache = DynamicCache()
    first_scores = model(
        input_ids=input_ids,
        attention_mask=backend_mask(model, attention_mask(bidirectional(torch.ones_like(input_ids)))),
        position_ids=positions.to(model.device),
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=torch.tensor(plan.anchors, device=model.device),
    ).logits
    return cache, first_scores


def write_token(model: PreTrainedModel, cache: DynamicCache, tokens: LongTensor, positions: LongTensor) -> Tensor:
    """Add a span token to every row of the cache; returns the scores of the next one, `(rows, vocabulary)`.

    Everything in a row's cache, the context and the span's own past, may be seen: the mask is True throughout.
    """
    seen = torch.ones(len(tokens), 1, 1, cache.get_seq_length() + 1, dtype=torch.bool, device=tokens.device)
    return model(
        input_ids=tokens[:, None],
        attention_mask=backend_mask(model, seen),
        position_ids=positions[:, None],
        past_key_values=cache,
        use_cache=True,
    ).logits[:, -1]


def _rows(plan: Template, layouts: LongTensor, blanks: list[int], samples: int) -> Rows:
    layout, blank, sample = torch.cartesian_prod(
        torch.arange(len(layouts)), torch.tensor(blanks), torch.arange(samples)
    ).T
    gaps_to_the_left = layouts.cumsum(dim=1) - layouts  # (layouts, blanks)
    return Rows(
        layout=layout,
        blank=blank,
        sample=sample,
        length=layouts[layout, blank],
        start=torch.tensor(plan.anchors)[blank] + 1 + gaps_to_the_left[layout, blank],
        tokens=[[] for _ in layout],
        log_probs=[[] for _ in layout],
    )


def forbidden_tokens(tokenizer: PreTrainedTokenizerBase, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Which tokens cannot stand in a span, and which cannot begin one after a space; `(vocabulary,)` each."""
    size = scores.shape[-1]
    not_text = torch.zeros(size, dtype=torch.bool)
    not_text[[token for token in tokenizer.all_special_ids if token < size]] = True
    not_text[len(tokenizer) :] = True  # rows of the head that stand for no token
    pieces = tokenizer.convert_ids_to_tokens(list(range(min(size, len(tokenizer)))))
    not_word_start = torch.ones(size, dtype=torch.bool)
    not_word_start[: len(pieces)] = torch.tensor([len(piece) < 2 or piece[0] not in "Ġ▁ " for piece in pieces])
    return not_text.to(scores.device), not_word_start.to(scores.device)
