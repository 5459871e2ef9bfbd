"""The relatives at work: a prefix LM and its masks, UniLMv2's factorization step by step, sentences out of vectors."""

import functools
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import magnet_lab as ml

from .. import limits
from .infill import Piece

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from magnet_lab.relatives.demo import PrefixWriter, Restorer

_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_lock = threading.Lock()


def words(name: str, text: str, least: int = 1) -> list[str]:
    """The words and marks of a text; the pages' pictures need no tokenizer.

    Raises:
        ValueError: if there are too few or too many.
    """
    limits.check_text(name, text, limits.RELATIVES_CHARACTERS)
    found = _WORD.findall(text)
    if not least <= len(found) <= limits.RELATIVES_WORDS:
        raise ValueError(
            f"{name} has {len(found)} words and marks; give {least} to {limits.RELATIVES_WORDS}, so that the pictures "
            "can be read"
        )
    return found


def loaded(load: Callable):
    """One of the trained models of `relatives.demo`, loaded once for all visitors.

    Raises:
        ValueError: if it is not there, with the command that makes it.
    """
    with _lock:
        try:
            return _load(load)
        except FileNotFoundError as missing:
            raise ValueError(str(missing)) from missing


@functools.cache
def _load(load: Callable):
    return load()


# --- prefix LM


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


def prefix_masks(text: str, prefix_length, layers) -> PrefixMasks:
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


PREFIX_MODELS = {"prefix": "sound mask", "prefix-printed": "the chapter's mask"}


def prefix_writer(name: str) -> "PrefixWriter":
    return loaded(_PREFIX_LOADERS[name])


def _prefix_loader(name: str) -> Callable:
    def load():
        from magnet_lab.relatives import demo

        return demo.load_prefix_writer(name)

    return load


_PREFIX_LOADERS = {name: _prefix_loader(name) for name in PREFIX_MODELS}


def check_prefix(text: str, temperature, seed) -> None:
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

    check_prefix(text, temperature, seed)
    found: dict[str, list[Piece]] = {}
    for name, about in PREFIX_MODELS.items():
        writer = prefix_writer(name)
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
    return found, _unknown(demo.unknown_words(writer.tokenizer, text))


def prefix_measured() -> list[list[str]]:
    """A row for each model: its name, and its losses on held-out stories."""
    rows = []
    for name, about in PREFIX_MODELS.items():
        measured = prefix_writer(name).measured
        rows.append([about, *(f"{measured[where]:.2f}" for where in ("in training's pass", "in writing"))])
    return rows


# --- UniLMv2


METHODS = {
    "PAR": "partially autoregressive: whole blocks at once, one after the other",
    "AR": "autoregressive: one word after the other, in an order of its own",
    "AE": "autoencoding: all hidden words at once, none from another",
}


@dataclass(frozen=True)
class StepToken:
    """One token of the row: what it shows, its position in the text, its step, and what is predicted at it now."""

    shows: str
    kind: str
    position: int
    step: int
    predicts: str = ""


@dataclass(frozen=True)
class Stepped:
    """A factorization at one of its steps.

    Attributes:
        steps: how many there are.
        row: the tokens that are there by this step.
        sentences: what is predicted, and what is seen.
    """

    steps: int
    row: list[StepToken]
    sentences: list[str]
    figure: "Figure"
    text: str
    order: list[list[int]] = field(default_factory=list)


HIDDEN_SHARE = 0.35  # the document hides 15 %, of which a short sentence has one word


def step(text: str, method: str, seed, number) -> Stepped:
    """A random factorization of a text, at one step of it.

    Args:
        method: one of `METHODS`.
        seed: of the hidden words and their order.
        number: the step, from 1; one beyond the last is the last.
    """
    import torch

    from magnet_lab.relatives.pseudo_masked.layout import GIVEN, one_pass
    from magnet_lab.relatives.pseudo_masked.masking import blockwise_masking, one_by_one
    from magnet_lab.relatives.pseudo_masked.vocabulary import MASK, PSEUDO, SPECIAL

    tokens = words("the sentence", text, least=3)
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; choose one of {', '.join(METHODS)}")
    limits.check_number("the seed", seed, 0, 2**31 - 1, whole=True)
    limits.check_number("the step", number, 1, limits.RELATIVES_WORDS, whole=True)
    generator = torch.Generator().manual_seed(int(seed))
    longest = min(3, len(tokens) - 1)
    order = blockwise_masking([True] * len(tokens), generator, share=HIDDEN_SHARE, longest=longest)
    if method == "AR":
        order = one_by_one(order, generator)
    steps = 1 if method == "AE" else len(order)
    now = min(int(number), steps)
    layout = one_pass([[len(SPECIAL) + place for place in range(len(tokens))]], [order], pseudo=method != "AE")
    shows, step_of, position = (row[0].tolist() for row in (layout.input_ids, layout.steps, layout.position_ids))
    there = [place for place, told in enumerate(step_of) if told <= now]
    mask = layout.mask[0, 0]
    names = {MASK: "[M]", PSEUDO: "[P]"}
    row = [
        StepToken(
            names.get(shows[place], tokens[position[place]]),
            "masked" if shows[place] in names else ("span" if step_of[place] > GIVEN else "context"),
            position[place],
            step_of[place],
            tokens[position[place]] if _asked(shows[place], step_of[place], method, now, MASK, PSEUDO) else "",
        )
        for place in there
    ]
    here = mask[there][:, there]
    labels = [f"{token.shows} {token.position}" for token in row]
    sentences = _about_step(tokens, order, method, now, steps, row, here)
    drawn = ml.viz.mask_figure(here, labels)
    order_text = " → ".join(", ".join(f"{tokens[place]} ({place})" for place in block) for block in order)
    twin = f"{method}: {order_text}\n\n{ml.viz.mask_text(here, labels)}"
    return Stepped(steps, row, sentences, drawn, twin, order)


