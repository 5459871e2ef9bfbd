"""Spans, corruption and labels: a hand-made example, and the rules in words for any text."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from magnet_lab import views
from magnet_lab.views import NO_LABEL, corrupt, make_views, mask_token_id, next_token_labels, sample_spans


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_labels_of_a_text_by_hand():
    """John was at [the gym] today and he ▢ : the token after a blank is nobody's target, the hidden one MNTP's."""
    #                   John was at  the gym today and he left
    ids = torch.tensor([[10, 11, 12, 13, 14, 15, 16, 17, 18]])
    span_ids = torch.tensor([[0, 0, 0, 1, 1, 0, 0, 0, 0]])
    hidden = torch.tensor([[0, 0, 0, 0, 0, 0, 0, 0, 1]]).bool()
    no = NO_LABEL
    assert next_token_labels(ids, span_ids > 0).tolist() == [[no, no, 13, 14, no, no, no, no, no]]
    assert next_token_labels(ids, hidden).tolist() == [[no, no, no, no, no, no, no, 18, no]]
    assert views.same_token_labels(ids, hidden).tolist() == [[no, no, no, no, no, no, no, no, 18]]


@st.composite
def batches(draw):
    """Rows of any length with padding on either side."""
    length = draw(st.integers(1, 60))
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        padding = draw(st.integers(0, length - 1))
        row = [1] * (length - padding)
        rows.append([0] * padding + row if draw(st.booleans()) else row + [0] * padding)
    return torch.tensor(rows)


@given(batches(), st.integers(0, 4), st.integers(1, 6), st.integers(0, 20), st.integers(0, 999))
@settings(max_examples=200)
def test_spans_keep_their_rules(tokens, max_spans, shortest, more, seed):
    span_ids = sample_spans(
        tokens, generator=generator(seed), max_spans=max_spans, shortest=shortest, longest=shortest + more
    )
    assert torch.equal(span_ids == -1, tokens == 0)
    for row, ids in zip(tokens.tolist(), span_ids.tolist(), strict=True):
        text = [number for number, token in zip(ids, row, strict=True) if token]
        assert text[0] == 0, "a span starts at the first token"
        numbers = sorted(set(text) - {0})
        assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) <= max_spans
        for number in numbers:
            places = [place for place, other in enumerate(text) if other == number]
            assert places == list(range(places[0], places[-1] + 1)), "a span is one stretch"
            assert shortest <= len(places) <= shortest + more
            assert text[places[0] - 1] == 0, "two spans touch"
        assert sum(number > 0 for number in text) * 2 <= len(text), "less than half is context"


def test_spans_of_the_paper_come_in_all_sizes_and_places():
    span_ids = sample_spans(torch.ones(400, 512), generator=generator())
    lengths = [int((row == number).sum()) for row in span_ids for number in row.unique() if number > 0]
    assert min(lengths) <= 8 and max(lengths) >= 120
    counts = [int(row.max()) for row in span_ids]
    assert set(counts) == {1, 2} and 0.4 < counts.count(1) / 400 < 0.6
    first_places = [int((row > 0).int().argmax()) for row in span_ids]
    assert min(first_places) < 20 and max(first_places) > 350


def test_a_share_of_rows_is_plain_text():
    span_ids = sample_spans(torch.ones(1000, 40), generator=generator(), shortest=2, longest=5, causal_share=0.25)
    plain = (span_ids == 1).all(dim=1).float().mean()
    assert 0.2 < plain < 0.3


def test_spans_that_are_sentences():
    """Four sentences of 6, 5, 7 and 6 tokens: the first opens the text, so a span is one of the other three."""
    ends = torch.zeros(200, 24, dtype=torch.bool)
    ends[:, [5, 10, 17, 23]] = True
    options = {"max_spans": 1, "shortest": 2, "longest": 10, "sentence_share": 1.0, "sentence_ends": ends}
    span_ids = sample_spans(torch.ones(200, 24), generator=generator(), **options)
    found = {tuple(row.nonzero()[:, 0].tolist()) for row in span_ids}
    assert found == {tuple(range(6, 11)), tuple(range(11, 18)), tuple(range(18, 24))}


@given(batches(), st.integers(0, 999))
@settings(max_examples=100)
def test_what_is_hidden(tiny_lab, tokens, seed):
    """A fifth of the context tokens that may be chosen, none of the others, and nothing else is touched."""
    tokenizer = tiny_lab.tokenizer
    span_ids = sample_spans(tokens, generator=generator(seed), shortest=2, longest=6)
    ids = torch.randint(0, len(tokenizer), tokens.shape, generator=generator(seed))
    corrupted, selected = corrupt(ids, span_ids, tokenizer=tokenizer, generator=generator(seed))
    assert torch.equal(corrupted[~selected], ids[~selected])
    for row in range(len(ids)):
        may = []
        for place in range(ids.shape[1]):
            is_context = span_ids[row, place] == 0
            has_context_before = place > 0 and span_ids[row, place - 1] == 0
            if is_context and has_context_before and int(ids[row, place]) not in tokenizer.all_special_ids:
                may.append(place)
        chosen = selected[row].nonzero()[:, 0].tolist()
        assert set(chosen) <= set(may)
        assert len(chosen) == round(len(may) * 0.2)


def test_eighty_ten_ten(tiny_lab):
    tokenizer = tiny_lab.tokenizer
    ids = torch.full((50, 400), 100)
    corrupted, selected = corrupt(ids, torch.zeros_like(ids), tokenizer=tokenizer, generator=generator())
    chosen = corrupted[selected]
    masked = (chosen == mask_token_id(tokenizer)).float().mean()
    same = (chosen == 100).float().mean()
    assert abs(masked - 0.8) < 0.02 and abs(same - 0.1) < 0.02 and abs(1 - masked - same - 0.1) < 0.02
    assert len(chosen.unique()) > 300  # the random ones are from the whole vocabulary
    places = selected.float().mean(dim=0)
    assert places[0] == 0 and places[1:].min() > 0  # anywhere but at the start


def test_labels_are_the_uncorrupted_tokens_and_do_not_overlap(tiny_lab):
    ids = torch.randint(3, 4000, (8, 64), generator=generator())
    made = make_views(
        ids, torch.ones_like(ids), tokenizer=tiny_lab.tokenizer, generator=generator(), shortest=4, longest=12
    )
    mntp, msg = made.mntp_labels != NO_LABEL, made.msg_labels != NO_LABEL
    assert not (mntp & msg).any()
    shifted = ids.roll(-1, dims=1)
    assert torch.equal(made.mntp_labels[mntp], shifted[mntp])
    assert torch.equal(made.msg_labels[msg], shifted[msg])
    assert (made.span_ids[mntp] == 0).all()
    assert msg.sum() == (made.span_ids > 0).sum()
    assert torch.equal(made.input_ids[made.span_ids > 0], ids[made.span_ids > 0])


def test_same_seed_same_views(tiny_lab):
    ids = torch.randint(3, 4000, (4, 64), generator=generator())
    a, b, c = (
        make_views(ids, torch.ones_like(ids), tokenizer=tiny_lab.tokenizer, generator=generator(seed))
        for seed in (1, 1, 2)
    )
    assert torch.equal(a.input_ids, b.input_ids) and torch.equal(a.span_ids, b.span_ids)
    assert not torch.equal(a.input_ids, c.input_ids)


def test_mask_token_is_the_underscore_or_the_one_named(tiny_lab):
    import copy

    tokenizer = copy.deepcopy(tiny_lab.tokenizer)
    assert tokenizer.decode([mask_token_id(tokenizer)]) == "_"
    tokenizer.mask_token = "<pad>"
    assert mask_token_id(tokenizer) == tokenizer.pad_token_id


def test_bad_settings_are_named(tiny_lab):
    with pytest.raises(ValueError, match="spans of 9 to 3 tokens"):
        sample_spans(torch.ones(1, 20), generator=generator(), shortest=9, longest=3)
    ids = torch.ones(1, 5, dtype=torch.long)
    with pytest.raises(ValueError, match=r"a share of 1\.5"):
        corrupt(ids, ids * 0, tokenizer=tiny_lab.tokenizer, generator=generator(), share=1.5)


def test_the_first_token_of_a_padded_row_is_nobodys_target(tiny_lab):
    """Padding on the left, and every token a span token: padding stands before the first, and predicts nothing."""
    ids, tokens = torch.tensor([[0, 0, 5, 6, 7]]), torch.tensor([[0, 0, 1, 1, 1]])
    made = make_views(ids, tokens, tokenizer=tiny_lab.tokenizer, generator=generator(), causal_share=1.0)
    assert made.msg_labels.tolist() == [[NO_LABEL, NO_LABEL, 6, 7, NO_LABEL]]


def test_more_bad_settings_are_named():
    with pytest.raises(ValueError, match="-1 spans a row"):
        sample_spans(torch.ones(1, 20), generator=generator(), max_spans=-1)
    with pytest.raises(ValueError, match="need sentence_ends"):
        sample_spans(torch.ones(1, 20), generator=generator(), sentence_share=0.5)
