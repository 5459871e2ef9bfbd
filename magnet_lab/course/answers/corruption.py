"""Answers to the checks of what is hidden."""

import random

import torch

from magnet_lab.course.answers import right, wrong

# corrupt(input_ids, span_ids, mask_id, vocabulary_size, generator)


def _eligible(span_ids):
    eligible = span_ids == 0
    eligible[:, 1:] &= span_ids[:, :-1] == 0
    eligible[:, 0] = False
    return eligible


def _changed(input_ids, selected, mask_id, vocabulary_size, generator, mask=0.8, random=0.9):
    fate = torch.rand(input_ids.shape, generator=generator)
    drawn = torch.randint(vocabulary_size, input_ids.shape, generator=generator)
    corrupted = torch.where(selected & (fate < mask), mask_id, input_ids)
    return torch.where(selected & (fate >= mask) & (fate < random), drawn, corrupted)


@right("corrupt")
def corrupt_on_average(input_ids, span_ids, mask_id, vocabulary_size, generator):
    selected = _eligible(span_ids) & (torch.rand(input_ids.shape, generator=generator) < 0.2)
    return _changed(input_ids, selected, mask_id, vocabulary_size, generator), selected


@right("corrupt")
def corrupt_by_loops(input_ids, span_ids, mask_id, vocabulary_size, generator):
    corrupted = input_ids.tolist()
    selected = [[False] * len(row) for row in corrupted]
    for b, spans in enumerate(span_ids.tolist()):
        places = [p for p in range(1, len(spans)) if spans[p] == 0 and spans[p - 1] == 0]
        order = torch.randperm(len(places), generator=generator).tolist()
        for index in order[: round(0.2 * len(places))]:
            p = places[index]
            selected[b][p] = True
            fate = torch.rand((), generator=generator).item()
            if fate < 0.8:
                corrupted[b][p] = mask_id
            elif fate < 0.9:
                corrupted[b][p] = torch.randint(vocabulary_size, (), generator=generator).item()
    return torch.tensor(corrupted), torch.tensor(selected)


@wrong("corrupt", "every selected token becomes the mask token")
def corrupt_only_masks(input_ids, span_ids, mask_id, vocabulary_size, generator):
    selected = _eligible(span_ids) & (torch.rand(input_ids.shape, generator=generator) < 0.2)
    return input_ids.masked_fill(selected, mask_id), selected


@wrong("corrupt", "a row's first token, which nothing predicts")
def corrupt_first_token_too(input_ids, span_ids, mask_id, vocabulary_size, generator):
    eligible = span_ids == 0
    eligible[:, 1:] &= span_ids[:, :-1] == 0
    selected = eligible & (torch.rand(input_ids.shape, generator=generator) < 0.2)
    return _changed(input_ids, selected, mask_id, vocabulary_size, generator), selected


@wrong("corrupt", "right after a span")
def corrupt_after_spans_too(input_ids, span_ids, mask_id, vocabulary_size, generator):
    eligible = span_ids == 0
    eligible[:, 0] = False
    selected = eligible & (torch.rand(input_ids.shape, generator=generator) < 0.2)
    return _changed(input_ids, selected, mask_id, vocabulary_size, generator), selected


@wrong("corrupt", "it is a span token")
def corrupt_spans_too(input_ids, span_ids, mask_id, vocabulary_size, generator):
    eligible = span_ids >= 0
    eligible[:, 0] = False
    selected = eligible & (torch.rand(input_ids.shape, generator=generator) < 0.5)
    return _changed(input_ids, selected, mask_id, vocabulary_size, generator), selected


@wrong("corrupt", "it is padding")
def corrupt_padding_too(input_ids, span_ids, mask_id, vocabulary_size, generator):
    eligible = (span_ids == 0) | (span_ids == -1)
    eligible[:, 1:] &= span_ids[:, :-1] <= 0
    eligible[:, 0] = False
    selected = eligible & (torch.rand(input_ids.shape, generator=generator) < 0.2)
    return _changed(input_ids, selected, mask_id, vocabulary_size, generator), selected


@wrong("corrupt", "missing among the selected")
def corrupt_unchanged_not_selected(input_ids, span_ids, mask_id, vocabulary_size, generator):
    selected = _eligible(span_ids) & (torch.rand(input_ids.shape, generator=generator) < 0.2)
    corrupted = _changed(input_ids, selected, mask_id, vocabulary_size, generator)
    return corrupted, corrupted != input_ids


