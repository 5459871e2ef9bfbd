"""LLM2Vec by hand: three steps that make a text encoder of a decoder (BehnamGhader et al., 2024, and its tutorial).

    1. attention in both directions       `read_both_ways`
    2. masked next-token prediction       `mntp`
    3. unsupervised contrast (SimCSE)     `simcse`

Each is a function on a stock model of transformers; the tutorial makes classes of its own instead. A few things that it
leaves as notes to itself:

The conceptual figure of step 1 is a mask in which everything is allowed: `viz.mask_figure` draws it. Why the tutorial
needs more than `is_causal = False`: that flag only tells the fast kernels what to do when they are given *no* mask, and
in most cases the model's forward pass makes a causal one and hands it to every layer. So the tutorial replaces the
functions that make it as well. They have other names in each release of transformers, as have the attention classes
(since version 5 there is one for all implementations). An explicit four-dimensional `attention_mask` is taken as it is
by all of them, with the same states as the tutorial's classes, so nothing has to be replaced.

Labels are shifted once, and somebody has to do it: a decoder's output at l speaks of token l + 1. The tutorial's own
`forward` does not, so labels have to come shifted to it; transformers' `LlamaForCausalLM` shifts them itself and wants
them unshifted. Here `views.next_token_labels` does it. `shifted=False` shows what happens if nobody does.

The vectors are means over a text's tokens, without the opening token and any instruction, as in the public package
`llm2vec`: `Magnet.encode(texts, pooling="mean")` gives the same ones. This file trains in small what
`magnet-lab train llm2vec` trains in earnest.

`magnet-lab reproduce llm2vec-reach llm2vec-steps` takes the bundled model through the steps and says what each one
changes (`evaluation/llm2vec_steps.py`).
"""

import copy
import functools
from collections.abc import Callable, Sequence

import torch
from torch import BoolTensor, LongTensor, Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from magnet_lab import Magnet, encoding, views
from magnet_lab.attention import attention_mask, bidirectional, causal
from magnet_lab.data import pairs, rows
from magnet_lab.data.rows import Corpus
from magnet_lab.decoder import hidden_states, pad, start_ids, text_ids, vocabulary_scores
from magnet_lab.evaluation import masked
from magnet_lab.objectives import info_nce, mntp_loss

LENGTH = 64  # tokens of a text, at most
ROWS, SENTENCES = 8, 32  # texts in a batch of step 2, sentences in one of step 3


def read_both_ways(model: PreTrainedModel, input_ids: LongTensor, tokens: Tensor) -> Tensor:
    """Step 1: the last hidden states with every token seen by every other, `(batch, length, hidden)`.

    Args:
        model: any decoder; it is not changed, and can generate in between.
        input_ids: `(batch, length)`.
        tokens: `(batch, length)`, 1 (True) at a token, 0 at padding on either side.
    """
    return hidden_states(model, input_ids, bidirectional(tokens))


def mntp(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    input_ids: LongTensor,
    tokens: Tensor,
    generator: torch.Generator,
    *,
    shifted: bool = True,
) -> Tensor:
    """Step 2: a fifth of the tokens is hidden, and each is to be told from the output one position to its left.

    Args:
        input_ids, tokens: as in `read_both_ways`.
        generator: of the hidden tokens.
        shifted: if False, each is to be told from its own position, as in BERT: labels that nobody shifted.

    Returns:
        The mean cross entropy (nats) of the hidden tokens.
    """
    hidden, selected = views.corrupt(input_ids, bidirectional(tokens), tokenizer=tokenizer, generator=generator)
    label = views.next_token_labels if shifted else views.same_token_labels
    labels = label(input_ids, selected)
    asked = labels != views.NO_LABEL
    states = read_both_ways(model, hidden, tokens)
    return mntp_loss(vocabulary_scores(model, states[asked]), labels[asked])


