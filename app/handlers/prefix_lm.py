"""A prefix LM: its mask beside the one that leaks, and two small models that go on with a prefix."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import magnet_lab as ml

from .. import limits
from .infill import Piece
from .relatives import loaded, unknown, words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from magnet_lab.relatives.demo import PrefixWriter


@dataclass(frozen=True)
class PrefixMasks:
    """The three modes of one text, and the prefix mask beside the one that leaks; `length` and `prefix` in words."""

    length: int
    prefix: int
    modes: "Figure"
    sound: "Figure"
    leaking: "Figure"
    sentences: list[str]
    leaks: list[str]
    text: str


def draw_masks(text: str, prefix_length, layers) -> PrefixMasks:
    """Who may look at whom in the chapter's three modes, and what its own mask lets through.

    Args:
        prefix_length: words and marks of the prefix; at least one is left to be the target.
        layers: how many layers what leaks may travel through.
    """
    import torch

    from magnet_lab.attention import attention_mask, receptive_field
    from magnet_lab.relatives.prefix_lm.masks import MODES, mode_span_ids, printed_mask

    tokens = words("the text", text, least=2)
    limits.check_number("the prefix", prefix_length, 1, limits.RELATIVES_WORDS, whole=True)
    prefix = min(int(prefix_length), len(tokens) - 1)
    limits.check_number("the number of layers", layers, 1, limits.RELATIVES_LAYERS, whole=True)
    ones = torch.ones(1, len(tokens), dtype=torch.long)
    made = {mode: mode_span_ids(mode, ones, prefix) for mode in MODES}
    pairs = {mode: int(attention_mask(span_ids).sum()) for mode, span_ids in made.items()}
    named = {f"{mode}: {pairs[mode]} pairs": span_ids[0].tolist() for mode, span_ids in made.items()}
    span_ids = made["prefix"]
    masks = {"sound": attention_mask(span_ids)[0, 0], "leaking": printed_mask(span_ids)[0, 0]}
    reached = {name: receptive_field(mask, int(layers)) for name, mask in masks.items()}
    drawn, twins = {}, [ml.viz.modes_text(tokens, named)]
    for name, title in (("sound", "Prefix LM, as the equation says"), ("leaking", "As the chapter's code has it")):
        content = (masks[name], tokens, span_ids[0].tolist())
        drawn[name] = ml.viz.mask_figure(*content, reach=reached[name])
        twins.append(f"{title}, after {layers:g} layer(s)\n{ml.viz.mask_text(*content, reach=reached[name])}")
    sentences = [
        f"Pairs of who looks and what is seen: all {pairs['bidirectional']} in both directions, "
        f"{pairs['unidirectional']} from left to right, and {pairs['prefix']} with a prefix of {prefix}, which is read "
        "both ways, while the rest is read from left to right."
    ]
    leaks = _leaks(tokens, prefix, reached["leaking"], int(masks["leaking"].sum()), pairs["prefix"], layers)
    return PrefixMasks(
        len(tokens),
        prefix,
        ml.viz.modes_figure(tokens, named),
        drawn["sound"],
        drawn["leaking"],
        sentences,
        leaks,
        "\n\n".join(twins),
    )


def _leaks(tokens: Sequence[str], prefix: int, reach, pairs: int, sound_pairs: int, layers) -> list[str]:
    """What of the target a token of the target hears of before its time."""
    found = [
        f"The chapter's mask lets {pairs} pairs attend, not {sound_pairs}: in it the prefix sees the target as well. "
        "Its equation, and most of its text, give the prefix its own tokens alone."
    ]
    told = []
    for query in range(prefix, len(tokens) - 1):
        later = [key for key in range(query + 1, len(tokens)) if reach[query, key]]
        if later:
            told.append(f"“{tokens[query]}” ({query}) of {ml.viz.ranges(later)}")
    if not told:
        return [*found, "After one layer no word of the target hears of a later one. Move the slider to two."]
    return [
        *found,
        f"After {layers:g} layers, through the prefix, words of the target hear of what they are to predict: "
        + "; ".join(told)
        + ". The sound mask stays as it is, at any depth.",
    ]


MODELS = {"prefix": "sound mask", "prefix-printed": "the chapter's mask"}


def writer_of(name: str) -> "PrefixWriter":
    """One of the two models; raises a ValueError if it is not there."""
    from magnet_lab.relatives import demo

    return loaded(demo.load_prefix_writer, name)


def check(text: str, temperature, seed) -> None:
    """Raise a ValueError if a prefix cannot be gone on with."""
    limits.check_text("the prefix", text, limits.RELATIVES_CHARACTERS)
    limits.check_number("the temperature", temperature, 0, limits.TEMPERATURE)
    limits.check_number("the seed", seed, 0, 2**31 - 1, whole=True)


def go_on(text: str, temperature: float = 0.0, seed: int = 0) -> tuple[dict[str, list[Piece]], list[str]]:
    """A prefix gone on with by both models, as far as their rows are long; and sentences about it."""
    import torch

    from magnet_lab.decoder import text_ids
    from magnet_lab.relatives import demo
    from magnet_lab.relatives.prefix_lm.training import write

    check(text, temperature, seed)
    found: dict[str, list[Piece]] = {}
    for name, about in MODELS.items():
        writer = writer_of(name)
        ids = text_ids(writer.tokenizer, text)
        if not 0 < len(ids) < demo.LENGTH - 1:
            raise ValueError(
                f"the prefix has {len(ids)} words and marks; the model reads {demo.LENGTH} in all, so give 1 to "
                f"{demo.LENGTH - 2}"
            )
        generator = torch.Generator().manual_seed(int(seed))
        with torch.no_grad():
            rows = write(
                writer.model,
                torch.tensor([ids]),
                demo.LENGTH - len(ids),
                temperature=float(temperature),
                generator=generator,
            )
        prefix = demo.written(writer.tokenizer, ids)
        written = demo.written(writer.tokenizer, rows[0, len(ids) :].tolist())
        found[about] = [Piece(f"{prefix} ", "context"), Piece(written or "(the end of the story)", "generated")]
    return found, unknown(demo.unknown_words(writer.tokenizer, text))


def measured() -> list[list[str]]:
    """A row for each model: its name, and its losses on held-out stories."""
    rows = []
    for name, about in MODELS.items():
        losses = writer_of(name).measured
        rows.append([about, *(f"{losses[where]:.2f}" for where in ("in training's pass", "in writing"))])
    return rows
