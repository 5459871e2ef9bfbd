"""Two of the relatives, trained for longer than an experiment, for people to try: a restorer and a prefix LM.

    python -m magnet_lab.relatives.demo restorer         a sentence to one vector, and back from it
    python -m magnet_lab.relatives.demo prefix           words after a prefix, under the sound mask
    python -m magnet_lab.relatives.demo prefix-printed   the same under the chapter's mask, which leaks

Each takes a few minutes on one core, and leaves a folder in `magnet_lab/models/relatives/`: the weights
in half precision, the tokenizer, and in `measured.json` how well it does on stories that it has not seen. What is
measured is what is shipped, so the rounded weights.
"""

import argparse
import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_model, save_model
from torch import BoolTensor, LongTensor, Tensor, nn
from transformers import PreTrainedTokenizerFast

from magnet_lab.attention import attention_mask
from magnet_lab.data.rows import Corpus, texts
from magnet_lab.decoder import text_ids
from magnet_lab.relatives.prefix_lm.data import Batch, printed_split, random_splits, split, windows
from magnet_lab.relatives.prefix_lm.masks import printed_mask
from magnet_lab.relatives.prefix_lm.model import PrefixLM
from magnet_lab.relatives.prefix_lm.training import fit, losses_in_writing, token_losses
from magnet_lab.relatives.restorable import training
from magnet_lab.relatives.restorable.decoders import Decoder
from magnet_lab.relatives.restorable.encoder import Encoder
from magnet_lab.relatives.restorable.layers import Shape, Words
from magnet_lab.relatives.restorable.texts import make_tokenizer, passages, spread, tokenized

FOLDER = Path(__file__).parent.parent / "models" / "relatives"
SEED = 0

SHAPE = Shape(vocabulary=1500, d_model=96, d_repr=192)  # of the restorer
RESTORER_STEPS = 2000
WORDS = (4, 9)  # of the sentences that it sees, the full stop counted
LONGEST = 20  # words that it writes at most

LENGTH = 24  # words of a prefix LM's row
SHARES = {"shortest": 0.1, "longest": 0.7}  # of a row that may be prefix: a visitor's may be short
PREFIX_STEPS = 1500
PREFIX_SHAPE = {"vocabulary": 1200, "hidden": 80, "positions": LENGTH}
ARMS: dict[str, tuple[Callable[[LongTensor], BoolTensor], Callable[[LongTensor, LongTensor], Batch]]] = {
    "prefix": (attention_mask, split),
    "prefix-printed": (printed_mask, printed_split),
}
NAMES = ("restorer", *ARMS)


@dataclass(frozen=True)
class Restorer:
    """A sentence to one vector and back.

    Attributes:
        measured: on held-out sentences, see `_measure_restorer`.
    """

    encoder: Encoder
    decoder: Decoder
    tokenizer: PreTrainedTokenizerFast
    measured: dict[str, float]

    def unknown(self, sentence: str) -> list[str]:
        """The words of a sentence that are not in the vocabulary, as it reads them; they are lost on the way in."""
        return unknown_words(self.tokenizer, sentence)

    @torch.no_grad()
    def encode(self, sentences: list[str]) -> Tensor:
        """`(sentences, d_repr)`; ValueError where a sentence has no word."""
        rows = tokenized(self.tokenizer, sentences)
        return self.encoder(rows.input_ids, rows.tokens)

    def restore(self, vectors: Tensor) -> list[str]:
        """The sentence of each vector `(sentences, d_repr)`, by beam search; ▢ for a word that it has no word for."""
        ids = training.restore(self.decoder, vectors, self.tokenizer.eos_token_id, longest=LONGEST)
        return [written(self.tokenizer, row) for row in ids]


@dataclass(frozen=True)
class PrefixWriter:
    """A prefix LM over whole words.

    Attributes:
        measured: losses (nats a word) on held-out rows, half of each its prefix: "in training's pass" and "in writing".
    """

    model: PrefixLM
    tokenizer: PreTrainedTokenizerFast
    measured: dict[str, float]


