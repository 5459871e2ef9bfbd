"""LLM2Vec's three steps against the tutorial's own classes, the public package's way to pool, and printed sums."""

import math

import pytest
import torch
from decoders import BACKENDS, random_decoder
from torch import nn
from transformers.models.llama import modeling_llama
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaDecoderLayer, LlamaModel

from magnet_lab import Magnet
from magnet_lab.attention import attention_mask, bidirectional, causal, for_backend
from magnet_lab.decoder import hidden_states
from magnet_lab.relatives import llm2vec
from magnet_lab.training.loop import attention_dropout
from magnet_lab.views import corrupt

# Each has as many tokens after a prompt as alone. Where the space before a text is a token of its own, the package
# leaves it out of its mean, as it counts the text's tokens from the end.
TEXTS = [
    "Tom had a red ball.",
    "The dog ran home to his mother because it was raining.",
    "A bird.",
    "There was a little boy named Tim. He loved to play with his friends, and one day they all went to the park.",
]


# The tutorial's classes, as far as transformers 5 needs them: it has one attention class for all implementations.


class ModifiedLlamaAttention(LlamaAttention):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.is_causal = False


class ModifiedLlamaDecoderLayer(LlamaDecoderLayer):
    def __init__(self, config, layer_idx: int):
        super().__init__(config, layer_idx)
        self.self_attn = ModifiedLlamaAttention(config=config, layer_idx=layer_idx)


class LlamaBiModel(LlamaModel):
    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList(
            [ModifiedLlamaDecoderLayer(config, layer_idx) for layer_idx in range(config.num_hidden_layers)]
        )
        self.post_init()


def padding_alone(config, inputs_embeds, attention_mask, **kwargs):
    """The tutorial's `_prepare_4d_attention_mask`: a mask to add, of nothing but padding."""
    blocked = (1 - attention_mask[:, None, None, :].to(inputs_embeds.dtype)).expand(-1, 1, inputs_embeds.shape[1], -1)
    return blocked.masked_fill(blocked.bool(), torch.finfo(inputs_embeds.dtype).min)


def tutorial_model(model) -> LlamaBiModel:
    """The tutorial's model with the weights of a stock one."""
    theirs = LlamaBiModel(model.config)
    theirs.load_state_dict(model.get_decoder().state_dict())
    return theirs.eval()


def padded(count: int = 3, length: int = 9) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and where there are tokens: whole, padded on the left, padded on the right."""
    ids = torch.randint(3, 97, (count, length), generator=torch.Generator().manual_seed(0))
    tokens = torch.ones_like(ids)
    tokens[1, :3] = 0
    tokens[2, 6:] = 0
    return ids, tokens


@pytest.mark.parametrize("implementation", BACKENDS)
def test_the_mask_gives_the_states_of_the_tutorials_classes(implementation, monkeypatch):
    model = random_decoder(implementation=implementation)
    theirs, (ids, tokens) = tutorial_model(model), padded()
    with torch.no_grad():
        ours = llm2vec.read_both_ways(model, ids, tokens)
        monkeypatch.setattr(modeling_llama, "create_causal_mask", padding_alone)
        wanted = theirs(input_ids=ids, attention_mask=tokens).last_hidden_state
    assert torch.allclose(ours[tokens.bool()], wanted[tokens.bool()], atol=1e-4)


@pytest.mark.parametrize("implementation", BACKENDS)
def test_the_flag_alone_does_not_make_it_bidirectional(implementation):
    """`is_causal = False` without the second half of the tutorial's step: still causal as soon as there is padding."""
    model = random_decoder(implementation=implementation)
    theirs, (ids, tokens) = tutorial_model(model), padded()
    with torch.no_grad():
        found = theirs(input_ids=ids, attention_mask=tokens).last_hidden_state
        wanted = hidden_states(model, ids, causal(tokens))
    assert torch.allclose(found[tokens.bool()], wanted[tokens.bool()], atol=1e-4)


def package_vectors(model: LlamaBiModel, tokenizer, texts: list[str], instruction: str = "") -> torch.Tensor:
    """What `llm2vec.LLM2Vec.encode` (0.2.3) does with its defaults, written after its source.

    `encode` joins instruction and text; `tokenize` pads on the left and marks the text's own tokens, from the end;
    `get_pooling` takes the mean over as many states from the end. Positions are not given, so padding counts.

    The package itself does not run with transformers 5. With transformers 4.46 its vectors of the bundled model and
    `Magnet.encode`'s differed by 2e-6 at most in any number, cosine 1 to 12 digits, with and without an instruction.
    """
    rows, own = [], []
    for text in texts:
        rows.append(tokenizer(f"{instruction.strip()} {text}" if instruction else text)["input_ids"])
        own.append(len(tokenizer(text, add_special_tokens=False)["input_ids"]))
    longest = max(map(len, rows))
    ids = torch.tensor([[tokenizer.eos_token_id] * (longest - len(row)) + row for row in rows])
    tokens = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    states = model(input_ids=ids, attention_mask=tokens).last_hidden_state
    return torch.stack([states[row, -length:].mean(dim=0) for row, length in enumerate(own)])


