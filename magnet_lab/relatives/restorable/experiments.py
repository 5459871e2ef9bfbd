"""The document's experiments in miniature: what each run is made of, and what is measured on it.

A run is one training from one seed. Runs do not know of each other; what they share, the tokenizer, the pre-trained
encoders and the vectors of MAGNET, lies in a folder. So they can be made side by side.
"""

import functools
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import PreTrainedTokenizerFast

from magnet_lab.model import Magnet
from magnet_lab.relatives.restorable import texts, training
from magnet_lab.relatives.restorable.decoders import Decoder
from magnet_lab.relatives.restorable.encoder import Encoder
from magnet_lab.relatives.restorable.layers import Shape, Words

# Table 1: is what pre-training made frozen, and how many new layers come after it in the encoder (3 in the paper)?
CONFIGURATIONS = {"a": (False, 0), "b": (True, 0), "c": (False, 1), "d": (True, 1)}

SHAPE = Shape()


@dataclass(frozen=True)
class Setting:
    """What all runs share.

    Attributes:
        stories, held_out: to train on and to measure on, one story each.
        folder: for what runs hand to each other.
        model: whose vectors are restored from, see `embedded`.
        steps, pretraining_steps, retrieval_steps: of the three trainings.
        batch: texts a step; of passages of n sentences n times fewer, so that it is about as many tokens.
        lr, retrieval_lr: highest learning rates.
        longest: tokens of a single sentence; longer ones are left out. Passages may have any length.
        measured: held-out texts that are restored; of passages of n sentences n times fewer.
    """

    stories: tuple[str, ...]
    held_out: tuple[str, ...]
    folder: Path
    model: str = "tiny"
    shape: Shape = SHAPE
    steps: int = 700
    pretraining_steps: int = 300
    retrieval_steps: int = 80
    batch: int = 32
    lr: float = 4e-3
    retrieval_lr: float = 1e-3
    longest: int = 14
    measured: int = 150


@dataclass(frozen=True)
class Run:
    """One kind of restoration, a row of a table. The defaults are the paper's proposal in its plainest form."""

    decoder: str = "gating"
    pooling: str = "mean"
    configuration: str = "a"
    sentences: int = 1


def pretrain(setting: Setting, seed: int) -> None:
    """Leave an encoder that has learned to find hidden tokens in the folder, for others to start from."""
    tokenizer, train, _ = data(setting, sentences=1)
    encoder = _seeded(seed, lambda: Encoder(setting.shape, Words(setting.shape)))
    training.pretrain(
        encoder, train, tokenizer, steps=setting.pretraining_steps, batch=setting.batch, lr=setting.lr, seed=seed
    )
    save_file(encoder.state_dict(), _pretrained(setting, seed))


