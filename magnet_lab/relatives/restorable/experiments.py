"""The document's experiments in miniature, and one that it does not have: what a MAGNET vector still holds.

Each takes a setup and a seed and returns figures; `evaluation/re_restoration.py` makes the tables of them. What one
experiment makes and others need, a pre-trained encoder or a restoring one, is kept while the process lives.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from magnet_lab.model import Magnet
from magnet_lab.relatives.restorable import texts, training
from magnet_lab.relatives.restorable.decoders import Decoder
from magnet_lab.relatives.restorable.encoder import Encoder
from magnet_lab.relatives.restorable.layers import Shape, Words, linear

# Table 1: is what pre-training made frozen, and how many new layers come after it in the encoder (3 in the paper)?
CONFIGURATIONS = {"a": (False, 0), "b": (True, 0), "c": (False, 1), "d": (True, 1)}

SHAPE = Shape()


@dataclass(frozen=True)
class Setup:
    """What all runs share.

    Attributes:
        stories, held_out: to train on and to measure on, one story each.
        model: whose vectors are restored from, see `embedded`.
        steps, pretraining_steps, retrieval_steps: of the three trainings.
        batch: texts a step; of passages of n sentences n times fewer, so that it is about as many tokens.
        lr, retrieval_lr: highest learning rates.
        measured: held-out texts that are restored; of passages of n sentences n times fewer.
    """

    stories: tuple[str, ...]
    held_out: tuple[str, ...]
    model: str = "tiny"
    shape: Shape = SHAPE
    steps: int = 700
    pretraining_steps: int = 500
    retrieval_steps: int = 80
    batch: int = 16
    lr: float = 3e-3
    retrieval_lr: float = 1e-3
    measured: int = 150


@dataclass(frozen=True)
class Run:
    """One kind of restoration, a row of a table. The defaults are the paper's proposal in its plainest form."""

    decoder: str = "gating"
    pooling: str = "mean"
    configuration: str = "a"
    sentences: int = 1


@functools.cache
def pretrained(setup: Setup, seed: int) -> dict[str, Tensor]:
    """The weights of an encoder that has learned to find hidden tokens, for others to start from."""
    tokenizer, train, _ = data(setup, sentences=1)
    encoder = _seeded(seed, lambda: Encoder(setup.shape, Words(setup.shape)))
    training.pretrain(
        encoder, train, tokenizer, steps=setup.pretraining_steps, batch=setup.batch, lr=setup.lr, seed=seed
    )
    return encoder.state_dict()


