"""Prefix LM against the chapter's own code, its equation term by term, and PyTorch's attention."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from magnet_lab.attention import attention_mask, receptive_field
from magnet_lab.objectives import msg_loss
from magnet_lab.relatives.prefix_lm import data, experiments, masks, training
from magnet_lab.relatives.prefix_lm.model import Attention, EncoderDecoder, PrefixLM, parameter_count

# What follows is the chapter's code, shortened where it only loops.


def create_prefix_lm_mask(seq_len, prefix_len):
    mask = torch.zeros(seq_len, seq_len)
    for i in range(prefix_len, seq_len):
        for j in range(i + 1, seq_len):
            mask[i, j] = float("-inf")
    return mask


class PrefixLMAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.d_model, self.n_heads, self.head_dim = d_model, n_heads, d_model // n_heads
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(d_model, d_model) for _ in range(3))
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, prefix_len):
        batch_size, seq_len, _ = x.shape
        q, k, v = (
            projection(x).view(batch_size, seq_len, self.n_heads, self.head_dim).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = torch.matmul(q, k.transpose(-2, -1)) / (self.head_dim**0.5)
        scores = scores + create_prefix_lm_mask(seq_len, prefix_len)
        output = torch.matmul(functional.softmax(scores, dim=-1), v)
        return self.out_proj(output.transpose(1, 2).contiguous().view(batch_size, seq_len, self.d_model))


class TinyPrefixLM(nn.Module):
    def __init__(self, vocab_size, d_model=128, n_heads=4, n_layers=2, max_len=128):
        super().__init__()
        self.token_emb = nn.Embedding(vocab_size, d_model)
        self.pos_emb = nn.Embedding(max_len, d_model)
        self.layer_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(0.1)
        self.attention_layers = nn.ModuleList([PrefixLMAttention(d_model, n_heads) for _ in range(n_layers)])
        self.ff_layers = nn.ModuleList(
            [
                nn.Sequential(
                    nn.Linear(d_model, d_model * 4), nn.GELU(), nn.Linear(d_model * 4, d_model), nn.Dropout(0.1)
                )
                for _ in range(n_layers)
            ]
        )
        self.attn_norms = nn.ModuleList([nn.LayerNorm(d_model) for _ in range(n_layers)])
        self.ff_norms = nn.ModuleList([nn.LayerNorm(d_model) for _ in range(n_layers)])
        self.output = nn.Linear(d_model, vocab_size)

    def forward(self, x, prefix_len):
        positions = torch.arange(x.shape[1]).unsqueeze(0)
        h = self.dropout(self.layer_norm(self.token_emb(x) + self.pos_emb(positions)))
        for attn, ff, attn_norm, ff_norm in zip(
            self.attention_layers, self.ff_layers, self.attn_norms, self.ff_norms, strict=True
        ):
            h = h + attn(attn_norm(h), prefix_len)
            h = h + ff(ff_norm(h))
        return self.output(h)


def compute_prefix_lm_loss(logits, targets, prefix_len):
    target_logits, target_labels = logits[:, prefix_len:, :], targets[:, prefix_len:]
    return functional.cross_entropy(target_logits.reshape(-1, logits.size(-1)), target_labels.reshape(-1))


NAMES = {  # theirs: ours
    "token_emb": "embeddings.tokens",
    "pos_emb": "embeddings.positions",
    "layer_norm": "embeddings.norm",
    "attention_layers.{}.q_proj": "blocks.{}.attention.query",
    "attention_layers.{}.k_proj": "blocks.{}.attention.key",
    "attention_layers.{}.v_proj": "blocks.{}.attention.value",
    "attention_layers.{}.out_proj": "blocks.{}.attention.out",
    "ff_layers.{}": "blocks.{}.feed_forward",
    "attn_norms.{}": "blocks.{}.attention_norm",
    "ff_norms.{}": "blocks.{}.feed_forward_norm",
    "output": "output",
}


def as_the_chapters(model: PrefixLM, vocabulary: int, hidden: int) -> TinyPrefixLM:
    """The chapter's model with the weights of ours."""
    theirs, ours = TinyPrefixLM(vocabulary, d_model=hidden, n_heads=2), model.state_dict()
    state = {}
    for name in theirs.state_dict():
        for old, new in [(old.format(n), new.format(n)) for old, new in NAMES.items() for n in range(2)]:
            if name.startswith(old + "."):
                state[name] = ours[new + name[len(old) :]]
    theirs.load_state_dict(state)
    return theirs.eval()