@wrong("corrupt", "15 %")
def corrupt_as_bert(input_ids, span_ids, mask_id, vocabulary_size, generator):
    selected = _eligible(span_ids) & (torch.rand(input_ids.shape, generator=generator) < 0.15)
    return _changed(input_ids, selected, mask_id, vocabulary_size, generator), selected


@wrong("corrupt", "the same seed gives two different answers")
def corrupt_without_generator(input_ids, span_ids, mask_id, vocabulary_size, generator):
    selected = _eligible(span_ids) & (torch.rand(input_ids.shape) < 0.2)
    return _changed(input_ids, selected, mask_id, vocabulary_size, generator), selected


@wrong("corrupt", "the same seed gives two different answers")
def corrupt_with_random_module(input_ids, span_ids, mask_id, vocabulary_size, generator):
    eligible = _eligible(span_ids)
    selected = torch.tensor([[bool(ok) and random.random() < 0.2 for ok in row] for row in eligible.tolist()])
    return _changed(input_ids, selected, mask_id, vocabulary_size, generator), selected


@wrong("corrupt", "counted over all tokens")
def corrupt_fifth_of_everything(input_ids, span_ids, mask_id, vocabulary_size, generator):
    eligible = _eligible(span_ids)
    selected = torch.zeros_like(eligible)
    for row in range(len(eligible)):
        places = eligible[row].nonzero()[:, 0]
        wanted = round(0.2 * int((span_ids[row] >= 0).sum()))
        selected[row, places[torch.randperm(len(places), generator=generator)[:wanted]]] = True
    return _changed(input_ids, selected, mask_id, vocabulary_size, generator), selected


@wrong("corrupt", "what the mask token left over")
def corrupt_tenth_of_the_rest(input_ids, span_ids, mask_id, vocabulary_size, generator):
    selected = _eligible(span_ids) & (torch.rand(input_ids.shape, generator=generator) < 0.2)
    masked = selected & (torch.rand(input_ids.shape, generator=generator) < 0.8)
    replaced = selected & ~masked & (torch.rand(input_ids.shape, generator=generator) < 0.1)
    drawn = torch.randint(vocabulary_size, input_ids.shape, generator=generator)
    return torch.where(masked, mask_id, torch.where(replaced, drawn, input_ids)), selected


@wrong("corrupt", "random tokens are all alike")
def corrupt_one_random_token(input_ids, span_ids, mask_id, vocabulary_size, generator):
    selected = _eligible(span_ids) & (torch.rand(input_ids.shape, generator=generator) < 0.2)
    fate = torch.rand(input_ids.shape, generator=generator)
    corrupted = input_ids.clone()
    corrupted[selected & (fate < 0.8)] = mask_id
    corrupted[selected & (fate >= 0.9)] = torch.randint(vocabulary_size, (), generator=generator)
    return corrupted, selected


@wrong("corrupt", "the two are swapped")
def corrupt_swapped(input_ids, span_ids, mask_id, vocabulary_size, generator):
    return corrupt_on_average(input_ids, span_ids, mask_id, vocabulary_size, generator)[::-1]


@wrong("corrupt", "changes its input input_ids in place")
def corrupt_in_place(input_ids, span_ids, mask_id, vocabulary_size, generator):
    selected = _eligible(span_ids) & (torch.rand(input_ids.shape, generator=generator) < 0.2)
    input_ids[selected] = mask_id
    return input_ids, selected


@wrong("corrupt", "another seed gives the same answer")
def corrupt_seeded(input_ids, span_ids, mask_id, vocabulary_size, generator):
    generator = torch.Generator().manual_seed(42)
    return corrupt_on_average(input_ids, span_ids, mask_id, vocabulary_size, generator)


# sample_spans(length, max_spans, shortest, longest, generator)


def _draw(low, high, generator):
    return int(torch.randint(low, high + 1, (1,), generator=generator))


@right("sample_spans")
def spans_by_free_places(length, max_spans, shortest, longest, generator):
    spans, room = torch.zeros(length, dtype=torch.long), length // 2
    for number in range(1, _draw(1, max_spans, generator) + 1):
        if room < shortest:
            break
        size = _draw(shortest, min(longest, room), generator)
        starts = [s for s in range(1, length - size + 1) if not spans[s - 1 : s + size + 1].any()]
        if not starts:
            break
        start = starts[_draw(0, len(starts) - 1, generator)]
        spans[start : start + size] = number
        room -= size
    return spans


