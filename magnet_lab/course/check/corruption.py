"""What is hidden: spans, and corrupted context tokens. Random choices, so it is their rules and shares that count."""

from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

from magnet_lab import views
from magnet_lab.attention import CONTEXT, PADDING
from magnet_lab.course.check import pictures
from magnet_lab.course.check.calling import NoAnswer, Seed, Student
from magnet_lab.course.check.comparing import misformed, same
from magnet_lab.course.check.examine import Wrong, examine
from magnet_lab.course.check.verdict import Verdict

_MASK, _VOCABULARY = 3, 1000

# How many texts are drawn of a length, and max_spans, shortest and longest there: so many that a right answer misses
# what `_span_variety` asks for once in a million times.
_TEXTS = ((150, 12, 1, 2, 4), (5, 5, 2, 3, 9), (60, 14, 2, 2, 5), (60, 40, 3, 3, 9))
_SHORT = 14  # tokens; in a longer text a place may be missed by chance


def corrupt(function) -> Verdict:
    """Hide a fifth of the context (Section 3.2.1): `corrupt(input_ids, span_ids, mask_id, vocabulary_size, generator)`.

    20 % of the eligible tokens are selected. Of these 80 % become the mask token, 10 % a random token of the
    vocabulary, 10 % stay as they are. Eligible is a context token that stands right after a context token: not a row's
    first one, which nothing predicts; not one after a span, which a span token would predict; no span token or padding.

    Args of your function:
        input_ids, span_ids: `(batch, length)`; span ids are 0 context, k >= 1 the k-th span, -1 padding.
        mask_id: the mask token.
        vocabulary_size: ids are 0 … vocabulary_size - 1.
        generator: a `torch.Generator`, the source of every random number: `torch.rand(shape, generator=generator)`.

    It returns `(corrupted, selected)`: ids and booleans, both `(batch, length)`. Whether the share is kept in every row
    or on average does not matter.

        span_ids 0 0 1 1 0 0  ->  eligible · ■ · · · ■
    """

    def judge(ask: Student) -> Wrong | None:
        small = torch.tensor([[0, 0, 1, 1, 0, 0, 0, 0]])
        for spans in (small, _spans()):
            input_ids = torch.arange(10, 10 + spans.numel()).view(spans.shape) % (_VOCABULARY - 10) + 10
            input_ids = input_ids.masked_fill(spans == PADDING, 0)
            arguments = (input_ids, spans, _MASK, _VOCABULARY, Seed(0))
            corrupted, selected = _formed(ask(*arguments), (input_ids, spans > 0), input_ids)
            again = ask(*arguments)
            if not (same(corrupted, again[0]) and same(selected, again[1])):
                return Wrong(
                    "the same seed gives two different answers: every random number must come from the generator, as "
                    "in torch.rand(shape, generator=generator)"
                )
            if wrong := _against_rules(input_ids, spans, corrupted, selected):
                return Wrong(wrong, _columns(input_ids, spans, corrupted, selected))
        if same(corrupted, ask(*arguments[:-1], Seed(1))[0]):
            return Wrong("another seed gives the same answer: draw from the generator, and do not set its seed")
        wrong = _shares(arguments, corrupted, selected)
        return wrong and replace(wrong, arguments=arguments)

    praise = "A fifth of the eligible tokens, 80/10/10, nothing that must never be chosen, and the seed decides."
    return examine(function, "corrupt(input_ids, span_ids, mask_id, vocabulary_size, generator)", judge, praise)


