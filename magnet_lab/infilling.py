"""Infilling: the spans that are missing in a text, written with the context on both sides in view (Section 3.2.3).

`spans.py` writes them; here they become text again, are put into their blanks and ranked.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from magnet_lab.blanks import Blank, Template, template
from magnet_lab.decoder import decode_after
from magnet_lab.scoring import causal_score, check_length, span_log_probs
from magnet_lab.spans import Rows, Sampling, decode, gap_layouts

UNWRITTEN = " ▢"  # stands for a blank that is still to be filled

RANKINGS = ("span", "text")


@dataclass(frozen=True)
class Span:
    """What was written into one blank: the text, and for each token its id, its text and its log-probability (nats)."""

    text: str
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    log_probs: tuple[float, ...]

    @property
    def score(self) -> float:
        """Mean log-probability (nats a token)."""
        return sum(self.log_probs) / len(self.log_probs)


@dataclass(frozen=True)
class Candidate:
    """A text with its blanks filled in one way."""

    text: str
    spans: tuple[Span, ...]

    @property
    def score(self) -> float:
        """Mean log-probability of all that was written (nats a token)."""
        log_probs = [log_prob for span in self.spans for log_prob in span.log_probs]
        return sum(log_probs) / len(log_probs)


@dataclass(frozen=True)
class Infill:
    """A filled text: the best candidate's `text`, `spans` and `score`, and all `candidates`, best first."""

    candidates: tuple[Candidate, ...]

    @property
    def text(self) -> str:
        return self.candidates[0].text

    @property
    def spans(self) -> list[str]:
        return [span.text.strip() for span in self.candidates[0].spans]

    @property
    def score(self) -> float:
        return self.candidates[0].score

    def __str__(self) -> str:
        return self.text


def infill(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    *,
    num_candidates: int = 1,
    sampling: Sampling | None = None,
    sequential: bool = False,
    rank: str = "span",
) -> Iterator[Infill]:
    """Fill the blanks of a text. Yields a snapshot after every token; the last one is the result, ranked.

    Args:
        text: a text with blanks, see `magnet_lab.blanks`.
        num_candidates: how many different ways to fill the text, best first; fewer where so many different ones were
            not found. Without randomness, so many fills of each length are written, each starting with another of the
            likeliest first tokens.
        sampling: how tokens are chosen; the likeliest each time by default.
        sequential: fill one blank after the other, each becoming context for the next, so that they agree with each
            other. Otherwise all are written at once, independently given the context, as in training.
        rank: "span": by the mean log-probability of the written tokens; "text": by the mean causal log-probability of
            the whole text. Where a blank stands for a sentence, candidates that end one come first in either case, and
            where its length is open, a fill that stops within a sentence is cut back to the last one that is whole.

    Yields:
        `Infill`. Before the last one: the longest of the lengths tried, as far as it is written.

    Raises:
        ValueError: for a text without blanks, settings out of range, or a text too long for the model.
    """
    if num_candidates < 1:
        raise ValueError(f"num_candidates is {num_candidates}; at least one is needed")
    if rank not in RANKINGS:
        raise ValueError(f"rank {rank!r} is not known; choose one of {', '.join(RANKINGS)}")
    plan = template(tokenizer, text)
    check_length(model, plan, [blank.longest for blank in plan.blanks])
    fill = _one_by_one if sequential else _together
    return fill(model, tokenizer, plan, num_candidates, sampling or Sampling(), rank)


def _together(model, tokenizer, plan: Template, count: int, sampling: Sampling, rank: str) -> Iterator[Infill]:
    """All blanks at once; the i-th candidate takes the i-th best fill of every blank."""
    every = list(range(len(plan.blanks)))
    for rows in decode(model, tokenizer, plan, every, count, sampling):
        yield _snapshot(tokenizer, plan, rows)
    ranked = [_ranked(tokenizer, plan, rows, blank) for blank in every]
    most = max(len(spans) for spans in ranked)
    choices = [tuple(spans[min(i, len(spans) - 1)] for spans in ranked) for i in range(most)]
    candidates = [Candidate(plan.fill([span.text for span in spans]), spans) for spans in choices]
    result = _result(model, tokenizer, plan, candidates, count, rank)
    if len(plan.blanks) > 1 and len(gap_layouts(plan)) > 1:
        # The best fills of two blanks may come from different layouts; they are scored as they stand together.
        rescored = [_scored_together(model, plan, candidate) for candidate in result.candidates]
        result = _result(model, tokenizer, plan, rescored, count, rank)
    yield result


