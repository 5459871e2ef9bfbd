"""The rule against a slow reading of its words."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from magnet_lab import attention
from magnet_lab.attention import attention_mask, for_backend, mask_mod, receptive_field


def oracle(span_ids: list[list[int]]) -> torch.Tensor:
    """The rule written out, one pair of tokens at a time."""
    batch, length = len(span_ids), len(span_ids[0])
    mask = torch.zeros(batch, 1, length, length, dtype=torch.bool)
    for row, ids in enumerate(span_ids):
        for query in range(length):
            for key in range(length):
                if query == key:
                    sees = True
                elif ids[key] == -1:
                    sees = False
                elif ids[key] == 0:
                    sees = True
                else:
                    sees = ids[query] == ids[key] and key <= query
                mask[row, 0, query, key] = sees
    return mask


@st.composite
def span_id_batches(draw, max_length: int = 40):
    """Rows of 1…40 tokens: any mix of context, spans and padding, padding on either side or none."""
    length = draw(st.integers(1, max_length))
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        row, span = [], 0
        while len(row) < length:
            run = draw(st.integers(1, 8))
            if draw(st.booleans()):
                span += 1
                row += [span] * run
            else:
                row += [0] * run
        padding = draw(st.integers(0, length - 1))
        row = row[: length - padding]
        rows.append([-1] * padding + row if draw(st.booleans()) else row + [-1] * padding)
    return rows


@given(span_id_batches())
@settings(max_examples=200)
def test_mask_is_the_rule(span_ids):
    assert torch.equal(attention_mask(torch.tensor(span_ids)), oracle(span_ids))


@given(span_id_batches(max_length=20))
@settings(max_examples=50)
def test_flex_form_is_the_same_rule(span_ids):
    span_ids = torch.tensor(span_ids)
    batch, length = span_ids.shape
    b, q, k = torch.meshgrid(torch.arange(batch), torch.arange(length), torch.arange(length), indexing="ij")
    assert torch.equal(mask_mod(span_ids)(b, 0, q, k)[:, None], attention_mask(span_ids))


def test_figure_2():
    """Figure 2 of the paper for six tokens: causal, bidirectional, one span in the middle, two spans."""
    tokens = torch.ones(1, 6)
    assert torch.equal(attention_mask(attention.causal(tokens))[0, 0], torch.ones(6, 6).tril().bool())
    assert attention_mask(attention.bidirectional(tokens)).all()
    one_span = attention_mask(attention.magnet(tokens, [[(2, 4)]]))[0, 0].int()
    assert one_span.tolist() == [
        [1, 1, 0, 0, 1, 1],
        [1, 1, 0, 0, 1, 1],
        [1, 1, 1, 0, 1, 1],
        [1, 1, 1, 1, 1, 1],
        [1, 1, 0, 0, 1, 1],
        [1, 1, 0, 0, 1, 1],
    ]
    two_spans = attention_mask(attention.magnet(tokens, [[(1, 3), (4, 6)]]))[0, 0].int()
    assert two_spans.tolist() == [
        [1, 0, 0, 1, 0, 0],
        [1, 1, 0, 1, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 0, 0, 1, 0, 0],
        [1, 0, 0, 1, 1, 0],
        [1, 0, 0, 1, 1, 1],
    ]


@pytest.mark.parametrize("mode, pairs", [("bidirectional", 36), ("causal", 21), ("prefix", 24)])
def test_pairs_that_may_attend(mode, pairs):
    """Length 6, prefix 3: counted by hand, 6·6, 1+…+6, and 3·3 + 4 + 5 + 6."""
    tokens = torch.ones(1, 6)
    span_ids = attention.prefix(tokens, 3) if mode == "prefix" else getattr(attention, mode)(tokens)
    assert attention_mask(span_ids).sum() == pairs


def test_prefix_counts_tokens_not_padding():
    tokens = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0]])
    assert attention.prefix(tokens, 2).tolist() == [[-1, -1, 0, 0, 1], [0, 0, 1, -1, -1]]


def test_two_spans_side_by_side_stay_apart():
    span_ids = attention.magnet(torch.ones(1, 4), [[(0, 2), (2, 4)]])
    assert not attention_mask(span_ids)[0, 0, 2:, :2].any()


@given(span_id_batches(max_length=16), st.integers(1, 5))
@settings(max_examples=50)
def test_receptive_field_is_a_walk_of_that_many_steps(span_ids, layers):
    """Reachable in exactly `layers` steps, found by walking."""
    mask = attention_mask(torch.tensor(span_ids))
    field = receptive_field(mask, layers)
    for row in range(mask.shape[0]):
        sees = [set(line.nonzero()[:, 0].tolist()) for line in mask[row, 0]]
        for query, first in enumerate(sees):
            reached = first
            for _ in range(layers - 1):
                reached = set().union(*(sees[token] for token in reached))
            assert set(field[row, 0, query].nonzero()[:, 0].tolist()) == reached


@given(span_id_batches(max_length=24))
@settings(max_examples=50)
def test_nothing_leaks_through_a_third_token(span_ids):
    """Depth adds nothing for tokens that count; padding is never read."""
    mask = attention_mask(torch.tensor(span_ids))
    token = torch.tensor(span_ids)[:, None, :, None] != -1
    assert torch.equal(receptive_field(mask, 6) & token, mask & token)


def test_a_prefix_that_looks_ahead_leaks():
    """The mask that lets prefix tokens see the target (one that some texts print): depth 2 shows the whole target."""
    leaky = torch.ones(4, 4).tril().bool()
    leaky[:2] = True  # the two prefix tokens see everything
    assert not leaky[2, 3]
    assert receptive_field(leaky, 2)[2, 3]


def test_forms_for_backends():
    mask = attention_mask(torch.tensor([[0, 1, 1, 0]]))
    assert for_backend(mask, "sdpa", torch.float32) is mask
    for dtype in (torch.float32, torch.bfloat16):
        additive = for_backend(mask, "eager", dtype)
        assert additive.dtype == dtype
        assert torch.equal(additive == 0, mask)
        assert torch.equal(additive == torch.finfo(dtype).min, ~mask)
    with pytest.raises(ValueError, match="flash_attention_2.*sdpa"):
        for_backend(mask, "flash_attention_2", torch.float32)


def test_bad_span_ids_are_named():
    for bad in (torch.zeros(4, dtype=torch.long), torch.zeros(1, 4), torch.zeros(1, 4, dtype=torch.bool)):
        with pytest.raises(ValueError, match="span_ids must be integers of shape"):
            attention_mask(bad)
    with pytest.raises(ValueError, match=r"span \(2, 9\) of row 0"):
        attention.magnet(torch.ones(1, 4), [[(2, 9)]])
    with pytest.raises(ValueError, match="another span"):
        attention.magnet(torch.ones(1, 4), [[(0, 2), (1, 3)]])
    with pytest.raises(ValueError, match="at least one layer"):
        receptive_field(attention_mask(torch.tensor([[0]])), 0)