def small_model(rule=attention_mask, vocabulary: int = 7, **sizes) -> PrefixLM:
    """Random weights, larger than usual, so that no leak hides in rounding."""
    torch.manual_seed(0)
    model = PrefixLM(vocabulary, **{"hidden": 16, "heads": 2} | sizes, rule=rule).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            nn.init.normal_(parameter, std=0.5)
    return model


def rows(count: int = 3, length: int = 9, letters: int = 7) -> torch.Tensor:
    return torch.randint(letters, (count, length), generator=torch.Generator().manual_seed(1))


def prefix_ids(length: int, prefix_length: int, count: int = 3) -> torch.Tensor:
    return masks.mode_span_ids("prefix", torch.ones(count, length), prefix_length)


@pytest.mark.parametrize("length", [1, 4, 8])
def test_masks_are_what_the_chapter_says_and_what_its_code_makes(length):
    tokens = torch.ones(1, length)
    for prefix_length in range(1, length + 1):
        sound = torch.zeros(length, length, dtype=torch.bool)
        for query in range(length):
            for key in range(length):
                inside_prefix = query < prefix_length and key < prefix_length
                sound[query, key] = inside_prefix or key <= query
        span_ids = masks.mode_span_ids("prefix", tokens, prefix_length)
        assert torch.equal(attention_mask(span_ids)[0, 0], sound)
        assert torch.equal(masks.printed_mask(span_ids)[0, 0], create_prefix_lm_mask(length, prefix_length) == 0)


def test_pairs_and_reach():
    """Counted by hand: 6·6, 1 + … + 6, 3·3 + 4 + 5 + 6, and 3·6 + 4 + 5 + 6."""
    found = {name: experiments.mask(name) for name in experiments.MASKS}
    assert [figures["pairs"] for figures in found.values()] == [36, 21, 24, 33]
    sound, printed = found["prefix"], found["prefix, as printed"]
    # Of three targets the first has two later ones and the second has one.
    assert [figures["later targets in reach, two layers"] for figures in (sound, printed)] == [0, 3]
    assert sound["prefix states moved by another target"] == 0 < 0.01 < printed["prefix states moved by another target"]


def test_padding_is_seen_by_none_under_the_printed_mask():
    mask = masks.printed_mask(torch.tensor([[0, 0, 1, -1]]))[0, 0]
    assert mask[:, 3].tolist() == [False, False, False, True]


def test_one_prefix_length_for_each_row():
    span_ids = masks.mode_span_ids("prefix", torch.ones(2, 4), torch.tensor([[1], [3]]))
    assert span_ids.tolist() == [[0, 1, 1, 1], [0, 0, 0, 1]]


def test_the_model_has_the_chapters_parameters():
    assert parameter_count(PrefixLM(1000)) == parameter_count(TinyPrefixLM(1000)) == 670_184


@pytest.mark.parametrize("prefix_length", [1, 4, 9])
def test_the_model_is_the_chapters(prefix_length):
    model = small_model(masks.printed_mask)
    theirs = as_the_chapters(model, 7, 16)
    with torch.no_grad():
        ours = model(rows(), prefix_ids(9, prefix_length))
        assert torch.allclose(ours, theirs(rows(), prefix_length), atol=1e-4)


