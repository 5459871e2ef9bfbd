"""What the chapter says, measured: each experiment is a function of a seed that returns figures by name.

The model is the one that the chapter trains (64 hidden, 4 heads, 2 layers). On the chapter's text its training is the
chapter's too: 500 steps of 8 rows of 48 characters, AdamW, learning rate 1e-3. All of that text's 216 characters are
trained on, here as there: what is measured on it is how well it was learnt by heart.

`evaluation/prefixlm_chapter.py` makes tables of them, over several seeds.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import BoolTensor, LongTensor

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

Figures = dict[str, float]
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


MASKS = {
    "bidirectional": ("bidirectional", attention_mask),
    "unidirectional": ("unidirectional", attention_mask),
    "prefix": ("prefix", attention_mask),
    "prefix, as printed": ("prefix", printed_mask),
}


def mask(name: str) -> Figures:
    """Pairs that may attend, for six tokens of which three are prefix, and what two layers make of them."""
    mode, rule = MASKS[name]
    made = rule(mode_span_ids(mode, torch.ones(1, 6, dtype=torch.long), 3))
    found = {"pairs": int(made.sum())}
    if mode == "prefix":
        later = torch.ones(6, 6).triu(1).bool()
        later[:3] = False  # rows of the prefix are never asked for a token
        found["later targets in reach, two layers"] = int((receptive_field(made, 2)[0, 0] & later).sum())
        found["prefix states moved by another target"] = moved(rule)
    return found


@torch.no_grad()
def moved(rule: Callable[[LongTensor], BoolTensor]) -> float:
    """How far any number in an untrained model's prefix states moves when another target follows the same prefix."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = PrefixLM(len(CHARACTERS), HIDDEN, rule=rule).eval()
    rows = ASKED[[0, 0]].clone()
    rows[1, HALF:] = ASKED[-1, HALF:]
    states, _ = model.read(rows, mode_span_ids("prefix", torch.ones_like(rows), HALF))
    return float((states[0, :HALF] - states[1, :HALF]).abs().max())


@functools.cache  # several tables look at the same models
def learn_chapter(name: str, seed: int, steps: int = STEPS) -> tuple[PrefixLM, list[float]]:
    """A model that has learnt the chapter's text in one of the `ARMS`, and its losses."""
    arm = ARMS[name]

    def draw(generator: torch.Generator) -> Batch:
        rows = windows(TEXT, ROWS, LENGTH, generator)
        shortest, longest = arm.shares
        return arm.split(rows, random_splits(ROWS, LENGTH, generator, shortest=shortest, longest=longest))

    return fit(partial(PrefixLM, len(CHARACTERS.letters), HIDDEN, rule=arm.rule), draw, steps, seed=seed)


def chapter(name: str, seed: int, steps: int = STEPS) -> Figures:
    """The chapter's training run on its own text: its losses (nats), and how well the text is known by heart.

    Where in the target a token stands is compared over all prefix lengths that are trained.
    """
    model, losses = learn_chapter(name, seed, steps)
    last = sum(losses[-20:]) / len(losses[-20:])
    found = {"first loss": losses[0], "last 20 losses": last, "fall (%)": 100 * (1 - last / losses[0])}
    if ARMS[name].split is causal_split:
        lengths = torch.full((len(ASKED),), HALF)
        return found | {"half a row": float(token_losses(model, causal_split(ASKED, lengths)).nanmean())}
    by_place = torch.stack([losses_by_position(model, ASKED, k)[:14] for k in range(14, 34)]).mean(dim=0)
    return found | {
        "half a row": float(losses_by_position(model, ASKED, HALF).mean()),
        "… in writing": float(losses_in_writing(model, ASKED, HALF).mean()),
        "1st target": float(by_place[0]),
        "2nd to 5th": float(by_place[1:5].mean()),
        "10th to 14th": float(by_place[9:14].mean()),
    }


def prefix_of(length: int, name: str, seed: int, steps: int = STEPS) -> Figures:
    """The same model with a prefix of `length` characters: losses (nats), and the characters that it writes right."""
    model, _ = learn_chapter(name, seed, steps)
    by_position = losses_by_position(model, ASKED, length)
    found = {"loss": float(by_position.mean()), "loss of the row's last five": float(by_position[-5:].mean())}
    new = min(15, LENGTH - length)
    return found | {"written right (%)": 100 * written_right(model, ASKED[:, : length + new], length)}