def unknown_words(tokenizer: PreTrainedTokenizerFast, text: str) -> list[str]:
    """The words of a text, in lower case, that a word tokenizer does not know."""
    backend = tokenizer.backend_tokenizer
    words = backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(text))
    return [word for word, _ in words if backend.token_to_id(word) is None]


def written(tokenizer: PreTrainedTokenizerFast, ids: list[int]) -> str:
    """Ids as a text, up to the first end; ▢ for an unknown word."""
    end = ids.index(tokenizer.eos_token_id) if tokenizer.eos_token_id in ids else len(ids)
    text = tokenizer.decode(ids[:end], clean_up_tokenization_spaces=False)
    return text.replace(tokenizer.unk_token, "▢")


def load_restorer(folder: Path = FOLDER) -> Restorer:
    """The restorer of a folder, the bundled one by default.

    Raises:
        FileNotFoundError: if it is not there, with the command that makes it.
    """
    tokenizer, about = _read(folder / "restorer")
    shape = Shape(**about["shape"])
    modules = _restoring_modules(shape)
    load_model(modules, folder / "restorer" / "model.safetensors")
    modules.eval()
    return Restorer(modules["encoder"], modules["decoder"], tokenizer, about["measured"])


def load_prefix_writer(name: str = "prefix", folder: Path = FOLDER) -> PrefixWriter:
    """A prefix LM of a folder, "prefix" or "prefix-printed"; errors as `load_restorer`."""
    tokenizer, about = _read(folder / name)
    model = PrefixLM(**about["shape"], rule=ARMS[name][0])
    load_model(model, folder / name / "model.safetensors")
    return PrefixWriter(model.eval(), tokenizer, about["measured"])


def make(name: str, folder: Path = FOLDER, *, quick: bool = False) -> dict[str, float]:
    """Train one of `NAMES` into a folder of its own; returns what was measured. `quick`: a few steps, to see it run."""
    return _make_restorer(folder, quick) if name == "restorer" else _make_prefix(name, folder, quick)


# --- the restorer


def _make_restorer(folder: Path, quick: bool) -> dict[str, float]:
    stories, held_out_stories = _stories("plain-stories.txt", "stories.txt"), _stories("plain-stories-held-out.txt")
    tokenizer = make_tokenizer(stories, SHAPE.vocabulary)
    seen = short_sentences(tokenizer, stories)
    train, known = tokenized(tokenizer, seen), set(seen)
    held_out = [sentence for sentence in passages(held_out_stories, 1) if sentence not in known]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        modules = _restoring_modules(SHAPE)
    encoder, decoder = modules["encoder"], modules["decoder"]
    training.train_to_restore(
        [encoder],
        lambda places: encoder(*train.rows(places)),
        decoder,
        train,
        tokenizer.eos_token_id,
        steps=4 if quick else RESTORER_STEPS,
        batch=24,
        lr=3e-3,
        seed=SEED,
    )
    about = {"shape": vars(SHAPE), "sentences": len(train), "measured": {}}
    _write(folder / "restorer", modules, tokenizer, about)
    return _measured(
        folder / "restorer", about, _measure_restorer(load_restorer(folder), spread(held_out, 30 if quick else 500))
    )


def short_sentences(tokenizer: PreTrainedTokenizerFast, stories: Sequence[str]) -> list[str]:
    """The sentences of stories that have a length within `WORDS` and no unknown word, each once."""
    rows = {sentence: text_ids(tokenizer, sentence) for sentence in passages(stories, 1)}
    return [
        text for text, row in rows.items() if WORDS[0] <= len(row) <= WORDS[1] and tokenizer.unk_token_id not in row
    ]


def _measure_restorer(restorer: Restorer, sentences: list[str]) -> dict[str, float]:
    """The figures of Table 2 and how many came back whole, on sentences as it knows them; R-L also on any."""
    fitting = short_sentences(restorer.tokenizer, sentences)
    figures, restored = _restored(restorer, fitting)
    ids = [[text_ids(restorer.tokenizer, text) for text in side] for side in (fitting, restored)]
    whole = sum(one == other for one, other in zip(*ids, strict=True))
    counted = {"whole (%)": 100 * whole / len(fitting), "sentences": len(fitting)}
    return figures | counted | {"R-L, any sentence": _restored(restorer, sentences)[0]["R-L"]}