def test_the_printed_split_is_the_chapters_loop():
    """`get_prefix_lm_batch` for given rows: inputs and labels shifted, the prefix one shorter."""
    model = small_model(masks.printed_mask)
    theirs = as_the_chapters(model, 7, 16)
    for prefix_length in (2, 5, 8):
        input_ids, labels, prefix_len = rows()[:, :-1], rows()[:, 1:], max(1, prefix_length - 1)
        with torch.no_grad():
            wanted = compute_prefix_lm_loss(theirs(input_ids, prefix_len), labels, prefix_len)
            batch = data.printed_split(rows(), torch.full((3,), prefix_length))
            found = msg_loss(model(batch.input_ids, batch.span_ids), batch.labels)
        assert found.item() == pytest.approx(wanted.item(), rel=1e-5)


def test_attention_is_pytorchs():
    torch.manual_seed(0)
    ours, theirs = Attention(16, 4), nn.MultiheadAttention(16, 4, batch_first=True)
    linears = (ours.query, ours.key, ours.value)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([linear.weight for linear in linears]))
        theirs.in_proj_bias.copy_(torch.cat([linear.bias for linear in linears]))
        theirs.out_proj.load_state_dict(ours.out.state_dict())
    states, memory = torch.randn(2, 3, 16), torch.randn(2, 5, 16)
    mask = torch.tensor([[1, 0, 0, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]], dtype=torch.bool)
    read, weights = ours(states, memory, mask[None, None])
    wanted, wanted_weights = theirs(states, memory, memory, attn_mask=~mask, average_attn_weights=False)
    assert torch.allclose(read, wanted, atol=1e-6) and torch.allclose(weights, wanted_weights, atol=1e-6)


def test_the_loss_is_the_equation():
    """- log p(x_t | x_1 … x_{t-1}) summed over t > k, each term from a pass over nothing but what it depends on."""
    model, k = small_model(), 4
    total = 0.0
    with torch.no_grad():
        for row in rows():
            for t in range(k, 9):
                span_ids = torch.tensor([[0] * k + [1] * (t - k)])
                scores = model(row[None, :t], span_ids)[0, -1].double()
                total -= math.log(math.exp(scores[row[t]]) / sum(math.exp(score) for score in scores))
        batch = data.split(rows(), torch.full((3,), k))
        loss = msg_loss(model(batch.input_ids, batch.span_ids), batch.labels)
    assert loss.item() == pytest.approx(total / (3 * 5), rel=1e-5)
    assert training.losses_in_writing(model, rows(), k).mean().item() == pytest.approx(total / (3 * 5), rel=1e-5)
    assert training.losses_by_position(model, rows(), k).mean().item() == pytest.approx(total / (3 * 5), rel=1e-5)


@pytest.mark.parametrize("layers, leaks", [(1, False), (2, True)])
def test_the_printed_mask_leaks_from_the_second_layer_on(layers, leaks):
    """Another token at place 7: does the target token at place 5 notice?"""
    changed = rows().clone()
    changed[:, 7] = (changed[:, 7] + 1) % 7
    for rule, expected in ((attention_mask, False), (masks.printed_mask, leaks)):
        model = small_model(rule, layers=layers)
        with torch.no_grad():
            before, after = (model(ids, prefix_ids(9, 4))[:, 5] for ids in (rows(), changed))
        assert torch.equal(before, after) != expected
        assert bool(receptive_field(rule(prefix_ids(9, 4)), layers)[0, 0, 5, 7]) == expected


def test_what_training_sees_is_what_writing_meets_but_not_under_the_printed_mask():
    for rule, same in ((attention_mask, True), (masks.printed_mask, False)):
        model = small_model(rule)
        in_training = training.losses_by_position(model, rows(), 4)
        in_writing = training.losses_in_writing(model, rows(), 4).mean(dim=0)
        assert torch.allclose(in_training, in_writing, atol=1e-4) == same


def test_weights_are_those_of_the_pass():
    model, span_ids = small_model(), prefix_ids(9, 4)
    states, layers = model.read(rows(), span_ids)
    assert [tuple(weights.shape) for weights in layers] == [(3, 2, 9, 9)] * 2
    for weights in layers:
        assert torch.allclose(weights.sum(dim=-1), torch.ones(3, 2, 9))
        assert ((weights > 0) == attention_mask(span_ids)).all()
    assert torch.equal(model.output(states), model(rows(), span_ids))


