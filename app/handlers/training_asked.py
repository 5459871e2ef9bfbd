"""What a visitor wants trained: looked at, and made a recipe."""

from dataclasses import dataclass

import magnet_lab as ml

from .. import limits


@dataclass(frozen=True)
class Asked:
    """What a visitor wants trained.

    Attributes:
        mntp, sscl, msg: λ₁, λ₂ and λ₃ of Equation 5.
        story: with blanks, filled while it learns.
        own_text: a text a line in place of the bundled stories; empty for those.
    """

    mntp: float
    sscl: float
    msg: float
    steps: int
    lr: float
    story: str
    own_text: str = ""


def check(mntp, sscl, msg, steps, lr, story: str, own_text: str) -> Asked:
    """What is asked, if it can be trained.

    Raises:
        ValueError: if not.
    """
    for name, weight in zip(("λ₁ of MNTP", "λ₂ of SSCL", "λ₃ of MSG"), (mntp, sscl, msg), strict=True):
        limits.check_number(name, weight, 0, limits.LAMBDA)
    if not mntp + sscl + msg > 0:
        raise ValueError("all three λ are 0, so there is nothing to learn; give at least one of them a weight")
    limits.check_number("the number of steps", steps, 1, limits.TRAINING_STEPS, whole=True)
    limits.check_number("the learning rate", lr, limits.LOWEST_RATE, limits.HIGHEST_RATE)
    limits.check_text("the story", story, limits.SAMPLE_CHARACTERS)
    _, blanks = ml.blanks.parse(story)
    if len(blanks) > 1 or blanks[0].longest > limits.BLANK_TOKENS:
        raise ValueError(f"the story is filled many times: give it one blank, of {limits.BLANK_TOKENS} tokens at most")
    if own_text and own_text.strip():
        _check_own(own_text)
    return Asked(float(mntp), float(sscl), float(msg), int(steps), float(lr), story, own_text or "")


def _check_own(text: str) -> None:
    limits.check_text("your text", text, limits.OWN_CHARACTERS)
    lines = own_lines(text)
    if len(lines) < limits.OWN_LINES:
        raise ValueError(
            f"your text has {len(lines)} line(s); give at least {limits.OWN_LINES}, a short text on each, or none"
        )
    for number, line in enumerate(lines, start=1):
        if len(line.split()) < limits.OWN_WORDS:
            raise ValueError(
                f"line {number} of your text has {len(line.split())} word(s); at least {limits.OWN_WORDS} are needed "
                "for something to be hidden and something left"
            )


def own_lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def recipe_of(asked: Asked):
    """The recipe of a visitor's training: that of `tiny`, its batches smaller, so that a step takes a second."""
    from dataclasses import replace

    from magnet_lab.data.rows import Corpus
    from magnet_lab.training import recipe as recipes

    usual = recipes.load("tiny")
    contrast = replace(usual.contrast, batch=12, length=40)
    return replace(
        usual,
        corpus=Corpus(["own.txt"] if asked.own_text.strip() else ["plain-stories.txt"], pack=False),
        phases=[recipes.Phase(asked.steps, mntp=asked.mntp, sscl=asked.sscl, msg=asked.msg)],
        spans=replace(usual.spans, longest=24),
        contrast=contrast if asked.sscl else None,
        optimizer=replace(usual.optimizer, lr=asked.lr, warmup=min(5, asked.steps), schedule="constant"),
        batch=8,
        length=64,
        save_every=20,
        samples=[],
    )
