"""UniLMv2 against slow readings of its equations: orders, masks, the one pass, what leaks, heads and beam search."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from magnet_lab import attention
from magnet_lab.relatives.pseudo_masked import (
    cloze,
    decoding,
    experiments,
    finetuning,
    layout,
    masking,
    model,
    objectives,
    proof,
)
from magnet_lab.relatives.pseudo_masked import little_world as world
from magnet_lab.relatives.pseudo_masked.vocabulary import EOS, MASK, PSEUDO, SOS, SPECIAL, join, word_tokenizer
from magnet_lab.training.recipe import Optimizer
from magnet_lab.views import NO_LABEL

NO = NO_LABEL
SHAPE = model.Shape(vocabulary=40, hidden=16, layers=3, heads=2, inner=32, spread=0.3)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def a_model(seed: int = 0, **changes) -> model.Encoder:
    """Random weights, biases and norms too, far from uniform in what they say."""
    made = model.new_model(replace(SHAPE, **changes), seed).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator(seed))
    return made


@st.composite
def texts_with_orders(draw, longest: int = 14):
    """A text of one or two segments, and any factorization of some of its tokens: not only what Algorithm 1 draws."""
    words = st.lists(st.integers(len(SPECIAL), SHAPE.vocabulary - 1), min_size=1, max_size=longest // 2)
    text = join(*draw(st.lists(words, min_size=1, max_size=2)))
    places = [place for place, token in enumerate(text) if token >= len(SPECIAL)]
    hidden = draw(st.permutations(draw(st.lists(st.sampled_from(places), unique=True, min_size=1))))
    order = []
    while hidden:
        length = draw(st.integers(1, len(hidden)))
        order.append(list(hidden[:length]))
        hidden = hidden[length:]
    return text, order


# Which tokens are hidden, in which order.


@given(st.lists(st.booleans(), min_size=1, max_size=80), st.integers(0, 999))
@settings(max_examples=200)
def test_algorithm_1(maskable, seed):
    if not any(maskable):
        with pytest.raises(ValueError, match="none of the text's tokens"):
            masking.blockwise_masking(maskable, generator(seed))
        return
    order = masking.blockwise_masking(maskable, generator(seed))
    hidden = [position for step in order for position in step]
    assert len(hidden) == len(set(hidden)), "a token is hidden twice"
    assert all(maskable[position] for position in hidden)
    for step in order:
        assert step == list(range(step[0], step[0] + len(step))) and 1 <= len(step) <= 6, "a step is one stretch"
    assert len(hidden) >= 0.15 * sum(maskable) > len(hidden) - len(order[-1]), "it stops as soon as it may"


def test_blocks_are_two_fifths_of_the_draws_and_of_every_length():
    """In a text so long that blocks hardly meet: 60 % single tokens, 8 % of each length from 2 to 6."""
    order = masking.blockwise_masking([True] * 40_000, generator(), share=0.05)
    counts = [sum(len(step) == length for step in order) / len(order) for length in range(1, 7)]
    assert counts[0] == pytest.approx(0.6, abs=0.05)
    assert counts[1:] == pytest.approx([0.08] * 5, abs=0.03)
    starts = torch.tensor([step[0] for step in order]).double()
    assert starts.mean() == pytest.approx(20_000, rel=0.1) and starts.min() < 400 and starts.max() > 39_600


def test_the_first_and_the_last_token_can_be_hidden():
    first_of_all = [masking.blockwise_masking([True] * 4, generator(seed), share=0.01)[0] for seed in range(200)]
    assert {position for step in first_of_all for position in step} == {0, 1, 2, 3}
    assert max(map(len, first_of_all)) == 4  # a block may fill the text, and none runs over its end


def test_autoregressive_orders_are_all_equally_likely():
    orders = [masking.one_by_one([[4, 5], [2]], generator(seed)) for seed in range(600)]
    assert all(len(step) == 1 for order in orders for step in order)
    found = [tuple(position for step in order for position in step) for order in orders]
    for one in itertools.permutations([2, 4, 5]):
        assert 60 <= found.count(one) <= 140
    assert masking.left_to_right(range(3, 6)) == [[3], [4], [5]]


def test_eighty_ten_ten():
    shown = masking.eighty_ten_ten(1000, generator())
    found = torch.tensor([shown(7) for _ in range(5000)])
    masked, same = (found == MASK).double().mean(), (found == 7).double().mean()
    assert masked == pytest.approx(0.8, abs=0.02) and same == pytest.approx(0.1, abs=0.02)
    others = found[(found != MASK) & (found != 7)]
    assert others.min() >= len(SPECIAL) and others.max() < 1000 and len(others.unique()) > 250


# The row and its mask.

#          x1  x2  x3  x4  x5  x6
EXAMPLE = [11, 12, 13, 14, 15, 16]
ORDER = [[3, 4], [1]]  # 4, 5 → 2 of Figure 4, counted from 0


def test_figure_4():
    made = layout.one_pass([EXAMPLE], [ORDER])
    m, p = MASK, PSEUDO
    assert made.input_ids.tolist() == [[11, m, 13, m, m, 16, p, p, 14, 15, p, 12]]
    assert made.position_ids.tolist() == [[0, 1, 2, 3, 4, 5, 3, 4, 3, 4, 1, 1]]
    assert made.steps.tolist() == [[0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2]]
    assert made.ae_labels.tolist() == [[NO, 12, NO, 14, 15, NO, NO, NO, NO, NO, NO, NO]]
    assert made.par_labels.tolist() == [[NO, NO, NO, NO, NO, NO, 14, 15, NO, NO, 12, NO]]
    without_m = layout.one_pass([EXAMPLE], [ORDER], conventional=False)
    assert without_m.input_ids.tolist() == [[11, 13, 16, p, p, 14, 15, p, 12]]
    only_ae = layout.one_pass([EXAMPLE], [ORDER], pseudo=False)
    assert only_ae.input_ids.tolist() == [[11, m, 13, m, m, 16]] and only_ae.mask.all()


def test_figure_5():
    """Rows look, columns are seen: x1 M x3 M M x6, P4 P5 x4 x5, P2 x2."""
    given_only = [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    expected = [given_only] * 6 + [
        [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0],  # P4 and P5: the context and each other
        [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0],  # x4 and x5: no pseudo mask
        [1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0],
        [1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0],  # P2: what was told before it, not x2
        [1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 1],
    ]
    assert layout.one_pass([EXAMPLE], [ORDER]).mask[0, 0].int().tolist() == expected


def may_see(query: layout.Token, key: layout.Token, itself: bool) -> bool:
    """The rule in words, for one pair of tokens."""
    if itself:
        return True
    if key.step == -1:
        return False
    if key.step == 0:
        return True
    if key.is_pseudo:  # seen by the pseudo masks of its own step and by nobody else
        return query.is_pseudo and query.step == key.step
    if query.is_pseudo:  # true tokens of earlier steps, not of its own
        return key.step < query.step
    return key.step <= query.step


@given(st.lists(texts_with_orders(), min_size=1, max_size=3), st.booleans())
@settings(max_examples=100)
def test_mask_is_the_rule_in_words(pairs, conventional):
    texts, orders = zip(*pairs, strict=True)
    made = layout.one_pass(texts, orders, conventional=conventional)
    for row in range(len(texts)):
        tokens = [
            layout.Token(0, 0, 0, 0, step, pseudo)
            for step, pseudo in zip(made.steps[row].tolist(), made.pseudo[row].tolist(), strict=True)
        ]
        for (i, query), (j, key) in itertools.product(enumerate(tokens), repeat=2):
            assert bool(made.mask[row, 0, i, j]) == may_see(query, key, i == j)


@given(texts_with_orders())
@settings(max_examples=60)
def test_nothing_leaks_through_a_third_token(pair):
    mask = layout.one_pass([pair[0]], [pair[1]]).mask
    assert torch.equal(attention.receptive_field(mask, 8), mask)


def test_segments_padding_and_plain_texts():
    texts = [join([7, 8], [9]), join([7])]
    made = layout.plain(texts)
    assert made.input_ids.tolist() == [[SOS, 7, 8, EOS, 9, EOS], [SOS, 7, EOS, 0, 0, 0]]
    assert made.segment_ids.tolist() == [[0, 0, 0, 0, 1, 1], [0] * 6]
    assert made.steps.tolist() == [[0] * 6, [0, 0, 0, -1, -1, -1]]
    assert made.mask[0].all() and made.mask[1, 0, :3, :3].all() and not made.mask[1, 0, :3, 3:].any()
    assert (made.ae_labels == NO).all() and (made.par_labels == NO).all()
    encoder = a_model()
    alone = encoder(layout.plain(texts[1:]))
    assert torch.allclose(encoder(made)[1, :3], alone[0], atol=1e-5), "a neighbour in the batch changes a text"


def test_bad_orders_are_named():
    for order in ([[1], [1]], [[6]], [[-1]]):
        with pytest.raises(ValueError, match=r"the order \[\[.*names a position twice or one that is not in 0…5"):
            layout.one_pass([EXAMPLE], [order])


# The model.


def as_bert(encoder: model.Encoder):
    """transformers' BERT with the same weights."""
    from transformers import BertConfig, BertModel

    shape = encoder.shape
    bert = BertModel(
        BertConfig(
            vocab_size=shape.vocabulary,
            hidden_size=shape.hidden,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            intermediate_size=shape.inner,
            max_position_embeddings=shape.positions,
            attn_implementation="eager",
        ),
        add_pooling_layer=False,
    ).eval()
    ours, theirs = encoder.state_dict(), {}
    names = {
        "tokens": "embeddings.word_embeddings",
        "positions": "embeddings.position_embeddings",
        "segments": "embeddings.token_type_embeddings",
        "norm": "embeddings.LayerNorm",
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "output": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "inner": "intermediate.dense",
        "outer": "output.dense",
        "feed_forward_norm": "output.LayerNorm",
    }
    for name, weight in ours.items():
        path, _, kind = name.rpartition(".")
        block, _, module = path.rpartition(".")
        if module in names:
            theirs[f"{block.replace('blocks', 'encoder.layer')}.{names[module]}.{kind}".lstrip(".")] = weight
    missing, unexpected = bert.load_state_dict(theirs, strict=False)
    assert not unexpected and not [name for name in missing if "ids" not in name]
    return bert