@pytest.mark.parametrize("instruction", ["", "Given the sentence, find its representation:"])
def test_vectors_are_those_of_the_public_package(instruction, tiny_lab, monkeypatch):
    theirs = tutorial_model(tiny_lab.model)
    ours = tiny_lab.encode(TEXTS, pooling="mean", instruction=instruction)
    by_hand = llm2vec.mean(*states_and_pooled(tiny_lab))
    monkeypatch.setattr(modeling_llama, "create_causal_mask", padding_alone)
    with torch.no_grad():
        wanted = package_vectors(theirs, tiny_lab.tokenizer, TEXTS, instruction)
    assert torch.cosine_similarity(ours.double(), wanted.double()).min() >= 0.99999
    assert torch.allclose(ours, wanted, atol=1e-4)
    if not instruction:
        assert torch.allclose(by_hand, wanted, atol=1e-4)


@torch.no_grad()
def states_and_pooled(lab: Magnet) -> tuple[torch.Tensor, torch.Tensor]:
    input_ids, tokens, pooled = llm2vec.text_batch(lab.tokenizer, TEXTS)
    return llm2vec.read_both_ways(lab.model, input_ids, tokens), pooled


def test_a_batch_of_texts_is_cut_and_its_opening_token_is_no_part_of_the_mean(tiny_lab):
    tokenizer = tiny_lab.tokenizer
    input_ids, tokens, pooled = llm2vec.text_batch(tokenizer, [TEXTS[2], "word " * 200])
    assert input_ids.shape == (2, llm2vec.LENGTH)
    own = tokenizer(TEXTS[2], add_special_tokens=False)["input_ids"]
    assert input_ids[0, pooled[0]].tolist() == own and tokens[0].sum() == len(own) + 1
    assert pooled[1].tolist() == [False] + [True] * (llm2vec.LENGTH - 1)


@torch.no_grad()
def test_mntp_is_the_loss_of_transformers_with_its_own_shift(tiny_lab):
    """`LlamaForCausalLM(labels=…)` shifts labels itself; given at the tokens' own places they mean the same as ours."""
    model, tokenizer = tiny_lab.model, tiny_lab.tokenizer
    input_ids, tokens, _ = llm2vec.text_batch(tokenizer, TEXTS)
    hidden, selected = corrupt(
        input_ids, bidirectional(tokens), tokenizer=tokenizer, generator=torch.Generator().manual_seed(3)
    )
    mask = for_backend(attention_mask(bidirectional(tokens)), model.config._attn_implementation, model.dtype)
    outputs = model(input_ids=hidden, attention_mask=mask, labels=torch.where(selected, input_ids, -100))
    ours = llm2vec.mntp(model, tokenizer, input_ids, tokens, torch.Generator().manual_seed(3))
    assert selected.any() and ours.item() == pytest.approx(outputs.loss.item(), rel=1e-4)

    own = outputs.logits.log_softmax(dim=-1)
    places = selected.nonzero().tolist()
    wanted = -sum(float(own[row, place, input_ids[row, place]]) for row, place in places) / len(places)
    unshifted = llm2vec.mntp(model, tokenizer, input_ids, tokens, torch.Generator().manual_seed(3), shifted=False)
    assert unshifted.item() == pytest.approx(wanted, rel=1e-4)


def test_simcse_is_its_equation():
    """Without dropout both readings are one: - log of e^(1/τ) over the sum of e^(cos/τ), for each sentence."""
    model, (ids, tokens) = random_decoder(), padded()
    pooled = tokens.bool().clone()
    pooled[:, 0] = False
    with torch.no_grad():
        found = llm2vec.simcse(model, ids, tokens, pooled, temperature=0.5).item()
        states = hidden_states(model, ids, bidirectional(tokens))
    vectors = []
    for row in range(3):
        marked = [states[row, place] for place in range(9) if pooled[row, place]]
        vector = sum(marked) / len(marked)
        vectors.append(vector / vector.norm())
    total = 0.0
    for i in range(3):
        below = sum(math.exp(float(vectors[i] @ vectors[j]) / 0.5) for j in range(3))
        total -= math.log(math.exp(float(vectors[i] @ vectors[i]) / 0.5) / below)
    assert found == pytest.approx(total / 3, rel=1e-4)