def attention(layer: int, seed: int, steps: int = STEPS, name: str = "prefix") -> Figures:
    """What the weights of one layer, counted from 1, look like, at half a row of prefix.

    Evenness is entropy as a share of its largest possible value: 1 for weights that are all alike. A target token's
    weight on the prefix stands beside what it would be if all that it sees counted alike.
    """
    model, _ = learn_chapter(name, seed, steps)
    span_ids = mode_span_ids("prefix", torch.ones_like(ASKED), HALF)
    sees = model.rule(span_ids)
    with torch.no_grad():
        weights = model.read(ASKED, span_ids)[1][layer - 1]
    entropy = -(weights * weights.clamp(min=1e-30).log()).sum(dim=-1)  # (batch, heads, query)
    even = entropy / sees.sum(dim=-1).float().log()
    return {
        "evenness, prefix token": float(even[..., :HALF].mean()),
        "evenness, target token": float(even[..., HALF:].mean()),
        "target's weight on the prefix": float(weights[..., HALF:, :HALF].sum(-1).mean()),
        "… if all were alike": float((HALF / sees.sum(dim=-1).float())[..., HALF:].mean()),
    }


def leak(rule: Callable[[LongTensor], BoolTensor], seed: int, steps: int = 600) -> Figures:
    """Random letters, of which nothing can be known: every nat below ln 32 = 3.4657 was seen through the mask."""
    letters, length, held_out = 32, 16, torch.Generator().manual_seed(10_000)
    rows = random_rows(256, length, letters, held_out)
    model, _ = fit(
        partial(PrefixLM, letters, HIDDEN, rule=rule),
        lambda generator: printed_split(
            random_rows(16, length, letters, generator), random_splits(16, length, generator)
        ),
        steps,
        seed=seed,
        lr=3e-3,
    )
    lengths = torch.full((len(rows),), length // 2)
    return {
        "loss in training's pass": float(token_losses(model, printed_split(rows, lengths)).nanmean()),
        "loss in writing": float(losses_in_writing(model, rows, length // 2).mean()),
    }


SORTERS: dict[str, tuple[Callable, Split]] = {
    "prefix": (PrefixLM, split),
    "prefix, printed mask": (partial(PrefixLM, rule=printed_mask), printed_split),
    "causal": (PrefixLM, causal_split),
    "encoder-decoder, 2 + 2 layers": (EncoderDecoder, split),
    "encoder-decoder, 1 + 1 layers": (partial(EncoderDecoder, layers=1), split),
}


def sorting(name: str, seed: int, steps: int = 600) -> Figures:
    """Eight of sixteen letters, to be written in order: masks side by side, and the twin with an encoder.

    Rows are new in every batch, so nothing can be learnt by heart. The figure that counts is the share of letters that
    are right when the model writes; every model is asked under the mask that it was trained with.
    """
    letters, length = 16, 8
    rows = sorting_rows(512, length, letters, torch.Generator().manual_seed(10_000))
    kind, split_ = SORTERS[name]
    model, losses = fit(
        partial(kind, letters, HIDDEN),
        lambda generator: split_(sorting_rows(16, length, letters, generator), torch.full((16,), length)),
        steps,
        seed=seed,
        lr=3e-3,
    )
    mode = "unidirectional" if split_ is causal_split else "prefix"
    return {
        "parameters (thousands)": parameter_count(model) / 1000,
        "last 20 losses": sum(losses[-20:]) / len(losses[-20:]),
        "letters written right (%)": 100 * written_right(model, rows, length, mode),
    }


def modes(name: str, seed: int, steps: int = STEPS) -> Figures:
    """UniLM's training, a third of every batch in each mode, or a model for one mode alone: losses (nats) by mode.

    The "unified" batch is three times as large, so that every mode sees as many rows as its specialist does.
    """
    count = ROWS * (len(MODES) if name == "unified" else 1)

    def draw(generator: torch.Generator) -> Batch:
        rows, lengths = windows(TEXT, count, LENGTH, generator), random_splits(count, LENGTH, generator)
        if name == "unified":
            return in_all_modes(rows, lengths, CHARACTERS, generator)
        return in_mode(name, rows, lengths, CHARACTERS, generator)

    model, _ = fit(partial(PrefixLM, len(CHARACTERS), HIDDEN), draw, steps, seed=seed)
    found = {}
    for mode in MODES:
        generator = torch.Generator().manual_seed(10_000)
        batch = in_mode(mode, ASKED, torch.full((len(ASKED),), HALF), CHARACTERS, generator)
        found[f"asked {mode}"] = float(token_losses(model, batch).nanmean())
    return found


def written_right(model: torch.nn.Module, rows: LongTensor, prefix_length: int, mode: str = "prefix") -> float:
    """The share of a target's tokens that are right when the likeliest is written each time."""
    written = write(model, rows[:, :prefix_length], rows.shape[1] - prefix_length, mode=mode)
    return float((written == rows)[:, prefix_length:].float().mean())


def go_on(model: PrefixLM, text: str) -> str:
    """A prefix gone on with, as the chapter does at a temperature of 0.8, but taking the likeliest character."""
    return CHARACTERS.decode(write(model, CHARACTERS.encode(text)[None], LENGTH - len(text))[0])