def influence(model, at: int, span_ids: torch.Tensor) -> list[int]:
    """The places whose token vectors have any gradient in the scores at one place."""
    kept = {}
    hook = model.embeddings.register_forward_hook(
        lambda module, inputs, output: (output.retain_grad(), kept.update(embeddings=output))[-1]
    )
    model(rows(1), span_ids)[0, at].square().sum().backward()
    hook.remove()
    return (kept["embeddings"].grad[0].abs().sum(dim=-1) != 0).nonzero()[:, 0].tolist()


def test_encoder_decoder_sees_the_prefix_and_what_is_written():
    torch.manual_seed(0)
    model = EncoderDecoder(7, hidden=16, heads=2).eval()
    for at in range(3, 9):
        assert influence(model, at, prefix_ids(9, 4, 1)) == list(range(at + 1))


@torch.no_grad()
def test_encoder_and_decoder_are_two_models_on_two_rows():
    """The same layers run apart: an encoder on the prefix alone, a decoder on the last prefix token and the target."""
    torch.manual_seed(0)
    model = EncoderDecoder(7, hidden=16, heads=2).eval()
    embedded = model.embeddings(rows())
    memory, states = embedded[:, :4], embedded[:, 3:]
    everything, causal = torch.ones(1, 1, 4, 4).bool(), torch.ones(1, 1, 6, 6).tril().bool()
    for block in model.encoder:
        memory, _ = block(memory, everything)
    for block in model.decoder:
        states, _ = block(states, causal, memory, torch.ones(1, 1, 6, 4).bool())
    wanted = model.output(states)
    assert torch.allclose(model(rows(), prefix_ids(9, 4))[:, 3:], wanted, atol=1e-6)
    # Where the target is not there yet, the prefix's last token says the same.
    assert torch.allclose(model(rows()[:, :4], prefix_ids(4, 4))[:, -1], wanted[:, 0], atol=1e-6)


def test_encoder_reads_in_both_directions():
    """An earlier prefix token swapped for its neighbour further right would not matter to a causal encoder's first."""
    torch.manual_seed(0)
    model = EncoderDecoder(7, hidden=16, heads=2, layers=1).eval()
    kept = []
    model.encoder[0].register_forward_hook(lambda module, inputs, output: kept.append(output[0]))
    changed = rows().clone()
    changed[:, 3] = (changed[:, 3] + 1) % 7
    with torch.no_grad():
        for ids in (rows(), changed):
            model(ids, prefix_ids(9, 4))
    assert not torch.allclose(kept[0][:, 0], kept[1][:, 0])


def test_the_chapters_text():
    characters = data.Characters(data.CHAPTER_TEXT)
    assert len(characters.letters) == 32 and len(data.CHAPTER_TEXT) == 216
    assert f"{math.log(len(characters.letters)):.4f}" == "3.4657"
    assert characters.decode(characters.encode("To be or")) == "To be or"
    assert characters.decode([characters.mask_token_id]) == "▢"
    with pytest.raises(ValueError, match="the character 'é' is not among"):
        characters.encode("é")


def test_windows_reach_both_ends_and_splits_keep_their_bounds():
    generator = torch.Generator().manual_seed(0)
    found = data.windows(torch.arange(12), 500, 10, generator)
    assert set(found[:, 0].tolist()) == {0, 1, 2} and (found.diff(dim=1) == 1).all()
    splits = data.random_splits(2000, 48, generator)
    assert splits.min() == 14 and splits.max() == 33  # 0.3 · 48 = 14.4 and 0.7 · 48 = 33.6, rounded down