@pytest.mark.parametrize("relative", [False, True])
def test_the_encoder_is_bert(relative):
    """The bias goes to BERT the way its mask does: added to the scores. It is worked out by loops here."""
    from transformers.models.t5.modeling_t5 import T5Attention

    encoder = a_model(relative=relative)
    made = layout.one_pass([EXAMPLE, join([20, 21], [22, 23])], [ORDER, [[2], [4]]])
    batch, width = made.input_ids.shape
    added = torch.zeros(batch, SHAPE.heads, width, width)
    for row, query, key in itertools.product(range(batch), range(width), range(width)):
        if not made.mask[row, 0, query, key]:
            added[row, :, query, key] = torch.finfo(torch.float32).min
        elif relative:
            distance = made.position_ids[row, key] - made.position_ids[row, query]
            bucket = T5Attention._relative_position_bucket(distance, True, SHAPE.buckets, SHAPE.furthest)
            added[row, :, query, key] = encoder.relative.weight[bucket]
    with torch.no_grad():
        states = as_bert(encoder)(
            input_ids=made.input_ids,
            position_ids=made.position_ids,
            token_type_ids=made.segment_ids,
            attention_mask=added,
        ).last_hidden_state
        ours = encoder(made)
    tokens = made.steps >= 0
    assert torch.allclose(ours[tokens], states[tokens], atol=1e-5)
    tied = states @ encoder.tokens.weight.T + encoder.vocabulary_bias
    assert torch.allclose(encoder.vocabulary_scores(ours)[tokens], tied[tokens], atol=1e-4)


