"""What the chapter says, measured: each experiment is a function that returns its figures.

Where something is trained, it is trained from several seeds, and a figure is a mean with a 95 % interval. The model is
the one that the chapter trains (64 hidden, 4 heads, 2 layers). On the chapter's text its training is the chapter's too:
500 steps of 8 rows of 48 characters, AdamW, learning rate 1e-3. All of that text's 216 characters are trained on, here
as there: what is measured on it is how well it was learnt by heart.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import BoolTensor, LongTensor
from tqdm import tqdm

from magnet_lab.attention import attention_mask, receptive_field
from magnet_lab.relatives.prefix_lm.data import (
    CHAPTER_TEXT,
    Batch,
    Characters,
    causal_split,
    in_all_modes,
    in_mode,
    printed_split,
    random_rows,
    random_splits,
    sorting_rows,
    split,
    windows,
)
from magnet_lab.relatives.prefix_lm.masks import MODES, mode_span_ids, printed_mask
from magnet_lab.relatives.prefix_lm.model import EncoderDecoder, PrefixLM, parameter_count
from magnet_lab.relatives.prefix_lm.report import over_seeds
from magnet_lab.relatives.prefix_lm.training import (
    fit,
    losses_by_position,
    losses_in_writing,
    token_losses,
    write,
)

HIDDEN, LENGTH, ROWS, STEPS = 64, 48, 8, 500
HALF = LENGTH // 2  # of a row as prefix, where models are compared at one split
CHARACTERS = Characters(CHAPTER_TEXT)
TEXT = CHARACTERS.encode(CHAPTER_TEXT)
ASKED = TEXT.unfold(0, LENGTH, 4)  # (43, 48): the text from every fourth place at which a row may start
# The chapter's three, shorter than any prefix that is trained on, and one that is not.
PREFIXES = ("The quick", "A journey of", "Knowledge is", "A journey of a thousand ")
SPLITS = (5, 9, 14, 19, 24, 29, 33, 38, 43)  # 14 to 33 are trained

Figures = dict[str, object]
Split = Callable[[LongTensor, LongTensor], Batch]


@dataclass(frozen=True)
class Arm:
    """One way to train on the chapter's text: a mask, how rows are split, and shares of the row that may be prefix."""

    rule: Callable[[LongTensor], BoolTensor] = attention_mask
    split: Split = split
    shares: tuple[float, float] = (0.3, 0.7)


ARMS = {
    "printed": Arm(printed_mask, printed_split),  # the chapter's code
    "printed, sound mask": Arm(split=printed_split),
    "prefix": Arm(),  # the chapter's equation
    "causal": Arm(split=causal_split),
    "one split": Arm(shares=(0.5, 0.5)),
}


def masks() -> Figures:
    """Pairs that may attend, for six tokens of which three are prefix, and what two layers make of them."""
    tokens = torch.ones(1, 6, dtype=torch.long)
    made = {mode: attention_mask(mode_span_ids(mode, tokens, 3)) for mode in MODES}
    made["prefix, printed"] = printed_mask(mode_span_ids("prefix", tokens, 3))
    later = torch.ones(6, 6).triu(1).bool()
    later[:3] = False  # rows of the prefix are never asked for a token
    changes = {}
    for name, rule in (("prefix", attention_mask), ("prefix, printed", printed_mask)):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = PrefixLM(len(CHARACTERS), HIDDEN, rule=rule).eval()
        rows = ASKED[[0, 0]].clone()
        rows[1, HALF:] = ASKED[-1, HALF:]  # another target after the same prefix
        with torch.no_grad():
            states, _ = model.read(rows, mode_span_ids("prefix", torch.ones_like(rows), HALF))
        changes[name] = float((states[0, :HALF] - states[1, :HALF]).abs().max())
    return {
        "pairs": {name: int(mask.sum()) for name, mask in made.items()},
        "later targets in reach of a target after two layers": {
            name: int((receptive_field(made[name], 2)[0, 0] & later).sum()) for name in ("prefix", "prefix, printed")
        },
        "change of the prefix's states with another target": changes,
        "parameters at 1,000 tokens": parameter_count(PrefixLM(1000)),
    }


def learn_chapter(arm: Arm, seed: int, steps: int = STEPS) -> tuple[PrefixLM, list[float]]:
    """A model that has learnt the chapter's text, and its losses."""

    def draw(generator: torch.Generator) -> Batch:
        rows = windows(TEXT, ROWS, LENGTH, generator)
        shortest, longest = arm.shares
        return arm.split(rows, random_splits(ROWS, LENGTH, generator, shortest=shortest, longest=longest))

    return fit(partial(PrefixLM, len(CHARACTERS.letters), HIDDEN, rule=arm.rule), draw, steps, seed=seed)