def _restored(restorer: Restorer, sentences: list[str]) -> tuple[dict[str, float], list[str]]:
    rows = tokenized(restorer.tokenizer, sentences)
    return training.measure(
        lambda places: restorer.encoder(*rows.rows(places)), restorer.decoder, rows, restorer.tokenizer
    )


def _restoring_modules(shape: Shape) -> nn.ModuleDict:
    words = Words(shape)
    return nn.ModuleDict({"encoder": Encoder(shape, words), "decoder": Decoder("gating", shape, words)})


# --- the prefix LM


def _make_prefix(name: str, folder: Path, quick: bool) -> dict[str, float]:
    rule, split_ = ARMS[name]
    stories = _stories("plain-stories.txt")
    tokenizer = make_tokenizer(stories, PREFIX_SHAPE["vocabulary"])
    stream = _stream(tokenizer, stories)

    def draw(generator: torch.Generator) -> Batch:
        return split_(windows(stream, 24, LENGTH, generator), random_splits(24, LENGTH, generator, **SHARES))

    make_model = partial(PrefixLM, **PREFIX_SHAPE, rule=rule)
    model, _ = fit(make_model, draw, 4 if quick else PREFIX_STEPS, seed=SEED, lr=3e-3)
    about = {"shape": PREFIX_SHAPE}
    _write(folder / name, model, tokenizer, about | {"measured": {}})
    return _measured(folder / name, about, _measure_prefix(name, load_prefix_writer(name, folder), 8 if quick else 400))


def _measure_prefix(name: str, writer: PrefixWriter, count: int) -> dict[str, float]:
    stream = _stream(writer.tokenizer, _stories("plain-stories-held-out.txt"))
    rows = windows(stream, count, LENGTH, torch.Generator().manual_seed(SEED))
    lengths = torch.full((count,), LENGTH // 2)
    return {
        "in training's pass": float(token_losses(writer.model, ARMS[name][1](rows, lengths)).nanmean()),
        "in writing": float(losses_in_writing(writer.model, rows, LENGTH // 2).mean()),
        "rows": count,
    }


def _stream(tokenizer: PreTrainedTokenizerFast, stories: tuple[str, ...]) -> LongTensor:
    """All stories in a row, an end after each."""
    return torch.tensor([token for story in stories for token in [*text_ids(tokenizer, story), tokenizer.eos_token_id]])


# --- files


def _stories(*names: str) -> tuple[str, ...]:
    return tuple(texts(Corpus(list(names))))


def _write(folder: Path, model: nn.Module, tokenizer: PreTrainedTokenizerFast, about: dict) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    save_model(copy.deepcopy(model).half(), folder / "model.safetensors")
    (folder / "model.safetensors").chmod(0o644)  # safetensors writes for the owner alone
    (folder / "about.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def _measured(folder: Path, about: dict, measured: dict[str, float]) -> dict[str, float]:
    rounded = {name: round(value, 3) for name, value in measured.items()}
    (folder / "about.json").write_text(json.dumps(about | {"measured": rounded}, indent=2) + "\n", encoding="utf-8")
    return rounded


def _read(folder: Path) -> tuple[PreTrainedTokenizerFast, dict]:
    if not (folder / "model.safetensors").is_file():
        raise FileNotFoundError(
            f"the model {folder.name!r} is not there; python -m magnet_lab.relatives.demo {folder.name} makes it in "
            "minutes"
        )
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    return PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True), about


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m magnet_lab.relatives.demo", description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="FOLDER", help="default: where the app looks")
    parser.add_argument("--quick", action="store_true", help="a few steps, only to see that it runs")
    asked = parser.parse_args()
    for name, value in make(asked.name, asked.out, quick=asked.quick).items():
        print(f"{name:>20} {value:g}")


if __name__ == "__main__":
    main()