def test_buckets_are_those_of_t5():
    from transformers.models.t5.modeling_t5 import T5Attention

    distances = torch.arange(-600, 601)
    for buckets, furthest in ((32, 128), (8, 20)):
        theirs = T5Attention._relative_position_bucket(distances, True, buckets, furthest)
        assert torch.equal(model.relative_bucket(distances, buckets, furthest), theirs)


def test_places_in_the_row_are_of_no_matter():
    made, shuffled = layout.one_pass([EXAMPLE], [ORDER]), torch.randperm(12, generator=generator())
    moved = replace(
        made,
        **{name: getattr(made, name)[:, shuffled] for name in ("input_ids", "position_ids", "segment_ids")},
        mask=made.mask[:, :, shuffled][:, :, :, shuffled],
    )
    encoder = a_model()
    assert torch.allclose(encoder(moved), encoder(made)[:, shuffled], atol=1e-5)


def test_a_text_longer_than_the_positions_is_named():
    with pytest.raises(ValueError, match="a text of 70 tokens is longer than the model's 64 positions"):
        a_model()(layout.plain([[7] * 70]))


def test_first_weights_follow_from_the_seed_and_leave_the_world_alone():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    one, same, other = (model.new_model(SHAPE, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(one.tokens.weight, same.tokens.weight) and not torch.equal(
        one.tokens.weight, other.tokens.weight
    )
    assert one.tokens.weight.std().item() == pytest.approx(SHAPE.spread, rel=0.1)


# One pass is many.


def by_itself(encoder: model.Encoder, text: list[int], order: masking.Order, number: int, conventional: bool):
    """log p of the tokens of step `number` from a row that holds nothing of what is told later; built by loops.

    Equation 5: p(x_m | what is given, and x of the steps before).
    """
    hidden = [position for step in order for position in step]
    tokens = []  # (shows, position, when it is known)
    for position, token in enumerate(text):
        if position not in hidden:
            tokens.append((token, position, 0))
        elif conventional:
            tokens.append((MASK, position, 0))
    for before in range(number):
        tokens += [(text[position], position, before + 1) for position in order[before]]
    tokens += [(PSEUDO, position, number + 1) for position in order[number]]
    size, ends = len(tokens), text.index(EOS) if EOS in text else len(text)
    mask = torch.zeros(1, 1, size, size, dtype=torch.bool)
    for query, key in itertools.product(range(size), repeat=2):
        mask[0, 0, query, key] = tokens[key][2] <= tokens[query][2]
    row = layout.Layout(
        input_ids=torch.tensor([[shows for shows, _, _ in tokens]]),
        position_ids=torch.tensor([[position for _, position, _ in tokens]]),
        segment_ids=torch.tensor([[int(position > ends) for _, position, _ in tokens]]),
        steps=None,
        pseudo=None,
        mask=mask,
        ae_labels=None,
        par_labels=None,
    )
    scores = encoder.vocabulary_scores(encoder(row))[0].log_softmax(dim=-1)
    places = range(size - len(order[number]), size)
    return [scores[place, text[tokens[place][1]]] for place in places]


@given(texts_with_orders(), st.booleans(), st.integers(0, 99))
@settings(max_examples=60)
@torch.no_grad()
def test_one_pass_gives_the_probabilities_of_every_instance(pair, conventional, seed):
    """The central claim: for PAR (any steps) and AR (steps of one), with [M] in the row and without."""
    (text, blocks), encoder = pair, a_model(seed % 5)
    for order in (blocks, masking.one_by_one(blocks, generator(seed))):
        made = layout.one_pass([text], [order], conventional=conventional)
        together = objectives.log_probs(encoder, made, made.par_labels)
        steps = [by_itself(encoder, text, order, number, conventional) for number in range(len(order))]
        apart = torch.stack([log_prob for step in steps for log_prob in step])
        assert torch.allclose(together, apart, rtol=0, atol=1e-5)
        kept = [cloze.instances([cloze.par_row(text, order, i, conventional=conventional)]) for i in range(len(order))]
        library = torch.cat([objectives.log_probs(encoder, instance, instance.par_labels) for instance in kept])
        assert torch.allclose(library, apart, rtol=0, atol=1e-5)


@given(texts_with_orders())
@settings(max_examples=30)
@torch.no_grad()
def test_ae_in_the_one_pass_is_bert(pair):
    """With PAR in the same row, [M] predicts what BERT predicts that never saw a pseudo mask."""
    text, order = pair
    encoder = a_model(relative=False)
    hidden = sorted(position for step in order for position in step)
    blanked = [MASK if position in hidden else token for position, token in enumerate(text)]
    segments = [int(EOS in text[:position]) for position in range(len(text))]
    states = as_bert(encoder)(
        input_ids=torch.tensor([blanked]), token_type_ids=torch.tensor([segments])
    ).last_hidden_state[0]
    scores = (states @ encoder.tokens.weight.T + encoder.vocabulary_bias).log_softmax(dim=-1)
    expected = torch.stack([scores[position, text[position]] for position in hidden])
    made = layout.one_pass([text], [order])
    assert torch.allclose(objectives.log_probs(encoder, made, made.ae_labels), expected, rtol=0, atol=1e-5)
    alone = cloze.everyone_sees_everyone(cloze.instances([cloze.ae_row(text, order)]))
    assert torch.allclose(objectives.log_probs(encoder, alone, alone.ae_labels), expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_where_the_one_pass_parts_from_bert():
    """An instance in which the context sees what has been told is the same with one layer, and not with two."""
    for layers, same in ((1, True), (2, False)):
        encoder = a_model(layers=layers)
        made = layout.one_pass([EXAMPLE], [ORDER])
        second = cloze.everyone_sees_everyone(cloze.instances([cloze.par_row(EXAMPLE, ORDER, 1)]))
        together = objectives.log_probs(encoder, made, made.par_labels)[-1:]
        apart = objectives.log_probs(encoder, second, second.par_labels)
        assert torch.allclose(together, apart, rtol=0, atol=1e-5) == same
        assert (together - apart).abs() > (0 if same else 1e-3) or same


def test_tokens_are_counted_both_ways():
    """Figure 4's example: twelve tokens, against 6 for AE, 6 + 2 for the first step and 6 + 2 + 1 for the second."""
    assert layout.one_pass([EXAMPLE], [ORDER]).input_ids.numel() == 12
    assert len(cloze.ae_row(EXAMPLE, ORDER)) == 6
    assert [len(cloze.par_row(EXAMPLE, ORDER, step)) for step in (0, 1)] == [8, 9]


def test_the_proof_as_figures():
    stories = ["Tom had a big red ball. He lost it in the old park by the river."]
    for name in ("AE", "AR", "PAR"):
        figures = proof.one_pass_is_many(stories, name, seeds=[0], texts=2)
        assert figures["largest difference (nats)"] < 1e-5 and figures["range (nats)"] > 1
        assert (figures["to BERT's reading (nats)"] > 1e-2) == (name != "AE")
    par, ar = (proof.tokens(512, name, texts=3) for name in ("AE + PAR", "AE + AR"))
    for one_pass in par["in one pass"]:
        assert 0.15 * 509 <= (one_pass - 512) / 2 < 0.15 * 509 + 6
    # AR: AE's row, then one row for every hidden token, each with the tokens told before it and one pseudo mask.
    for one_pass, apart, times in zip(*ar.values(), strict=True):
        hidden = (one_pass - 512) // 2
        assert apart == 512 + sum(512 + told + 1 for told in range(hidden))
        assert times == apart / one_pass


# What must not be known.


@given(texts_with_orders(), st.integers(0, 99))
@settings(max_examples=40)
@torch.no_grad()
def test_a_hidden_token_changes_nothing_that_must_not_know_it(pair, seed):
    """Three layers deep, to the last bit; and what may know of it does learn of it."""
    (text, order), encoder = pair, a_model(seed % 5)
    for number, step in enumerate(order, start=1):
        for position in step:
            other = [token + (token < 39) - (token == 39) if i == position else token for i, token in enumerate(text)]
            before, after = layout.one_pass([text], [order]), layout.one_pass([other], [order])
            changed = (encoder(after) != encoder(before)).any(dim=-1)[0].tolist()
            for place, has_changed in enumerate(changed):
                told, is_pseudo = int(before.steps[0, place]), bool(before.pseudo[0, place])
                may_know = told > number or (told == number and not is_pseudo)
                assert has_changed == may_know


@torch.no_grad()
def test_wrong_masks_leak():
    """Explicitly with one layer; implicitly, by way of the context, with two: the test above can see a leak."""
    for way, layers, leaks in (
        (proof.pseudo_masks_see_their_tokens, 1, True),
        (proof.context_sees_the_told, 1, False),
        (proof.context_sees_the_told, 2, True),
        (proof.conventional_masks_show_their_tokens, 1, True),
    ):
        encoder = model.new_model(replace(proof.SHAPE, layers=layers), 0)
        changes, own, _ = proof.change_each(encoder, EXAMPLE, ORDER, way)
        assert own.sum(dim=1).tolist() == [1, 1, 1]
        assert ((changes[own] > 1e-3) == leaks).all()


def test_the_leaks_as_figures():
    right, explicit, implicit, shown = (
        {layers: proof.leaks(change, layers, seeds=[0]) for layers in (1, 3)} for change in proof.WAYS.values()
    )
    assert all(changes == (0.0, 0.0) for changes in right.values())
    assert explicit[1][0] > 0.1
    assert implicit[1][0] == 0.0 < 0.1 < implicit[1][1]  # the context knows, and has no layer left to tell it
    assert implicit[3][0] > 0.1 < shown[1][0]


@torch.no_grad()
def test_a_conventional_mask_that_shows_the_token_leaks_it():
    """The 80/10/10 rule of Section 4.1 next to "[M] can be attended by all": x4 in view of its own pseudo mask."""
    encoder, other = a_model(layers=1), [*EXAMPLE[:3], 30, *EXAMPLE[4:]]
    for shown, leaks in ((lambda token: token, True), (lambda token: MASK, False)):
        before, after = (encoder(layout.one_pass([text], [ORDER], shown=shown)) for text in (EXAMPLE, other))
        assert bool((before[0, 6] != after[0, 6]).any()) == leaks


# Losses.


def test_equations_3_6_and_7():
    """Both losses as the sums that are printed, over one text of two, the softmax written out."""
    encoder = a_model()
    made = layout.one_pass([EXAMPLE, [11, 12, 13]], [ORDER, [[0]]])
    states = encoder(made)
    expected = {"ae": 0.0, "par": 0.0}
    for name, labels in (("ae", made.ae_labels), ("par", made.par_labels)):
        for row, place in (labels != NO).nonzero().tolist():
            scores = [
                float(states[row, place] @ encoder.tokens.weight[word] + encoder.vocabulary_bias[word])
                for word in range(SHAPE.vocabulary)
            ]
            highest = max(scores)
            below = math.log(sum(math.exp(score - highest) for score in scores)) + highest
            expected[name] -= (scores[int(labels[row, place])] - below) / 4  # hidden tokens in the batch
    found = objectives.losses(encoder, made)
    assert {name: loss.item() for name, loss in found.items()} == pytest.approx(expected, rel=1e-4)
    assert objectives.losses(encoder, layout.plain([EXAMPLE]))["par"] == 0
    sum(found.values()).backward()
    assert encoder.tokens.weight.grad[PSEUDO].abs().sum() > 0 and encoder.relative.weight.grad.abs().sum() > 0


# The same model, put to use.


def test_a_label_is_read_from_sos_alone():
    classifier = finetuning.Classifier(a_model(), classes=3)
    torch.nn.init.normal_(classifier.head.weight, generator=generator())
    made = layout.plain([join([7, 8]), join([9])])
    first = classifier.encoder(made)[:, 0]
    by_hand = [[float(weights @ vector) for weights in classifier.head.weight] for vector in first]
    assert torch.allclose(classifier(made), torch.tensor(by_hand), atol=1e-5)
    torch.nn.functional.cross_entropy(classifier(made), torch.tensor([0, 2])).backward()
    assert classifier.encoder.tokens.weight.grad.abs().sum() > 0  # the encoder learns as well


def test_spans():
    """The likeliest pair in order, found by trying all; the loss as printed sums; the question is out of reach."""
    scores = torch.randn(20, 2, 7, generator=generator())
    log_probs = scores.log_softmax(dim=-1)
    for row, found in enumerate(finetuning.best_spans(scores).tolist()):
        pairs = [(first, last) for first in range(7) for last in range(first, 7)]
        assert tuple(found) == max(pairs, key=lambda p: float(log_probs[row, 0, p[0]] + log_probs[row, 1, p[1]]))
    spans = torch.tensor([[1, 2]] * 20)
    expected = -sum(float(log_probs[row, 0, 1] + log_probs[row, 1, 2]) for row in range(20)) / 40
    assert finetuning.span_loss(scores, spans).item() == pytest.approx(expected, rel=1e-5)
    made = layout.plain([join([7, 8], [9, 10, 11])])
    probabilities = finetuning.SpanFinder(a_model())(made).softmax(dim=-1)[0]
    assert (probabilities[:, :4] == 0).all() and torch.allclose(probabilities[:, 4:].sum(dim=-1), torch.ones(2))


def test_sequence_to_sequence_is_a_prefix_lm_with_pseudo_masks():
    """Source 7 8, target 9 10: the true tokens see each other as in any prefix LM; [P] sees what stands before it."""
    made = finetuning.sequence_to_sequence([[7, 8]], [[9, 10]])
    p = PSEUDO
    assert made.input_ids.tolist() == [[SOS, 7, 8, EOS, p, 9, p, 10, p, EOS]]
    assert made.position_ids.tolist() == [[0, 1, 2, 3, 4, 4, 5, 5, 6, 6]]
    assert made.segment_ids.tolist() == [[0, 0, 0, 0, 1, 1, 1, 1, 1, 1]]
    assert made.par_labels.tolist() == [[NO, NO, NO, NO, 9, NO, 10, NO, EOS, NO]]
    true = ~made.pseudo[0]
    prefix = attention.attention_mask(attention.prefix(torch.ones(1, 7), 4))[0, 0]
    assert torch.equal(made.mask[0, 0][true][:, true], prefix)
    seen = [[i for i, sees in enumerate(row) if sees] for row in made.mask[0, 0][made.pseudo[0]].tolist()]
    assert seen == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 5, 6], [0, 1, 2, 3, 5, 7, 8]]


def test_smoothed_loss_by_hand():
    """Label smoothing 0.1: nine tenths of the true token, a tenth of all tokens alike."""
    encoder = a_model()
    made = finetuning.sequence_to_sequence([[7, 8]], [[9]])
    log_probs = encoder.vocabulary_scores(encoder(made))[0].log_softmax(dim=-1).tolist()
    expected = 0.0
    for place, label in ((4, 9), (6, EOS)):
        expected -= (0.9 * log_probs[place][label] + 0.1 * sum(log_probs[place]) / SHAPE.vocabulary) / 2
    assert finetuning.sequence_loss(encoder, made).item() == pytest.approx(expected, rel=1e-5)


TINY = {"vocabulary": len(SPECIAL) + 3}  # three words


def every_target(encoder: model.Encoder, source: list[int], longest: int, alpha: float) -> list[tuple[float, list]]:
    """All targets there can be, each scored by one teacher-forced pass; the best first."""
    words = range(len(SPECIAL), encoder.shape.vocabulary)
    found = []
    for length in range(longest + 1):
        for target in itertools.product(words, repeat=length):
            made = finetuning.sequence_to_sequence([source], [list(target)])
            log_prob = float(objectives.log_probs(encoder, made, made.par_labels).sum())
            found.append((log_prob / ((5 + length + 1) / 6) ** alpha, list(target)))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 3.0])