@functools.cache
def restorer(setup: Setup, run: Run, seed: int) -> tuple[Encoder, Decoder]:
    """An encoder and a decoder, trained together to restore."""
    tokenizer, train, _ = data(setup, run.sentences)
    encoder = start(setup, run, seed)
    decoder = _seeded(seed, lambda: Decoder(run.decoder, setup.shape, encoder.words))
    training.train_to_restore(
        [encoder],
        lambda places: encoder(*train.rows(places)),
        decoder,
        train,
        tokenizer.eos_token_id,
        steps=setup.steps,
        batch=max(1, setup.batch // run.sentences),
        lr=setup.lr,
        seed=seed,
    )
    return encoder, decoder


def restoration(setup: Setup, run: Run, seed: int) -> dict[str, float]:
    """PPL, R-1, R-2 and R-L of held-out texts (Tables 2 and 3)."""
    encoder, decoder = restorer(setup, run, seed)
    tokenizer, _, held_out = data(setup, run.sentences)
    return training.measure(lambda places: encoder(*held_out.rows(places)), decoder, held_out, tokenizer)[0]


def retrieval(setup: Setup, run: Run, restoring: bool, seed: int) -> dict[str, float]:
    """Recall (%) of a story by its first sentence, by two encoders that start from a restoring one or only from
    pre-training (Tables 4 and 9)."""
    tokenizer, *_ = data(setup, sentences=1)
    asked, answers = (texts.tokenized(tokenizer, side) for side in texts.questions(setup.stories))
    encoders = start(setup, run, seed), start(setup, run, seed)
    for encoder in encoders:
        encoder.requires_grad_(True)
        if restoring:
            encoder.load_state_dict(restorer(setup, run, seed)[0].state_dict())
    training.train_to_retrieve(
        *encoders,
        asked,
        answers,
        steps=setup.retrieval_steps,
        batch=2 * setup.batch,
        lr=setup.retrieval_lr,
        seed=seed,
    )
    asked, answers = (texts.tokenized(tokenizer, side) for side in texts.questions(setup.held_out))
    return training.recall(*encoders, asked, answers, at=(1, 5, 20))


@functools.cache
def vectors(setup: Setup, pooling: str) -> tuple[Tensor, Tensor]:
    """MAGNET's vectors of all single sentences, `(texts, hidden)`: those to train on, and those held out.

    Every element has mean 0 and deviation 1 over the first: a few of them are many times larger than the rest.
    """
    lab = Magnet.from_pretrained(setup.model)
    seen, unseen = (lab.encode(of.texts, pooling=pooling).float().cpu() for of in data(setup, sentences=1)[1:])
    mean, deviation = seen.mean(dim=0), seen.std(dim=0)
    return (seen - mean) / deviation, (unseen - mean) / deviation


def embedded(setup: Setup, vector: str, seed: int) -> dict[str, float]:
    """Train a gating decoder to restore sentences from MAGNET's vectors, which no one made to be restored.

    Args:
        vector: "last" or "mean", a pooling of `Magnet.encode`, or "nothing": a decoder that has only zeros to go by.

    Returns:
        As `restoration`.
    """
    tokenizer, train, held_out = data(setup, sentences=1)
    seen, unseen = vectors(setup, "last" if vector == "nothing" else vector)
    if vector == "nothing":
        seen, unseen = torch.zeros_like(seen), torch.zeros_like(unseen)
    shape = replace(setup.shape, d_repr=seen.shape[1])  # as wide as they come: the gating layer does not mind
    project, decoder = _seeded(
        seed, lambda: (linear(shape.d_repr, shape.d_repr), Decoder("gating", shape, Words(shape)))
    )
    training.train_to_restore(
        [project],
        lambda places: project(seen[places]),
        decoder,
        train,
        tokenizer.eos_token_id,
        steps=setup.steps,
        batch=setup.batch,
        lr=setup.lr,
        seed=seed,
    )
    return training.measure(lambda places: project(unseen[places]), decoder, held_out, tokenizer)[0]


def start(setup: Setup, run: Run, seed: int) -> Encoder:
    """An encoder as pre-training left it, in one of the configurations of Table 1; layers that it adds are random."""
    frozen, additional_layers = CONFIGURATIONS[run.configuration]
    encoder = _seeded(
        seed,
        lambda: Encoder(setup.shape, Words(setup.shape), pooling=run.pooling, additional_layers=additional_layers),
    )
    encoder.load_state_dict(encoder.state_dict() | pretrained(setup, seed))
    if frozen:
        encoder.freeze()
    return encoder


@functools.cache
def data(setup: Setup, sentences: int) -> tuple[PreTrainedTokenizerFast, texts.Texts, texts.Texts]:
    """The tokenizer, and passages of so many sentences to train on and to restore."""
    tokenizer = texts.make_tokenizer(setup.stories, setup.shape.vocabulary)
    held_out = texts.spread(texts.passages(setup.held_out, sentences), max(1, setup.measured // sentences))
    train = texts.passages(setup.stories, sentences)
    return tokenizer, texts.tokenized(tokenizer, train), texts.tokenized(tokenizer, held_out)


def _seeded(seed: int, make: Callable):
    """What `make` makes, its first weights drawn from a seed and nothing else."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()
