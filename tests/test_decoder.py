"""What the mask promises, seen in real models: no leak at any depth, on every backend, for every family."""

import pytest
import torch
from decoders import BACKENDS, FAMILIES, VOCABULARY, random_decoder
from hypothesis import given, settings
from test_attention import span_id_batches

from magnet_lab import decoder

#              0  1  2  3  4  5  6  7  8  9 10  11
SPAN_IDS = [0, 0, 0, 1, 1, 1, 0, 0, 2, 2, 0, -1]
CONTEXT = [0, 1, 2, 6, 7, 10]
FIRST_SPAN, SECOND_SPAN = [3, 4, 5], [8, 9]


def influence(model, at: int) -> list[int]:
    """The positions whose embeddings have any gradient in the scores at one position."""
    ids = torch.arange(1, len(SPAN_IDS) + 1)[None]
    kept = {}
    hook = model.get_input_embeddings().register_forward_hook(
        lambda module, inputs, output: (output.retain_grad(), kept.update(embeddings=output))[-1]
    )
    scores = decoder.logits(model, ids, torch.tensor([SPAN_IDS]))
    hook.remove()
    scores[0, at].square().sum().backward()
    return (kept["embeddings"].grad[0].abs().sum(dim=-1) != 0).nonzero()[:, 0].tolist()


@pytest.mark.parametrize("implementation", BACKENDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_leak(family, implementation):
    """Gradients through four layers are exactly zero where the rule says so, and not zero elsewhere."""
    model = random_decoder(family, implementation)
    for position in CONTEXT:
        assert influence(model, position) == CONTEXT
    for position in FIRST_SPAN:
        assert influence(model, position) == sorted(CONTEXT + [p for p in FIRST_SPAN if p <= position])
    for position in SECOND_SPAN:
        assert influence(model, position) == sorted(CONTEXT + [p for p in SECOND_SPAN if p <= position])


@pytest.mark.parametrize("family", FAMILIES)
def test_backends_agree(family):
    eager, sdpa = (random_decoder(family, implementation) for implementation in BACKENDS)
    ids, span_ids = torch.arange(1, len(SPAN_IDS) + 1)[None], torch.tensor([SPAN_IDS])
    with torch.no_grad():
        difference = decoder.logits(eager, ids, span_ids) - decoder.logits(sdpa, ids, span_ids)
    assert difference.abs().max() < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_flex_attention_agrees_and_does_not_leak(family):
    """FlexAttention compiles itself on first use, which needs a C++ compiler on a CPU."""
    sdpa, flex = random_decoder(family), random_decoder(family, "flex_attention")
    ids, span_ids = torch.arange(1, len(SPAN_IDS) + 1)[None], torch.tensor([SPAN_IDS])
    changed = ids.clone()
    changed[0, FIRST_SPAN] += 40
    with torch.no_grad():
        scores = decoder.logits(flex, ids, span_ids)
        assert (scores - decoder.logits(sdpa, ids, span_ids)).abs().max() < 1e-4
        after = decoder.logits(flex, changed, span_ids)
    assert torch.equal(scores[0, CONTEXT + SECOND_SPAN], after[0, CONTEXT + SECOND_SPAN])
    assert not torch.equal(scores[0, FIRST_SPAN], after[0, FIRST_SPAN])


@pytest.mark.parametrize("family", FAMILIES)
def test_special_cases_are_those_of_transformers(family):
    """Everything one span: the model's own causal mask, given nothing. And its own padding, from a 2-D mask."""
    model = random_decoder(family)
    ids = torch.randint(3, VOCABULARY, (2, 9), generator=torch.Generator().manual_seed(1))
    tokens = torch.ones_like(ids)
    tokens[1, :3] = 0  # padding on the left of the second text
    causal = torch.where(tokens.bool(), 1, -1)
    with torch.no_grad():
        ours = decoder.hidden_states(model, ids, causal)
        theirs = model.get_decoder()(
            input_ids=ids, attention_mask=tokens, position_ids=decoder.position_ids(causal)
        ).last_hidden_state
    assert (ours - theirs)[tokens.bool()].abs().max() < 1e-5


@given(span_id_batches(max_length=24))
@settings(max_examples=25)
def test_padding_and_batch_change_nothing(batch):
    """Any spans, any padding: each row of a batch is what it is alone, without padding."""
    model = random_decoder()
    span_ids = torch.tensor(batch)
    ids = torch.randint(3, VOCABULARY, span_ids.shape, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        together = decoder.hidden_states(model, ids, span_ids)
        assert together.isfinite().all()
        for row in range(len(span_ids)):
            kept = span_ids[row] != -1
            alone = decoder.hidden_states(model, ids[row, kept][None], span_ids[row, kept][None])
            assert (together[row, kept] - alone[0]).abs().max() < 1e-5


def test_scores_only_where_asked():
    model = random_decoder()
    ids, span_ids = torch.arange(1, len(SPAN_IDS) + 1)[None], torch.tensor([SPAN_IDS])
    with torch.no_grad():
        everywhere = decoder.logits(model, ids, span_ids)
        some = decoder.logits(model, ids, span_ids, at=torch.tensor([2, 7]))
    assert torch.allclose(some, everywhere[:, [2, 7]], atol=1e-6)


def test_a_sliding_window_bounds_the_text():
    assert decoder.max_length(random_decoder("llama")) == 256
    assert decoder.max_length(random_decoder("mistral", sliding_window=100)) == 100
    assert decoder.max_length(random_decoder("gemma3", sliding_window=100)) == 100
    assert decoder.max_length(random_decoder("qwen2", sliding_window=100, use_sliding_window=False)) == 256