@torch.no_grad()
def test_a_wide_beam_finds_the_best_of_all(alpha):
    """Written step by step it has the score of the one pass over the whole target, so the two agree as well."""
    for seed in range(3):
        encoder = a_model(seed, **TINY)
        expected = every_target(encoder, [6, 8], 3, alpha)
        found = decoding.beam_search(encoder, [6, 8], beam=40, max_length=3, alpha=alpha)
        assert [hypothesis.tokens for hypothesis in found] == [target for _, target in expected]
        assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in expected], abs=1e-4)
        (first,) = decoding.beam_search(encoder, [6, 8], beam=40, max_length=3, alpha=alpha)[:1]
        narrow = decoding.beam_search(encoder, [6, 8], beam=4, max_length=3, alpha=alpha)
        assert len(narrow) == 4 and narrow[0].score <= first.score + 1e-5


@torch.no_grad()
def test_a_beam_of_one_takes_the_likeliest_token():
    """Until that is [EOS], or the target is as long as it may be."""
    lengths = set()
    for seed in range(8):
        encoder = a_model(seed, **TINY)
        with torch.no_grad():
            encoder.vocabulary_bias[EOS] += 1
        written: list[int] = []
        while len(written) < 4:
            made = finetuning.sequence_to_sequence([[7]], [[*written, 6]])  # what stands at the place is not looked at
            place = made.pseudo[0].nonzero()[len(written)].item()
            scores = encoder.vocabulary_scores(encoder(made))[0, place].tolist()
            token = max([EOS, *range(len(SPECIAL), TINY["vocabulary"])], key=scores.__getitem__)
            if token == EOS:
                break
            written.append(token)
        (found,) = decoding.beam_search(encoder, [7], beam=1, max_length=4, alpha=1.0)
        assert found.tokens == written
        lengths.add(len(written))
    assert len(lengths) > 1