def simcse(
    model: PreTrainedModel,
    input_ids: LongTensor,
    tokens: Tensor,
    pooled: BoolTensor,
    *,
    temperature: float = 0.05,
) -> Tensor:
    """Step 3: every sentence is read twice, and has to find itself among the others' second readings.

    The two readings differ by dropout alone, so the model has to be in training mode and have some
    (`attention_dropout` in its config). Without any, the loss is still defined and teaches only to keep others away.

    Args:
        input_ids, tokens: as in `read_both_ways`, of sentences that differ.
        pooled: `(batch, length)`, True at the tokens whose mean is the sentence's vector.
        temperature: SimCSE's τ.

    Returns:
        The mean loss (nats), `objectives.info_nce`.
    """
    first, second = (mean(read_both_ways(model, input_ids, tokens), pooled) for _ in range(2))
    return info_nce(first, second, temperature=temperature)


def mean(states: Tensor, pooled: BoolTensor) -> Tensor:
    """`(batch, length, hidden)` -> `(batch, hidden)`: the mean over the tokens that are marked."""
    weights = pooled[..., None].to(states.dtype)
    return (states * weights).sum(dim=1) / weights.sum(dim=1)


def text_batch(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> tuple[LongTensor, BoolTensor, BoolTensor]:
    """Texts as `input_ids`, `tokens` and `pooled`, `(batch, longest)` each, no longer than `LENGTH`."""
    made = [encoding.sentence_ids(tokenizer, text, "", "mean") for text in texts]
    input_ids, tokens = pad([ids[:LENGTH] for ids, _, _ in made])
    pooled = tokens.clone()
    for row, (_, start, _) in enumerate(made):
        pooled[row, :start] = False
    return input_ids, tokens, pooled


def adapt(
    model: PreTrainedModel,
    loss: Callable[[PreTrainedModel, int, torch.Generator], Tensor],
    steps: int,
    *,
    seed: int,
    lr: float,
    attention_dropout: float = 0.0,
) -> tuple[PreTrainedModel, list[float]]:
    """A copy of the model, trained with LoRA, whose matrices are added to the weights in the end.

    Args:
        model: stays as it is.
        loss: of the copy, at a step counted from 0, with a generator for all that is random in it.
        attention_dropout: while it is trained.

    Returns:
        The copy, a stock model again, and the loss of every step.
    """
    from peft import get_peft_model

    from magnet_lab.training import loop
    from magnet_lab.training.recipe import Lora

    generator, losses = torch.Generator().manual_seed(seed), []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # of LoRA's first weights and of dropout
        adapted = get_peft_model(copy.deepcopy(model), loop.lora_config(Lora())).train()
        copied = adapted.get_base_model()
        optimizer = torch.optim.AdamW([p for p in adapted.parameters() if p.requires_grad], lr=lr, weight_decay=0.0)
        with loop.attention_dropout(copied, attention_dropout):
            for step in range(steps):
                value = loss(copied, step, generator)
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
                losses.append(float(value.detach()))
    return adapted.merge_and_unload().eval(), losses


@torch.no_grad()
def reach(lab: Magnet, texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """What step 1 changes: how many tokens a token sees, and whether the first half of a text feels the second.

    The second half of each text is exchanged for that of the next text. How far the states of the first half turn is
    given as 1 - cosine, the mean over tokens.
    """
    halves = [ids[: len(ids) // 2 * 2] for text in texts if len(ids := text_ids(lab.tokenizer, text)[:LENGTH]) > 3]
    opening = start_ids(lab.tokenizer, required=True)
    found = {}
    for name, mode in (("causal", causal), ("both ways", bidirectional)):
        seen, turned = [], []
        for ids, other in zip(halves, [*halves[1:], halves[0]], strict=True):
            middle = len(opening) + len(ids) // 2
            changed = [*opening, *ids[: len(ids) // 2], *other[len(other) // 2 :]]
            states = []
            for row in ([*opening, *ids], changed):
                input_ids = torch.tensor([row], device=lab.device)
                span_ids = mode(torch.ones_like(input_ids))
                states.append(hidden_states(lab.model, input_ids, span_ids)[0, :middle])
            seen.append(float(attention_mask(mode(torch.ones(1, len(opening) + len(ids)))).float().sum(-1).mean()))
            turned.append(float(1 - torch.cosine_similarity(*states, dim=-1).mean()))
        found[name] = {
            "tokens that a token sees": sum(seen) / len(seen),
            "turn of the first half by another second half": sum(turned) / len(turned),
        }
    return found


@torch.no_grad()
def measure(
    model: PreTrainedModel, lab: Magnet, texts: Sequence[str], triplets: Sequence[pairs.Pair]
) -> dict[str, float]:
    """What steps 2 and 3 change.

    Args:
        lab: the base model, whose tokenizer is used.
        texts: for hidden tokens.
        triplets: a sentence, what means the same, and what looks like it and does not, each.
    """
    here = Magnet(model, lab.tokenizer)
    sentence, same, other = (list(column) for column in zip(*triplets, strict=True))
    vectors = here.encode([*sentence, *same, *other], instruction="", pooling="mean").view(3, len(sentence), -1)
    return {"hidden tokens found (%)": masked.accuracy(here, list(texts))} | _neighbours(*vectors)


@torch.no_grad()
def causal_baseline(lab: Magnet, triplets: Sequence[pairs.Pair]) -> dict[str, float]:
    """The same figures of vectors from before step 1, read under the causal mask."""
    vectors = []
    for column in zip(*triplets, strict=True):
        input_ids, tokens, pooled = (part.to(lab.device) for part in text_batch(lab.tokenizer, column))
        vectors.append(mean(hidden_states(lab.model, input_ids, causal(tokens)), pooled))
    return _neighbours(*vectors)


def _neighbours(sentence: Tensor, same: Tensor, other: Tensor) -> dict[str, float]:
    """Of vectors `(n, hidden)`: is a paraphrase nearest of all, nearer than a look-alike; how alike are strangers?"""
    cosines = encoding.similarity(sentence, same)
    own, strangers = cosines.diagonal(), ~torch.eye(len(cosines), dtype=torch.bool)
    look_alike = torch.cosine_similarity(sentence, other, dim=-1)
    return {
        "paraphrase is the nearest of all (%)": 100
        * float((cosines.argmax(1) == torch.arange(len(own))).float().mean()),
        "paraphrase nearer than the look-alike (%)": 100 * float((own > look_alike).float().mean()),
        "cosine of paraphrases": float(own.mean()),
        "cosine of strangers": float(cosines[strangers].mean()),
    }


@functools.cache
def bundled() -> Magnet:
    """The bundled model as it is, in float32: what the steps start from here."""
    return Magnet.from_pretrained("tiny", adapter=None, device="cpu", dtype=torch.float32)


@functools.cache  # step 3 goes on from it
def after_mntp(seed: int, steps: int, shifted: bool = True) -> tuple[PreTrainedModel, list[float]]:
    """Step 2 on the bundled model and stories; see `adapt`."""
    stories, lab = list(rows.texts(Corpus(["stories.txt"]))), bundled()

    def loss(model, step, generator):
        drawn = [stories[rows.place(step * ROWS + offset, len(stories), seed)] for offset in range(ROWS)]
        input_ids, tokens, _ = text_batch(lab.tokenizer, drawn)
        return mntp(model, lab.tokenizer, input_ids, tokens, generator, shifted=shifted)

    return adapt(lab.model, loss, steps, seed=seed, lr=1e-3)


def after_simcse(seed: int, mntp_steps: int, steps: int) -> tuple[PreTrainedModel, list[float]]:
    """Step 3 on what step 2 has left, with the bundled sentences; see `adapt`."""
    sentences = [first for first, _ in pairs.read("dropout", Corpus(["sentences.tsv"]))]

    def loss(model, step, generator):
        drawn = [sentences[rows.place(step * SENTENCES + i, len(sentences), seed)] for i in range(SENTENCES)]
        return simcse(model, *text_batch(bundled().tokenizer, drawn))

    model, _ = after_mntp(seed, mntp_steps)
    return adapt(model, loss, steps, seed=seed, lr=3e-4, attention_dropout=0.3)