def _asked(shows: int, told: int, method: str, now: int, mask: int, pseudo: int) -> bool:
    return shows == mask if method == "AE" else shows == pseudo and told == now


def _about_step(tokens, order, method: str, now: int, steps: int, row: list[StepToken], mask) -> list[str]:
    hidden = [place for block in order for place in block]

    def named(places) -> str:
        return ", ".join(f"“{tokens[place]}” ({place})" for place in places)

    sentences = [f"{method}, {METHODS[method]}. {len(hidden)} of {len(tokens)} words are hidden."]
    if method == "AE":
        sentences.append(
            f"All at once: {named(sorted(hidden))}. At each [M] one is predicted, from the words that are left and "
            "the other [M], which say only that something is missing there."
        )
        return sentences
    blocks = " → ".join(", ".join(str(place) for place in block) for block in order)
    sentences.append(f"Order of positions: {blocks}.")
    before = [place for block in order[: now - 1] for place in block]
    known = f", knowing {named(before)} by now" if before else ""
    sentences.append(f"Step {now} of {steps}: {named(order[now - 1])} predicted at [P]{known}.")
    query = next(place for place, token in enumerate(row) if token.predicts)
    seen = [row[key] for key in mask[query].nonzero()[:, 0].tolist()]
    told = sorted({f"“{token.shows}” ({token.position})" for token in seen if token.kind == "span"})
    others = sum(token.shows == "[P]" for token in seen)
    sentences.append(
        f"The [P] at {row[query].position} sees the words and [M] that are given, "
        + (f"{', '.join(told)}, told in earlier steps, " if told else "")
        + (f"and the {others} [P] of its own step, itself counted" if others > 1 else "and itself")
        + ". It does not see its own word, nor any told later; "
        "not through another token either, in however many layers."
    )
    sentences.append(
        "An [M] sees only what is given, at every step: so one pass trains AE at the [M], and this at the [P]."
    )
    return sentences


# --- restorable embeddings


@dataclass(frozen=True)
class Restored:
    """A sentence that came out of a vector.

    Attributes:
        share: how far the vector is from the first sentence's towards the second's, 0 to 1.
        first, second: ROUGE-L (0 to 100) with the two sentences.
    """

    share: float
    text: str
    first: float
    second: float | None = None


POINTS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 1.0)  # most of what changes does so near the middle


def restorer() -> "Restorer":
    return loaded(_restorer)


def _restorer():
    from magnet_lab.relatives import demo

    return demo.load_restorer()


def check_sentence(name: str, text: str) -> None:
    """Raise a ValueError if a sentence cannot be made a vector."""
    words(name, text)


def restore(first: str, second: str = "") -> tuple[list[Restored], list[str]]:
    """A sentence as it comes back from its vector; with a second, also from points between the two vectors.

    Returns:
        What was restored, and sentences about it.
    """
    from magnet_lab.relatives.demo import WORDS
    from magnet_lab.relatives.restorable.metrics import rouge_l

    second = (second or "").strip()
    check_sentence("the first sentence", first)
    if second:
        check_sentence("the second sentence", second)
    model = restorer()
    sentences = [first, *([second] if second else [])]
    vectors = model.encode(sentences)
    shares = POINTS if second else (0.0,)
    points = [vectors[0] + share * (vectors[-1] - vectors[0]) for share in shares]
    texts = model.restore(_stack(points))
    found = [
        Restored(share, text, rouge_l(first, text), rouge_l(second, text) if second else None)
        for share, text in zip(shares, texts, strict=True)
    ]
    about = _unknown([word for sentence in sentences for word in model.unknown(sentence)])
    for sentence in sentences:
        if not WORDS[0] <= (count := len(_WORD.findall(sentence))) <= WORDS[1]:
            about.append(
                f"“{sentence}” has {count} words and marks. The model has learnt from {WORDS[0]} to {WORDS[1]}: expect "
                "little of others."
            )
    about.append(f"Each sentence became {vectors.shape[1]} numbers, and came back from them alone, in lower case.")
    return found, about


def restorer_measured() -> str:
    """How well sentences come back that the model has never seen."""
    from magnet_lab.relatives.demo import WORDS

    measured = restorer().measured
    return (
        f"On {measured['sentences']:.0f} sentences of {WORDS[0]} to {WORDS[1]} words and marks from stories that it "
        f"has never seen, {measured['whole (%)']:.0f} % come back word for word. ROUGE (100: all of it): R-1 "
        f"{measured['R-1']:.0f}, R-2 {measured['R-2']:.0f}, R-L {measured['R-L']:.0f}. Of sentences "
        f"of any length and with any words, R-L is {measured['R-L, any sentence']:.0f}: of what is longer than all "
        "that it learnt from, or not among its words, less comes back."
    )


def _stack(points):
    import torch

    return torch.stack(points)


def _unknown(found: Sequence[str]) -> list[str]:
    if not found:
        return []
    named = ", ".join(f"“{word}”" for word in dict.fromkeys(found))
    return [f"Not in the model's vocabulary, and lost on the way in: {named}."]