def test_length_penalty_and_bad_settings():
    """Wu et al.: ((5 + |Y|) / (5 + 1))^α."""
    assert decoding.length_penalty(1, 0.7) == 1
    assert decoding.length_penalty(13, 0.5) == pytest.approx(math.sqrt(3))
    with pytest.raises(ValueError, match="a beam of 0"):
        decoding.beam_search(a_model(), [7], beam=0)


# The little world and the miniature of Table 6.


def test_what_the_little_world_tells():
    anna = world.Fact("anna", "hid", "red", "ball", "under the apple tree")
    assert anna.told() == "anna hid the red ball under the apple tree ."
    assert [anna.retold(way) for way in range(3)] == [
        "the red ball of anna is under the apple tree .",
        "under the apple tree is the red ball that anna hid .",
        "it was anna who hid the ball under the apple tree .",
    ]
    assert [anna.asked(way) for way in range(3)] == [
        ("where is the ball of anna ?", "under the apple tree"),
        ("what is it that anna hid ?", "the red ball"),
        ("who hid the red ball ?", "anna"),
    ]


def test_tasks_of_the_little_world():
    """Each answer is worked out from the text alone: what is asked for belongs to the fact that has the other words."""
    for seed in range(200):
        sentence, facts, label = world.headline(generator(seed))
        # Of the open classes a headline names two, and shares them with the fact that it tells.
        told = facts.split(" . ")
        names = [word for word in sentence.split() if word in world.PEOPLE + world.THINGS]
        fitting = [number for number, fact in enumerate(told) if set(names) <= set(fact.split())]
        assert label in (fitting or [2]) and (label == 2 or fitting == [label])
        question, facts, answer = world.question(generator(seed))
        (fact,) = [fact for fact in facts.split(" . ") if answer in fact]
        kinds = world.PEOPLE + world.THINGS + world.COLOURS
        assert {word for word in question.split() if word in kinds} <= set(fact.split())
        spoken = set(" ".join([facts, sentence, question]).split())
        assert spoken <= set(world.words())
    labels = [world.headline(generator(seed))[2] for seed in range(300)]
    assert all(70 <= labels.count(label) <= 130 for label in range(3))