def _scored_together(model, plan: Template, candidate: Candidate) -> Candidate:
    log_probs = span_log_probs(model, plan, [list(span.ids) for span in candidate.spans])
    spans = zip(candidate.spans, log_probs, strict=True)
    return replace(candidate, spans=tuple(replace(span, log_probs=tuple(new.tolist())) for span, new in spans))


def _one_by_one(model, tokenizer, plan: Template, count: int, sampling: Sampling, rank: str) -> Iterator[Infill]:
    """One blank after the other, from left to right, each candidate on its own."""
    candidates = [((), plan)]  # (spans written so far, the text with what is still to be filled)
    while candidates[0][1].blanks:
        longer = []
        for spans, rest in candidates:
            samples = count if not spans else 1
            for rows in decode(model, tokenizer, rest, [0], samples, sampling):
                yield _snapshot(tokenizer, rest, rows, spans)
            best = _ranked(tokenizer, rest, rows, 0)[:samples]
            longer += [((*spans, span), rest.with_first(span.text, span.ids)) for span in best]
        candidates = longer
    filled = [Candidate(rest.fill([]), spans) for spans, rest in candidates]
    yield _result(model, tokenizer, plan, filled, count, rank)


def _result(model, tokenizer, plan: Template, candidates: list[Candidate], count: int, rank: str) -> Infill:
    """The best candidates, best first: those whose fills fit their blanks, then by score."""

    def key(candidate: Candidate) -> tuple[int, float]:
        fitting = sum(blank.fits(span.text) for blank, span in zip(plan.blanks, candidate.spans, strict=True))
        return fitting, causal_score(model, tokenizer, candidate.text) if rank == "text" else candidate.score

    return Infill(tuple(sorted(candidates, key=key, reverse=True)[:count]))


def _ranked(tokenizer, plan: Template, rows: Rows, blank: int) -> list[Span]:
    """What was written into one blank, best first, each text once."""
    blank_plan, best = plan.blanks[blank], {}
    written = [_span(tokenizer, plan, rows, row) for row in (rows.blank == blank).nonzero()[:, 0].tolist()]
    spans = [_cut_to_fit(blank_plan, span) for span in written]
    for span in sorted(spans, key=lambda span: (blank_plan.fits(span.text), span.score), reverse=True):
        best.setdefault(span.text.strip(), span)
    return list(best.values())


def _cut_to_fit(blank: Blank, span: Span) -> Span:
    """Where a sentence of any length is asked for and the fill ends within one: the fill up to its last full sentence.

    It keeps the log-probabilities that it was written with, in a gap as wide as the whole fill.
    """
    if blank.is_sentence and blank.shortest < blank.longest and not blank.fits(span.text):
        for length in range(len(span.ids) - 1, blank.shortest - 1, -1):
            text = "".join(span.tokens[:length])
            text = text if span.text[:1].isspace() else text.lstrip()
            if blank.fits(text):
                return Span(text, span.ids[:length], span.tokens[:length], span.log_probs[:length])
    return span


def _snapshot(tokenizer, plan: Template, rows: Rows, before: tuple[Span, ...] = ()) -> Infill:
    """The last layout's rows, the longest ones, as far as they are written; `before` are spans of earlier blanks."""
    candidates = []
    last = rows.layout == rows.layout.max()
    for sample in range(int(rows.sample.max()) + 1):
        mine = (last & (rows.sample == sample)).nonzero()[:, 0].tolist()
        spans = [_span(tokenizer, plan, rows, row) for row in mine]
        fills = [span.text for span in spans] + [UNWRITTEN] * (len(plan.blanks) - len(spans))
        candidates.append(Candidate(plan.fill(fills), (*before, *spans)))
    return Infill(tuple(candidates))


def _span(tokenizer, plan: Template, rows: Rows, row: int) -> Span:
    number = int(rows.blank[row])
    before, ids = list(plan.ids[: plan.anchors[number] + 1]), rows.tokens[row]
    text = decode_after(tokenizer, before, ids)
    if plan.blanks[number].before_space:
        text = text.rstrip()
    if number == 0 and not plan.segments[0]:
        text = text.lstrip()
    tokens = [decode_after(tokenizer, before + ids[:i], [token]) for i, token in enumerate(ids)]
    return Span(text, tuple(ids), tuple(tokens), tuple(rows.log_probs[row]))