def test_targets_by_hand():
    row = torch.tensor([[5, 6, 7, 8]])
    batch = data.split(row, torch.tensor([2]))
    assert batch.span_ids.tolist() == [[0, 0, 1, 1]] and batch.labels.tolist() == [[-100, 7, 8, -100]]
    batch = data.causal_split(row, torch.tensor([2]))
    assert batch.span_ids.tolist() == [[1, 1, 1, 1]] and batch.labels.tolist() == [[-100, 7, 8, -100]]


def test_a_batch_in_all_modes():
    characters, generator = data.Characters("abcdefgh"), torch.Generator().manual_seed(0)
    given = torch.randint(8, (6, 20), generator=generator)
    batch = data.in_all_modes(given, torch.full((6,), 5), characters, generator)
    # Each mode takes every third row: bidirectional 0 and 3, unidirectional 1 and 4, prefix 2 and 5.
    ids = given[[0, 3, 1, 4, 2, 5]]
    assert batch.span_ids.tolist() == [[0] * 20] * 2 + [[1] * 20] * 2 + [[0] * 5 + [1] * 15] * 2
    assert torch.equal(batch.input_ids[2:], ids[2:])
    assert torch.equal(batch.labels[2:4, :-1], ids[2:4, 1:]) and (batch.labels[:, -1] == -100).all()
    assert (batch.labels[4:, :4] == -100).all() and torch.equal(batch.labels[4:, 4:-1], ids[4:, 5:])
    asked = batch.labels[:2] != -100
    assert asked.sum(dim=1).tolist() == [3, 3]  # 15 % of the 19 tokens that stand after another
    assert torch.equal(batch.labels[:2][asked], ids[:2, 1:][asked[:, :-1]])
    hidden = batch.input_ids[:2] == characters.mask_token_id
    assert hidden.any() and (asked[:, :-1] | ~hidden[:, 1:]).all()


def test_fresh_rows():
    found = data.sorting_rows(50, 6, 9, torch.Generator().manual_seed(0))
    assert all(sorted(row[:6]) == row[6:] for row in found.tolist())


def test_training_follows_from_its_seed_and_leaves_the_random_state_alone():
    def run(seed):
        return training.fit(
            lambda: PrefixLM(7, 16, 2),
            lambda generator: data.split(data.random_rows(4, 8, 7, generator), data.random_splits(4, 8, generator)),
            3,
            seed=seed,
        )

    torch.manual_seed(5)
    before = torch.get_rng_state()
    (model, losses), (other, same_losses), (_, other_losses) = run(1), run(1), run(2)
    assert torch.equal(before, torch.get_rng_state())
    assert losses == same_losses != other_losses and not model.training
    assert torch.equal(model.output.weight, other.output.weight)


def test_training_learns_by_heart():
    ids = data.Characters("abcdefgh").encode("abcdefghgfedcba")
    model, losses = training.fit(
        lambda: PrefixLM(9, 32, 2),
        lambda generator: data.split(data.windows(ids, 8, 10, generator), data.random_splits(8, 10, generator)),
        150,
        seed=0,
        lr=5e-3,
    )
    assert losses[-1] < 0.3 * losses[0]
    assert training.write(model, ids[None, :5], 5).tolist() == [ids[:10].tolist()]