def test_every_objective_hides_the_same_tokens():
    texts = [join([7] * 20, [8] * 10), join([9] * 15)]
    made = {
        name: experiments.hide(texts, o, generator(3)) for name, o in experiments.OBJECTIVES.items() if o.ae or o.par
    }

    def hidden(labels, of):
        return [sorted(of.position_ids[row][labels[row] != NO].tolist()) for row in range(2)]

    expected = hidden(made["AE"].ae_labels, made["AE"])
    assert all(expected)
    for name, of in made.items():
        for labels, wanted in ((of.ae_labels, "AE" in name), (of.par_labels, "AR" in name)):
            assert hidden(labels, of) == (expected if wanted else [[], []])
        in_one_step = max(int((of.steps[row][of.pseudo[row]] == 1).sum()) for row in range(2)) if "AR" in name else 0
        assert in_one_step == {"AE+AR": 1, "AR": 1, "AE": 0}.get(name, max(map(len, _steps(made["PAR"]))))


def _steps(of: layout.Layout) -> list[list[int]]:
    """The positions of the first step of each row."""
    return [of.position_ids[row][(of.steps[row] == 1) & of.pseudo[row]].tolist() for row in range(2)]


SMALL = experiments.Settings(
    hidden=32,
    layers=1,
    stories=64,
    steps=60,
    examples=16,
    tuning_steps=80,
    tuning=Optimizer(lr=1e-2, warmup=5, schedule="linear"),
    tested=20,
    beam=2,
)