def test_the_two_readings_differ_by_dropout_alone(monkeypatch):
    model, (ids, tokens) = random_decoder(), padded()
    readings = []
    monkeypatch.setattr(llm2vec, "info_nce", lambda first, second, temperature: readings.append((first, second)))
    for dropout, training in ((0.0, False), (0.0, True), (0.3, False), (0.3, True)):
        with torch.no_grad(), attention_dropout(model.train(training), dropout):
            llm2vec.simcse(model, ids, tokens, tokens.bool())
    assert [torch.equal(first, second) for first, second in readings] == [True, True, True, False]


def test_adapting_trains_a_copy(tiny_lab):
    """Eight texts, again and again: they are learnt by heart, the base stays, and the same seed gives the same."""
    before = {name: parameter.clone() for name, parameter in tiny_lab.model.named_parameters()}
    random_state = torch.get_rng_state()
    batch = llm2vec.text_batch(tiny_lab.tokenizer, TEXTS)

    def loss(model, step, generator):
        return llm2vec.simcse(model, *batch)

    options = {"lr": 1e-3, "attention_dropout": 0.3}
    (model, losses), (other, same), (_, others) = (
        llm2vec.adapt(tiny_lab.model, loss, 3, seed=seed, **options) for seed in (0, 0, 1)
    )
    assert losses == same != others
    _, without_dropout = llm2vec.adapt(tiny_lab.model, loss, 1, seed=0, lr=1e-3)
    assert without_dropout[0] != losses[0]  # LoRA starts as nothing, so only dropout can differ here
    assert torch.equal(random_state, torch.get_rng_state())
    assert all(torch.equal(before[name], parameter) for name, parameter in tiny_lab.model.named_parameters())
    changed = [name for name, parameter in model.named_parameters() if not torch.equal(before[name], parameter)]
    assert changed and all("layers" in name for name in changed)  # neither embeddings nor the head
    assert type(model) is type(tiny_lab.model) and not model.training and not model.get_decoder().training
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_training_lowers_the_loss(tiny_lab):
    batch = llm2vec.text_batch(tiny_lab.tokenizer, TEXTS)

    def loss(model, step, generator):  # the same tokens hidden each time
        return llm2vec.mntp(model, tiny_lab.tokenizer, *batch[:2], torch.Generator().manual_seed(0))

    _, losses = llm2vec.adapt(tiny_lab.model, loss, 8, seed=0, lr=2e-3)
    assert losses[-1] < 0.8 * losses[0]


def test_what_step_1_changes(tiny_lab):
    found = llm2vec.reach(tiny_lab, TEXTS)
    assert found["causal"]["turn of the first half by another second half"] == pytest.approx(0, abs=1e-6)
    assert found["both ways"]["turn of the first half by another second half"] > 0.01
    # With n tokens in a row a token sees (n + 1) / 2 of them on average, or all.
    seen = {name: figures["tokens that a token sees"] for name, figures in found.items()}
    assert seen["causal"] == pytest.approx((seen["both ways"] + 1) / 2)


def test_neighbours_by_hand():
    """The first sentence finds its paraphrase; the second is nearer to its look-alike; the third to another's."""
    a, b, c = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    found = llm2vec._neighbours(torch.stack([a, a, b]), torch.stack([a, b, c]), torch.stack([b, a, a]))
    # Cosines with all paraphrases: 1 0 0.6, 1 0 0.6, 0 1 0.8; with their own look-alikes: 0, 1, 0.
    assert list(found.values()) == pytest.approx([100 / 3, 200 / 3, 1.8 / 3, 3.2 / 6])


def test_step_3_goes_on_from_step_2():
    """With no step of its own it is step 2's model; each is trained on its own texts, from its seed."""
    before, losses = llm2vec.after_mntp(0, 1)
    after, none = llm2vec.after_simcse(0, 1, 0)
    assert len(losses) == 1 and none == []
    assert all(torch.equal(a, b) for a, b in zip(before.parameters(), after.parameters(), strict=True))
    further, more = llm2vec.after_simcse(0, 1, 1)
    assert len(more) == 1 and any(
        not torch.equal(a, b) for a, b in zip(before.parameters(), further.parameters(), strict=True)
    )
    assert llm2vec.after_mntp(0, 1, False)[1] != losses