def sample_spans(function) -> Verdict:
    """Choose the missing spans of a text (Appendix A): `sample_spans(length, max_spans, shortest, longest, generator)`.

    A text gets one to `max_spans` spans, as many as fit, each of `shortest` to `longest` tokens. A span never starts at
    the first token, which nothing could predict it from; two spans never touch; at least half of the text stays
    context. Where not one span fits, there is none.

    Args of your function:
        length: tokens of the text.
        max_spans, shortest, longest: bounds, all at least 1.
        generator: a `torch.Generator`, the source of every random number.

    It returns span ids, `(length,)` integers: 0 context, 1 the first span that was chosen, 2 the second …

        sample_spans(10, 2, 2, 3, generator)  ->  e.g.  0 0 2 2 0 0 0 1 1 1
    """

    def judge(ask: Student) -> Wrong | None:
        for texts, length, max_spans, shortest, longest in _TEXTS:
            drawn = []
            for seed in range(texts):
                arguments = (length, max_spans, shortest, longest, Seed(seed))
                spans = _formed(ask(*arguments), torch.zeros(length).long())
                if wrong := _span_rules(spans.tolist(), *arguments[:-1]):
                    return Wrong(wrong, f"got       {spans.tolist()}")
                drawn.append(spans)
            if not same(drawn[-1], ask(*arguments)):
                return Wrong("the same seed gives two different answers: every random number must come from generator")
            if wrong := _span_variety(drawn, *arguments[:-1]):
                return Wrong(wrong)
        return None

    praise = "275 texts: lengths, places and numbers of spans of every kind, no touching, half of each text kept."
    return examine(function, "sample_spans(length, max_spans, shortest, longest, generator)", judge, praise)


def _formed(answer, expected, input_ids: Tensor | None = None):
    if problem := misformed(expected, answer):
        swapped = isinstance(answer, tuple) and len(answer) == 2 and getattr(answer[0], "dtype", 0) == torch.bool
        raise NoAnswer(
            "the two are swapped: first the corrupted ids, then where tokens were chosen" if swapped else problem
        )
    return answer


def _spans() -> Tensor:
    """Rows with spans of their own, a few with padding: enough tokens to count shares in."""
    spans = torch.zeros(48, 160, dtype=torch.long)
    for row in range(len(spans)):
        start = 5 + 2 * row
        spans[row, start : start + 30] = 1
        spans[row, 140:145] = 2
        if row % 4 == 0:
            spans[row, 150:] = PADDING
    return spans


def eligible_tokens(input_ids: Tensor, span_ids: Tensor) -> Tensor:
    """Which tokens may be hidden: those that the project's own function takes when it is asked for all."""
    tokenizer = _Vocabulary()
    _, everything = views.corrupt(
        input_ids, span_ids, tokenizer=tokenizer, generator=torch.Generator().manual_seed(0), share=1.0
    )
    return everything


class _Vocabulary:
    """What `views.corrupt` wants of a tokenizer, and no more."""

    mask_token_id = _MASK
    all_special_ids = ()

    def __len__(self) -> int:
        return _VOCABULARY


def _against_rules(input_ids: Tensor, spans: Tensor, corrupted: Tensor, selected: Tensor) -> str | None:
    changed = corrupted != input_ids
    if (never := selected & ~eligible_tokens(input_ids, spans)).any():
        row, place = never.nonzero()[0].tolist()
        return f"text {row}, token {place} was selected: " + _never(spans[row], place)
    if (changed & ~selected).any():
        row, place = (changed & ~selected).nonzero()[0].tolist()
        return (
            f"text {row}, token {place} was changed and is not among the selected: nobody would ask for it, and the "
            "model would learn from a wrong context"
        )
    if ((corrupted < 0) | (corrupted >= _VOCABULARY)).any():
        return f"a random token is outside the vocabulary: ids are 0 … {_VOCABULARY - 1}"
    return None


def _columns(input_ids: Tensor, spans: Tensor, corrupted: Tensor, selected: Tensor) -> str:
    """A small case in columns; a large one would not fit on a page."""
    if len(input_ids) > 1:
        return ""
    eligible = eligible_tokens(input_ids, spans)
    rows = {
        "input_ids": input_ids,
        "span_ids": spans,
        "corrupted": corrupted,
        "eligible": eligible,
        "selected": selected,
    }
    return pictures.columns({name: row[0].tolist() for name, row in rows.items()})