def test_pretraining_lowers_both_losses():
    """From not knowing anything to more than how frequent the words are, on stories that were not trained on."""
    objective = experiments.OBJECTIVES["AE+PAR"]
    texts = [join(*map(experiments.ids, world.story(generator(seed)))) for seed in range(500, 532)]
    counts = Counter(token for text in texts for token in text if token >= len(SPECIAL))
    entropy = -sum(count / counts.total() * math.log(count / counts.total()) for count in counts.values())
    held_out = experiments.hide(texts, objective, generator())
    before, after = (
        objectives.losses(experiments.pretrain(objective, 0, replace(SMALL, steps=steps)), held_out)
        for steps in (1, 60)
    )
    for name in ("ae", "par"):
        assert after[name].item() < 0.85 * entropy < entropy < before[name].item()


def test_finetuning_learns_examples_by_heart():
    """Tested on what they were tuned on, all three heads get most of it right: the whole path of each task works."""
    settings = replace(SMALL, layers=2, tested=16)
    fixed = [getattr(world, kind)(generator(seed)) for kind in ("headline", "question") for seed in range(16)]
    by_kind = {world.headline: fixed[:16] * 2, world.question: fixed[16:] * 2}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "_examples", lambda make, seed, of: (by_kind[make][:16], by_kind[make][16:]))
        for task, chance in ((experiments.label, 34), (experiments.answer, 5), (experiments.ask, 1)):
            encoder = experiments.pretrain(experiments.OBJECTIVES["no pre-training"], 0, settings)
            assert chance + 30 < task(encoder, 0, replace(settings, tested=160 if task is experiments.ask else 16))


def test_words_and_special_tokens():
    tokenizer = word_tokenizer(["The cat sat. The cat!", "the [M] dog"], size=10)
    assert tokenizer.get_vocab_size() == 10 and tokenizer.id_to_token(PSEUDO) == "[P]"
    assert tokenizer.encode("THE cat").ids == [6, 7]  # by frequency, without case
    assert MASK not in tokenizer.encode("[M] [P]").ids
    assert join([7], [8, 9]) == [SOS, 7, EOS, 8, 9, EOS] and join([7]) == [SOS, 7, EOS]
