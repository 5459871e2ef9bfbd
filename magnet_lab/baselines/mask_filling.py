"""Writing by a model of bidirectional attention, one masked token at a time, as is done with BERT (Table 11).

A mask token is put where text is missing, the model says what it hides, what it said takes the mask's place, and the
next mask is asked for. Every token sees every other one, so a new token changes what all others compute: nothing can be
kept from one step to the next, and each costs a pass over the whole text. A decoder adapted by MNTP says what a mask
hides from one position to its left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import LongTensor, Tensor

from magnet_lab.attention import bidirectional
from magnet_lab.baselines.unidirectional import as_span, in_blank
from magnet_lab.blanks import Template, template
from magnet_lab.decoder import decode_after, hidden_states, pad, start_ids, text_ids, vocabulary_scores
from magnet_lab.infilling import Candidate, Infill
from magnet_lab.model import Magnet
from magnet_lab.scoring import check_length
from magnet_lab.spans import Sampling, forbidden_tokens, gap_layouts
from magnet_lab.views import mask_token_id

Draw = Callable[[Tensor], LongTensor]  # scores (rows, vocabulary) -> tokens (rows,)


class MaskFilling:
    """A decoder under the bidirectional mask, asked for one masked token after the other.

    Args:
        adapter: "mntp", or the folder of any adapter trained on masked tokens; None for the base model.
    """

    name = "mask filling"

    def __init__(self, lab: Magnet, adapter: str | None = "mntp"):
        self.lab = lab.use(adapter)
        self.mask_id = mask_token_id(lab.tokenizer)
        vocabulary = self.lab.model.config.get_text_config().vocab_size
        not_text, not_word_start = forbidden_tokens(lab.tokenizer, torch.empty(1, vocabulary, device=lab.device))
        not_text[self.mask_id] = True  # a mask is no answer to what a mask hides
        self._not_text, self._not_word_start = not_text, not_word_start  # (vocabulary,) each

    def generate(self, text: str, *, max_new_tokens: int = 50, **sampling) -> str:
        """Go on with a text: a mask is added at its end and filled, then the next one (caption of Table 11).

        Args:
            **sampling: temperature, top_p, top_k, seed, as in `Magnet.infill`.

        Returns:
            The continuation, without the text itself.

        Raises:
            ValueError: for settings out of range, or if the text and the tokens asked for exceed the model's length.
        """
        tokenizer, draw = self.lab.tokenizer, self._draw(**sampling)
        before = start_ids(tokenizer, required=not text) + text_ids(tokenizer, text)
        if len(before) + max_new_tokens > self.lab.max_length:
            raise ValueError(
                f"the text has {len(before):,} tokens; with {max_new_tokens:,} new ones that exceeds the model's "
                f"{self.lab.max_length:,}; shorten it or ask for fewer"
            )
        written: list[int] = []
        for _ in range(max_new_tokens):
            row = Masked((*before, *written, self.mask_id), (1,), (len(before) + len(written),), (False,))
            ids, tokens = pad([row.ids])
            written += self._hidden_tokens(ids, tokens, [row], 0, draw)[0].tolist()
        return decode_after(tokenizer, before, written)

    def infill(self, text: str, **sampling) -> Infill:
        """Fill the blanks of a text from left to right; the masks that are still to be filled show the length.

        Where a blank's length is open, the same lengths are tried as by `infilling.infill`, and the best fill is taken.

        Args:
            text: with blanks, see `magnet_lab.blanks`.
            **sampling: temperature, top_p, top_k, seed, as in `Magnet.infill`.

        Returns:
            An `Infill` of one candidate.

        Raises:
            ValueError: for a text without blanks, settings out of range, or a text too long for the model.
        """
        draw = self._draw(**sampling)
        plan = template(self.lab.tokenizer, text)
        check_length(self.lab.model, plan, [blank.longest for blank in plan.blanks])
        rows = [with_masks(plan, widths, self.mask_id) for widths in gap_layouts(plan).tolist()]
        ids, tokens = pad([list(row.ids) for row in rows])
        log_probs: list[list[float]] = [[] for _ in rows]
        for step in range(max(len(row.places) for row in rows)):
            open_rows = [number for number, row in enumerate(rows) if step < len(row.places)]
            asked = [rows[number] for number in open_rows]
            found, found_log_probs = self._hidden_tokens(ids[open_rows], tokens[open_rows], asked, step, draw)
            ids[open_rows, [row.places[step] for row in asked]] = found
            for number, log_prob in zip(open_rows, found_log_probs.tolist(), strict=True):
                log_probs[number].append(log_prob)
        filled = zip(rows, ids.tolist(), log_probs, strict=True)
        candidates = [self._candidate(plan, row, row_ids, row_log_probs) for row, row_ids, row_log_probs in filled]

        def fitting_then_likely(candidate: Candidate) -> tuple[int, float]:
            fits = [blank.fits(span.text) for blank, span in zip(plan.blanks, candidate.spans, strict=True)]
            return sum(fits), candidate.score

        return Infill((max(candidates, key=fitting_then_likely),))

    def _draw(self, **sampling) -> Draw:
        sampling = Sampling(**sampling)
        return partial(sampling.draw, generator=sampling.generator(self.lab.device))

    @torch.no_grad()
    def _hidden_tokens(
        self, ids: LongTensor, tokens: Tensor, rows: list["Masked"], step: int, draw: Draw
    ) -> tuple[LongTensor, Tensor]:
        """What the model says that the mask number `step` of every row hides.

        Args:
            ids, tokens: `(rows, length)`, the ids as they are now, and where there are any.
            rows: where their masks are.

        Returns:
            Tokens and their log-probabilities (nats), `(rows,)` each.
        """
        device = self.lab.device
        states = hidden_states(self.lab.model, ids.to(device), bidirectional(tokens).to(device))
        before = torch.tensor([row.places[step] - 1 for row in rows], device=device)
        scores = vocabulary_scores(self.lab.model, states[torch.arange(len(rows), device=device), before])
        log_probs = scores.float().log_softmax(dim=-1)
        begins_word = torch.tensor([row.begins_word[step] for row in rows], device=device)
        found = draw(log_probs.masked_fill(self._not_text | begins_word[:, None] & self._not_word_start, -torch.inf))
        return found.cpu(), log_probs.gather(1, found[:, None])[:, 0].cpu()

    def _candidate(self, plan: Template, row: "Masked", ids: list[int], log_probs: list[float]) -> Candidate:
        """The text that a row has become."""
        spans, stop = [], 0
        for number, width in enumerate(row.widths):
            start, stop = stop, stop + width
            place = row.places[start]
            span = as_span(self.lab.tokenizer, ids[:place], ids[place : place + width], log_probs[start:stop])
            spans.append(in_blank(plan, number, span))
        return Candidate(plan.fill([span.text for span in spans]), tuple(spans))


@dataclass(frozen=True)
class Masked:
    """A text with masks in its blanks.

    Attributes:
        ids: the whole text's.
        widths: how many masks each blank has.
        places: of all masks in `ids`, from left to right.
        begins_word: for each mask, whether a word has to begin there, as after a space.
    """

    ids: tuple[int, ...]
    widths: tuple[int, ...]
    places: tuple[int, ...]
    begins_word: tuple[bool, ...]


def with_masks(plan: Template, widths: list[int], mask_id: int) -> Masked:
    """A text with so many masks in each of its blanks."""
    ids, places, begins_word, rest = [], [], [], 0
    for blank, anchor, width in zip(plan.blanks, plan.anchors, widths, strict=True):
        ids += plan.ids[rest : anchor + 1]
        places += range(len(ids), len(ids) + width)
        begins_word += [blank.after_space] + [False] * (width - 1)
        ids += [mask_id] * width
        rest = anchor + 1
    return Masked((*ids, *plan.ids[rest:]), tuple(widths), tuple(places), tuple(begins_word))