def _never(spans: Tensor, place: int) -> str:
    here = int(spans[place])
    if here == PADDING:
        return "it is padding, there is nothing to predict"
    if here != CONTEXT:
        return "it is a span token; MNTP lives on the context, spans are for MSG"
    if place == 0:
        return "a row's first token, which nothing predicts: the output that would is at position -1"
    return "it stands right after a span, so a span token's output would have to predict it; MNTP lives on context"


def _shares(arguments: tuple, corrupted: Tensor, selected: Tensor) -> Wrong | None:
    """Shares within five standard deviations or so of what they should be, and what others would mean."""
    input_ids, spans, *_ = arguments
    eligible = eligible_tokens(input_ids, spans)
    count, chosen = int(eligible.sum()), int(selected.sum())
    share = chosen / count
    counted = f"selected  {chosen} of {count} eligible tokens ({share:.1%})"
    if chosen == 0:
        return Wrong("nothing is selected: a fifth of the eligible tokens must be", counted)
    kinds = {
        "mask token": selected & (corrupted == _MASK),
        "random token": selected & (corrupted != _MASK) & (corrupted != input_ids),
        "unchanged": selected & (corrupted == input_ids),
    }
    mask, random, stays = (float(kind.sum()) / chosen for kind in kinds.values())
    counted += f"\nof these  {mask:.1%} mask token, {random:.1%} random token, {stays:.1%} unchanged"
    if stays < 0.01 and abs(share - 0.18) < 0.012 and abs(mask - 8 / 9) < 0.04:
        why = "the tokens that stay as they are are missing among the selected: they are targets like the others"
        return Wrong(why, counted)
    if abs(share - 0.2) > 0.03:
        if abs(share - int((spans != PADDING).sum()) / count * 0.2) < 0.02:
            return Wrong(
                "the fifth is counted over all tokens, spans included: it is a fifth of the eligible ones", counted
            )
        if abs(share - 0.15) < 0.02:
            return Wrong("15 % are selected, which is BERT's share; this paper hides 20 %", counted)
        return Wrong(f"{share:.0%} of the eligible tokens are selected; it must be 20 %", counted)
    if mask > 0.99:
        return Wrong(
            "every selected token becomes the mask token: only 80 % do, 10 % become a random token and 10 % stay, so "
            "that the model cannot know which tokens to trust",
            counted,
        )
    if random < 0.01 and stays > 0.12:
        return Wrong("no random tokens: 10 % of the selected ones become a random token of the vocabulary", counted)
    if stays < 0.01 and random > 0.12:
        return Wrong("no selected token stays as it is: 10 % must, and 10 % become random", counted)
    if abs(mask - 0.1) < 0.05 and max(random, stays) > 0.7:
        return Wrong("80 and 10 are swapped: it is the mask token that 80 % become", counted)
    if abs(mask - 0.8) > 0.06 or abs(random - 0.1) > 0.05 or abs(stays - 0.1) > 0.05:
        after = abs(mask - 0.8) < 0.06 and abs(random - 0.02) < 0.015
        why = (
            "a tenth of what the mask token left over becomes random: the three shares are of all selected tokens; "
            "draw one number for each and cut it at 0.8 and 0.9"
            if after
            else "the shares are not 80/10/10; draw one random number for each token and cut it at 0.8 and 0.9"
        )
        return Wrong(why, counted)
    drawn = corrupted[kinds["random token"]]
    if len(drawn.unique()) < len(drawn) / 2:
        return Wrong("the random tokens are all alike: draw one for each place, from the whole vocabulary", counted)
    if drawn.max() - drawn.min() < _VOCABULARY * 0.7:
        return Wrong("the random tokens come from a part of the vocabulary: draw from 0 … vocabulary_size - 1", counted)
    by_row = selected.float().sum(dim=1)
    if by_row.min() == 0:
        return Wrong("some texts of the batch have no hidden token at all: every row must give up a fifth", counted)
    if (selected == selected[0]).all(dim=0)[eligible.all(dim=0)].all():
        return Wrong("the same positions are hidden in every text: draw for each text anew", counted)
    return None