def test_writing_is_one_pass_for_each_token():
    model = small_model()
    written = training.write(model, rows()[:, :4], 3)
    with torch.no_grad():
        for place in range(4, 7):
            scores = model(written[:, :place], prefix_ids(place, 4))
            assert torch.equal(written[:, place], scores[:, -1].argmax(dim=-1))
        causal = training.write(model, rows(20), 5, mode="unidirectional")
        for place in range(9, 14):
            scores = model(causal[:, :place], torch.ones(20, place, dtype=torch.long))
            assert torch.equal(causal[:, place], scores[:, -1].argmax(dim=-1))
    assert not torch.equal(causal, training.write(model, rows(20), 5))
    drawn = [
        training.write(model, rows()[:, :4], 5, temperature=2.0, generator=torch.Generator().manual_seed(seed)).tolist()
        for seed in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    cold = training.write(model, rows()[:, :4], 3, temperature=1e-3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(cold, written)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="no mode 'both'; choose one of bidirectional, unidirectional, prefix"):
        masks.mode_span_ids("both", torch.ones(1, 3))
    with pytest.raises(ValueError, match="needs prefix_length"):
        masks.mode_span_ids("prefix", torch.ones(1, 3))
    with pytest.raises(ValueError, match="9 tokens is longer than the model's 8 positions"):
        small_model(positions=8)(rows(), prefix_ids(9, 4))
    with pytest.raises(ValueError, match="a row without a prefix"):
        EncoderDecoder(7, hidden=16, heads=2)(rows(), torch.ones(3, 9, dtype=torch.long))


def test_what_is_measured_of_the_chapters_training():
    """A few steps: each figure from the model's own scores, position by position."""
    model, losses = experiments.learn_chapter("prefix", 0, 4)
    found = experiments.chapter("prefix", 0, 4)
    assert found["first loss"] == losses[0] and found["last 20 losses"] == pytest.approx(sum(losses) / 4)
    assert found["fall (%)"] == pytest.approx(100 * (losses[0] - sum(losses) / 4) / losses[0])
    lost = {length: [[] for _ in range(14)] for length in range(14, 34)}
    with torch.no_grad():
        for length, by_place in lost.items():
            log_probs = model(experiments.ASKED, prefix_ids(48, length, len(experiments.ASKED))).log_softmax(dim=-1)
            for place in range(14):
                for row, scores in zip(experiments.ASKED, log_probs[:, length + place - 1], strict=True):
                    by_place[place].append(-float(scores[row[length + place]]))
    means = [sum(sum(lost[length][place]) / 43 for length in lost) / 20 for place in range(14)]
    assert found["1st target"] == pytest.approx(means[0], rel=1e-4)
    assert found["2nd to 5th"] == pytest.approx(sum(means[1:5]) / 4, rel=1e-4)
    assert found["10th to 14th"] == pytest.approx(sum(means[9:]) / 5, rel=1e-4)
    assert found["… in writing"] == pytest.approx(found["half a row"], rel=1e-4)  # a sound mask
    by_length = experiments.prefix_of(24, "prefix", 0, 4)
    assert by_length["loss"] == pytest.approx(found["half a row"], rel=1e-4)
    text = experiments.go_on(model, experiments.PREFIXES[0])
    assert text.startswith("The quick") and len(text) == 48


def test_even_weights_are_1_and_a_targets_share_is_of_what_it_sees():
    """After one step keys still look nearly alike, so a target's weight on the prefix is its share in what it sees."""
    found = experiments.attention(1, 0, 1)
    assert all(found[name] > 0.95 for name in ("evenness, prefix token", "evenness, target token"))
    share = sum(24 / seen for seen in range(25, 49)) / 24
    assert found["… if all were alike"] == pytest.approx(share, rel=1e-5)
    assert found["target's weight on the prefix"] == pytest.approx(share, abs=0.01)


@pytest.mark.slow
def test_under_the_printed_mask_more_is_known_than_can_be():
    """Letters drawn evenly from 8: ln 8 = 2.08 nats is the least that an honest loss can be, whatever is learnt."""
    found = {}
    for rule in (attention_mask, masks.printed_mask):
        model, _ = training.fit(
            lambda rule=rule: PrefixLM(8, 32, 2, rule=rule),
            lambda generator: data.printed_split(data.random_rows(16, 8, 8, generator), torch.full((16,), 4)),
            400,
            seed=0,
            lr=5e-3,
        )
        fresh = data.random_rows(256, 8, 8, torch.Generator().manual_seed(1))
        in_training = training.token_losses(model, data.printed_split(fresh, torch.full((256,), 4))).nanmean()
        found[rule] = float(in_training), float(training.losses_in_writing(model, fresh, 4).mean())
    assert all(loss > math.log(8) for loss in found[attention_mask])
    assert found[masks.printed_mask][0] < 0.7 * math.log(8) and found[masks.printed_mask][1] > math.log(8)