def restoration(setting: Setting, run: Run, seed: int) -> dict:
    """Train an encoder and a decoder to restore (Tables 2 and 3), and leave the encoder for retrieval.

    Returns:
        PPL, R-1, R-2 and R-L, and under "samples" a few texts beside what came back.
    """
    tokenizer, train, held_out = data(setting, run.sentences)
    encoder = start(setting, run, seed)
    decoder = _seeded(seed, lambda: Decoder(run.decoder, setting.shape, encoder.words))
    training.train_to_restore(
        [encoder],
        lambda places: encoder(*train.rows(places)),
        decoder,
        train,
        tokenizer.eos_token_id,
        steps=setting.steps,
        batch=max(1, setting.batch // run.sentences),
        lr=setting.lr,
        seed=seed,
    )
    save_file(encoder.state_dict(), _restoring(setting, run, seed))
    return _measured(lambda places: encoder(*held_out.rows(places)), decoder, held_out, tokenizer)


def retrieval(setting: Setting, run: Run, restoring: bool, seed: int) -> dict[str, float]:
    """Recall of passages, with encoders that start from a restoring one or only from pre-training (Tables 4 and 9)."""
    tokenizer, *_ = data(setting, sentences=1)
    asked, answers = (texts.tokenized(tokenizer, side) for side in texts.questions(setting.stories))
    encoders = start(setting, run, seed), start(setting, run, seed)
    for encoder in encoders:
        encoder.requires_grad_(True)
        if restoring:
            encoder.load_state_dict(load_file(_restoring(setting, run, seed)))
    training.train_to_retrieve(
        *encoders,
        asked,
        answers,
        steps=setting.retrieval_steps,
        batch=2 * setting.batch,
        lr=setting.retrieval_lr,
        seed=seed,
    )
    asked, answers = (texts.tokenized(tokenizer, side) for side in texts.questions(setting.held_out))
    return training.recall(*encoders, asked, answers, at=(1, 5, 20))


def embed(setting: Setting) -> None:
    """Leave MAGNET's vectors of all single sentences in the folder, by both of its poolings."""
    lab = Magnet.from_pretrained(setting.model)
    _, train, held_out = data(setting, sentences=1)
    vectors = {
        f"{part}-{pooling}": lab.encode(of.texts, pooling=pooling)
        for pooling in ("last", "mean")
        for part, of in (("train", train), ("held-out", held_out))
    }
    save_file(vectors, _vectors(setting))


def embedded(setting: Setting, vector: str, seed: int) -> dict:
    """Train a gating decoder to restore sentences from MAGNET's vectors, which no one made to be restored.

    Args:
        vector: "last" or "mean", a pooling of `Magnet.encode`, or "nothing": a decoder that has only zeros to go by.

    Returns:
        As `restoration`.
    """
    tokenizer, train, held_out = data(setting, sentences=1)
    vectors = load_file(_vectors(setting))
    seen, unseen = (vectors[f"{part}-{'last' if vector == 'nothing' else vector}"] for part in ("train", "held-out"))
    # Every element to mean 0 and deviation 1: a few of them are many times larger than the rest.
    mean, deviation = seen.mean(dim=0), seen.std(dim=0)
    seen, unseen = ((side - mean) / deviation * (vector != "nothing") for side in (seen, unseen))
    shape = replace(setting.shape, d_repr=seen.shape[1])  # as wide as they come: the gating layer does not mind
    project, decoder = _seeded(
        seed,
        lambda: (nn.Linear(shape.d_repr, shape.d_repr, bias=False), Decoder("gating", shape, Words(shape))),
    )
    training.train_to_restore(
        [project],
        lambda places: project(seen[places]),
        decoder,
        train,
        tokenizer.eos_token_id,
        steps=setting.steps,
        batch=setting.batch,
        lr=setting.lr,
        seed=seed,
    )
    return _measured(lambda places: project(unseen[places]), decoder, held_out, tokenizer)


def start(setting: Setting, run: Run, seed: int) -> Encoder:
    """An encoder as pre-training left it, in one of the configurations of Table 1; layers that it adds are random."""
    frozen, additional_layers = CONFIGURATIONS[run.configuration]
    encoder = _seeded(
        seed,
        lambda: Encoder(setting.shape, Words(setting.shape), pooling=run.pooling, additional_layers=additional_layers),
    )
    encoder.load_state_dict(encoder.state_dict() | load_file(_pretrained(setting, seed)))
    if frozen:
        encoder.freeze()
    return encoder


@functools.lru_cache(maxsize=4)
def data(setting: Setting, sentences: int) -> tuple[PreTrainedTokenizerFast, texts.Texts, texts.Texts]:
    """The tokenizer, and passages of so many sentences to train on and to restore."""
    tokenizer = texts.make_tokenizer(setting.stories, setting.shape.vocabulary, setting.folder)
    longest = setting.longest if sentences == 1 else None
    train, held_out = (
        texts.tokenized(tokenizer, texts.passages(stories, sentences), longest)
        for stories in (setting.stories, setting.held_out)
    )
    some = texts.spread(held_out.texts, max(1, setting.measured // sentences))
    return tokenizer, train, texts.tokenized(tokenizer, some)


def _measured(
    encode: training.Encode, decoder: Decoder, held_out: texts.Texts, tokenizer: PreTrainedTokenizerFast
) -> dict:
    figures, restored = training.measure(encode, decoder, held_out, tokenizer)
    return {**figures, "samples": list(zip(held_out.texts[:3], restored, strict=False))}


def _seeded(seed: int, make: Callable):
    """What `make` makes, its first weights drawn from a seed and nothing else."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make()


def _pretrained(setting: Setting, seed: int) -> Path:
    return setting.folder / f"pretrained-{seed}.safetensors"


def _restoring(setting: Setting, run: Run, seed: int) -> Path:
    return setting.folder / f"{'-'.join(map(str, (*astuple(run), seed)))}.safetensors"


def _vectors(setting: Setting) -> Path:
    return setting.folder / "magnet.safetensors"