def _span_rules(spans: list[int], length: int, max_spans: int, shortest: int, longest: int) -> str | None:
    numbers = sorted(set(spans) - {CONTEXT})
    if spans[0] != CONTEXT:
        return "a span starts at the first token: nothing stands before it that could predict it; start at 1 or later"
    if any(one != other and one > 0 and other > 0 for one, other in pairwise(spans)):
        return (
            "two spans touch: the second one's first token would have to be predicted by the first one's last; leave a "
            "context token between them"
        )
    if numbers != list(range(1, len(numbers) + 1)):
        if len(numbers) >= 1 and min(numbers) > 0:
            return f"the spans are numbered {numbers}: they must be 1, 2, … without a gap; was one drawn over?"
        return f"the numbers {numbers} make no sense: 0 is context, spans are 1, 2, …"
    if len(numbers) > max_spans:
        return f"there are {len(numbers)} spans; at most {max_spans} are wanted"
    for number in numbers:
        places = [place for place, other in enumerate(spans) if other == number]
        stretch = places[-1] - places[0] + 1
        if stretch != len(places):
            return f"span {number} is torn: another span was put into it; draw where there is room"
        if stretch > longest:
            return f"span {number} has {stretch} tokens; the longest must have {longest}"
        if stretch < shortest:
            cut = "; a span that runs past the end is cut off there" if places[-1] == length - 1 else ""
            return f"span {number} has {stretch} tokens; the shortest must have {shortest}{cut}"
    if 2 * sum(number > 0 for number in spans) > length:
        return "more than half of the text is span: too little context is left to tell what is missing"
    return None


def _span_variety(drawn: list[Tensor], length: int, max_spans: int, shortest: int, longest: int) -> str | None:
    """Compared with what the project's own function draws for the same texts."""
    found, wanted = _seen(drawn), _seen(_reference(length, max_spans, shortest, longest, len(drawn)))
    if not wanted["counts"] - {0}:
        return None
    if found["counts"] == {0}:
        return "there is no span in any text, though there is room for one"
    if 0 in found["counts"] and 0 not in wanted["counts"]:
        return "some texts get no span, though there is room: each has at least one"
    if missing := wanted["counts"] - found["counts"]:
        return f"there are never {max(missing)} spans in a text: one to max_spans are wanted, any number of them"
    if missing := wanted["lengths"] - found["lengths"]:
        edge = {longest: "the longest", shortest: "the shortest"}.get(max(missing), "one in between")
        why = "torch.randint's upper bound is not drawn, so add 1"
        return f"there is never a span of {max(missing)} tokens ({edge}): {why}"
    if length <= _SHORT and length - 1 not in found["places"]:
        return "the last token is never in a span: the last possible start is length - span length; randint needs + 1"
    if length <= _SHORT and 1 not in found["places"]:
        return "token 1 is never in a span: a span may start right after the first token"
    if wanted["counts"] > {0, 1} and not found["orders"] >= {"up", "down"}:
        return "the second span always stands to the right of the first: both may stand anywhere"
    return None


def _seen(drawn: list[Tensor]) -> dict[str, set]:
    seen: dict[str, set] = {"counts": set(), "lengths": set(), "places": set(), "orders": set()}
    for spans in drawn:
        seen["counts"].add(int(spans.max()))
        seen["places"] |= set((spans > 0).nonzero()[:, 0].tolist())
        seen["lengths"] |= {int((spans == number).sum()) for number in range(1, int(spans.max()) + 1)}
        if spans.max() > 1:
            up = int((spans == 1).nonzero()[0]) < int((spans == 2).nonzero()[0])
            seen["orders"].add("up" if up else "down")
    return seen


def _reference(length: int, max_spans: int, shortest: int, longest: int, texts: int) -> list[Tensor]:
    options: dict[str, object] = {"max_spans": max_spans, "shortest": shortest, "longest": longest}
    generator = torch.Generator().manual_seed(0)
    return list(views.sample_spans(torch.ones(texts, length), generator=generator, **options))