def chapter(seeds: Sequence[int], steps: int = STEPS) -> Figures:
    """The chapter's training run on its own text, as printed and with one thing changed at a time."""
    found: dict[str, Figures] = {}
    samples: dict[str, str] = {}
    with tqdm(total=len(ARMS) * len(seeds), desc="the chapter's text", unit=" runs") as progress:
        for name, arm in ARMS.items():
            runs = []
            for seed in seeds:
                model, losses = learn_chapter(arm, seed, steps)
                runs.append(_course(losses) | _by_heart(model, arm))
                if name in ("printed", "prefix"):
                    runs[-1] |= _attention(model)
                    if seed == seeds[0]:
                        samples |= {f"{name}, {text!r}": _written(model, text) for text in PREFIXES}
                progress.update()
            found[name] = {figure: over_seeds([run[figure] for run in runs]) for figure in runs[0]}
    return {
        "characters": len(CHARACTERS.letters),
        "length of the text": len(TEXT),
        "loss of guessing": math.log(len(CHARACTERS.letters)),
        **found,
        "written": samples,
    }


def leak(seeds: Sequence[int], steps: int = 600) -> Figures:
    """Random letters, of which nothing can be known: every nat below ln 32 was seen through the mask."""
    letters, length, held_out = 32, 16, torch.Generator().manual_seed(10_000)
    rows = random_rows(256, length, letters, held_out)
    lengths = torch.full((len(rows),), length // 2)
    found: dict[str, Figures] = {"loss of guessing": math.log(letters)}
    with tqdm(total=2 * len(seeds), desc="random letters", unit=" runs") as progress:
        for name, rule in (("prefix, sound mask", attention_mask), ("prefix, printed mask", printed_mask)):
            runs = []
            for seed in seeds:
                model, _ = fit(
                    partial(PrefixLM, letters, HIDDEN, rule=rule),
                    lambda generator: printed_split(
                        random_rows(16, length, letters, generator), random_splits(16, length, generator)
                    ),
                    steps,
                    seed=seed,
                    lr=3e-3,
                )
                runs.append(
                    {
                        "loss in training's pass": float(token_losses(model, printed_split(rows, lengths)).nanmean()),
                        "loss in writing": float(losses_in_writing(model, rows, length // 2).mean()),
                    }
                )
                progress.update()
            found[name] = {figure: over_seeds([run[figure] for run in runs]) for figure in runs[0]}
    return found


def sorting(seeds: Sequence[int], steps: int = 600) -> Figures:
    """Eight of sixteen letters, to be written in order: masks side by side, and the twin with an encoder.

    Rows are new in every batch, so nothing can be learnt by heart. The figure that counts is the share of letters that
    are right when the model writes; every model is asked under the mask that it was trained with.
    """
    letters, length = 16, 8
    rows = sorting_rows(512, length, letters, torch.Generator().manual_seed(10_000))
    arms: dict[str, tuple[Callable, Split]] = {
        "prefix": (PrefixLM, split),
        "prefix, printed mask": (partial(PrefixLM, rule=printed_mask), printed_split),
        "causal": (PrefixLM, causal_split),
        "encoder-decoder, 2 + 2 layers": (EncoderDecoder, split),
        "encoder-decoder, 1 + 1 layers": (partial(EncoderDecoder, layers=1), split),
    }
    found: dict[str, Figures] = {}
    with tqdm(total=len(arms) * len(seeds), desc="sorting", unit=" runs") as progress:
        for name, (kind, split_) in arms.items():
            make, runs = partial(kind, letters, HIDDEN), []
            for seed in seeds:
                model, losses = fit(
                    make,
                    lambda generator, split_=split_: split_(
                        sorting_rows(16, length, letters, generator), torch.full((16,), length)
                    ),
                    steps,
                    seed=seed,
                    lr=3e-3,
                )
                mode = "unidirectional" if split_ is causal_split else "prefix"
                right = _written_right(model, rows, length, mode)
                runs.append({"last losses in training": _course(losses)["last loss"], "letters right": right})
                progress.update()
            found[name] = {"parameters": parameter_count(make())}
            found[name] |= {figure: over_seeds([run[figure] for run in runs]) for figure in runs[0]}
    return found


def unified(seeds: Sequence[int], steps: int = STEPS) -> Figures:
    """UniLM's training, a third of every batch in each mode, against a model for each mode alone.

    The unified batch is three times as large, so that every mode sees as many rows as its specialist does. The figures
    are losses (nats a target): rows a model, columns the mode in which it is asked.
    """
    asked = {
        mode: in_mode(mode, ASKED, torch.full((len(ASKED),), HALF), CHARACTERS, torch.Generator().manual_seed(10_000))
        for mode in MODES
    }
    found: dict[str, Figures] = {}
    with tqdm(total=(len(MODES) + 1) * len(seeds), desc="three modes", unit=" runs") as progress:
        for name in ("unified", *MODES):
            count, runs = ROWS * (len(MODES) if name == "unified" else 1), []
            for seed in seeds:

                def draw(generator: torch.Generator, name=name, count=count) -> Batch:
                    rows, lengths = windows(TEXT, count, LENGTH, generator), random_splits(count, LENGTH, generator)
                    if name == "unified":
                        return in_all_modes(rows, lengths, CHARACTERS, generator)
                    return in_mode(name, rows, lengths, CHARACTERS, generator)

                model, _ = fit(partial(PrefixLM, len(CHARACTERS), HIDDEN), draw, steps, seed=seed)
                runs.append({mode: float(token_losses(model, batch).nanmean()) for mode, batch in asked.items()})
                progress.update()
            found[f"trained {name}"] = {f"asked {mode}": over_seeds([run[mode] for run in runs]) for mode in MODES}
    return found


def _course(losses: list[float]) -> dict[str, float]:
    """The first loss, the mean of the last twenty, and by how much the loss fell (per cent of the first)."""
    last = sum(losses[-20:]) / len(losses[-20:])
    return {"first loss": losses[0], "last loss": last, "fall of the loss (%)": 100 * (1 - last / losses[0])}


def _by_heart(model: PrefixLM, arm: Arm) -> dict[str, float]:
    """How well a model knows the chapter's text: by place in the target, by split, and in writing (shares right)."""
    if arm.split is causal_split:
        lengths = torch.full((len(ASKED),), HALF)
        return {"loss, half a row": float(token_losses(model, causal_split(ASKED, lengths)).nanmean())}
    by_place = torch.stack([losses_by_position(model, ASKED, k)[:14] for k in range(14, 34)]).mean(dim=0)
    found = {
        "loss, half a row": float(losses_by_position(model, ASKED, HALF).mean()),
        "loss in writing, half a row": float(losses_in_writing(model, ASKED, HALF).mean()),
        "loss of the first target token": float(by_place[0]),
        "loss of the 2nd to 5th": float(by_place[1:5].mean()),
        "loss of the 10th to 14th": float(by_place[9:14].mean()),
    }
    for length in SPLITS:
        by_position = losses_by_position(model, ASKED, length)
        found[f"prefix of {length}: loss"] = float(by_position.mean())
        found[f"prefix of {length}: loss of the row's last five"] = float(by_position[-5:].mean())
    for length in (9, 12, HALF):
        found[f"prefix of {length}: characters right of 15"] = _written_right(model, ASKED[:, : length + 15], length)
    return found


@torch.no_grad()
def _attention(model: PrefixLM) -> dict[str, float]:
    """What the weights look like, layer by layer, at half a row of prefix.

    Evenness is entropy as a share of its largest possible value: 1 for weights that are all alike. A target token's
    weight on the prefix stands beside what it would be if all that it sees counted alike.
    """
    span_ids = mode_span_ids("prefix", torch.ones_like(ASKED), HALF)
    sees = model.rule(span_ids)
    _, layers = model.read(ASKED, span_ids)
    found = {}
    for layer, weights in enumerate(layers, start=1):
        entropy = -(weights * weights.clamp(min=1e-30).log()).sum(dim=-1)  # (batch, heads, query)
        even = entropy / sees.sum(dim=-1).float().log()
        found[f"layer {layer}: evenness of a prefix token's weights"] = float(even[..., :HALF].mean())
        found[f"layer {layer}: evenness of a target token's weights"] = float(even[..., HALF:].mean())
        found[f"layer {layer}: a target's weight on the prefix"] = float(weights[..., HALF:, :HALF].sum(-1).mean())
    found["… if all weights were alike"] = float((HALF / sees.sum(dim=-1).float())[..., HALF:].mean())
    return found


def _written_right(model: torch.nn.Module, rows: LongTensor, prefix_length: int, mode: str = "prefix") -> float:
    """The share of a target's tokens that are right when the likeliest is written each time."""
    written = write(model, rows[:, :prefix_length], rows.shape[1] - prefix_length, mode=mode)
    return float((written == rows)[:, prefix_length:].float().mean())


def _written(model: PrefixLM, text: str) -> str:
    """A prefix gone on with, as the chapter does at a temperature of 0.8, but taking the likeliest character."""
    return CHARACTERS.decode(write(model, CHARACTERS.encode(text)[None], LENGTH - len(text))[0])