@right("sample_spans")
def spans_by_trying(length, max_spans, shortest, longest, generator):
    ids, room, number = [0] * length, length // 2, 1
    for _ in range(_draw(1, max_spans, generator)):
        for _ in range(200):
            size = _draw(shortest, longest, generator)
            start = _draw(1, length - 1, generator)
            around = ids[start - 1 : start + size + 1]
            if size <= room and start + size <= length and not any(around):
                ids[start : start + size] = [number] * size
                room -= size
                number += 1
                break
    return torch.tensor(ids)


@wrong("sample_spans", "a span starts at the first token")
def spans_from_zero(length, max_spans, shortest, longest, generator):
    spans = torch.zeros(length, dtype=torch.long)
    size = min(_draw(shortest, longest, generator), length // 2)
    if size >= shortest:
        start = _draw(0, length - size, generator)
        spans[start : start + size] = 1
    return spans


@wrong("sample_spans", "two spans touch")
def spans_that_touch(length, max_spans, shortest, longest, generator):
    spans, room = torch.zeros(length, dtype=torch.long), length // 2
    for number in range(1, _draw(1, max_spans, generator) + 1):
        if room < shortest:
            break
        size = _draw(shortest, min(longest, room), generator)
        starts = [s for s in range(1, length - size + 1) if not spans[s : s + size].any()]
        if not starts:
            break
        start = starts[_draw(0, len(starts) - 1, generator)]
        spans[start : start + size] = number
        room -= size
    return spans


@wrong("sample_spans", "is not drawn, so add 1")
def spans_without_the_longest(length, max_spans, shortest, longest, generator):
    spans, room = torch.zeros(length, dtype=torch.long), length // 2
    for number in range(1, _draw(1, max_spans, generator) + 1):
        most = min(longest, room)
        if most < shortest:
            break
        size = int(torch.randint(shortest, max(most, shortest + 1), (), generator=generator))
        starts = [s for s in range(1, length - size + 1) if not spans[s - 1 : s + size + 1].any()]
        if not starts:
            break
        start = starts[int(torch.randint(len(starts), (), generator=generator))]
        spans[start : start + size] = number
        room -= size
    return spans


@wrong("sample_spans", "more than half of the text is span")
def spans_of_any_share(length, max_spans, shortest, longest, generator):
    spans = torch.zeros(length, dtype=torch.long)
    for number in range(1, _draw(1, max_spans, generator) + 1):
        size = _draw(shortest, min(longest, length - 1), generator)
        starts = [s for s in range(1, length - size + 1) if not spans[s - 1 : s + size + 1].any()]
        if not starts:
            break
        start = starts[_draw(0, len(starts) - 1, generator)]
        spans[start : start + size] = number
    return spans


@wrong("sample_spans", "cut off there")
def spans_past_the_end(length, max_spans, shortest, longest, generator):
    spans = torch.zeros(length, dtype=torch.long)
    size = _draw(shortest, min(longest, length // 2), generator) if length // 2 >= shortest else 0
    start = _draw(1, length - 1, generator)
    spans[start : start + size] = 1
    return spans


@wrong("sample_spans", "there are never 2 spans")
def spans_only_one(length, max_spans, shortest, longest, generator):
    spans = torch.zeros(length, dtype=torch.long)
    if length // 2 >= shortest:
        size = _draw(shortest, min(longest, length // 2), generator)
        start = _draw(1, length - size, generator)
        spans[start : start + size] = 1
    return spans


@wrong("sample_spans", "the same seed gives two different answers")
def spans_without_generator(length, max_spans, shortest, longest, generator):
    spans = torch.zeros(length, dtype=torch.long)
    if length // 2 >= shortest:
        size = int(torch.randint(shortest, min(longest, length // 2) + 1, (1,)))
        start = int(torch.randint(1, length - size + 1, (1,)))
        spans[start : start + size] = 1
    return spans


@wrong("sample_spans", "the last token is never in a span")
def spans_not_at_the_end(length, max_spans, shortest, longest, generator):
    spans, room = torch.zeros(length, dtype=torch.long), length // 2
    for number in range(1, _draw(1, max_spans, generator) + 1):
        if room < shortest:
            break
        size = _draw(shortest, min(longest, room), generator)
        starts = [s for s in range(1, length - size) if not spans[s - 1 : s + size + 1].any()]
        if not starts:
            break
        start = starts[_draw(0, len(starts) - 1, generator)]
        spans[start : start + size] = number
        room -= size
    return spans
