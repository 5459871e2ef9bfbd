"""UniLMv2's factorization, step by step: in which order hidden words are predicted, and what each prediction knows."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import magnet_lab as ml

from .. import limits
from .relatives import words

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
