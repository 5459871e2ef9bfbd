"""Answers that students give, wrong ones and right ones, to try the checks on.

Every wrong answer says which misconception its check has to name: words that must stand in the message. There are at
least five for each check, and at least two right ones written in different ways. `python -m magnet_lab.course` tries
them all.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field

TOPICS = (
    "masks",
    "corruption",
    "labels",
    "losses",
    "vectors",
    "infilling",
    "repetition",
    "adapters",
    "ablation",
    "unilm",
    "restorable",
)


@dataclass
class Answers:
    """To one check: right functions, and wrong ones with words that the message must have."""

    right: list[Callable] = field(default_factory=list)
    wrong: list[tuple[Callable, str]] = field(default_factory=list)


_ALL: dict[str, Answers] = {}


def right(check: str):
    """Marks a function as a right answer to this check."""

    def keep(function):
        _ALL.setdefault(check, Answers()).right.append(function)
        return function

    return keep


def wrong(check: str, names: str):
    """Marks a function as a wrong answer to this check, whose message must contain `names`."""

    def keep(function):
        _ALL.setdefault(check, Answers()).wrong.append((function, names))
        return function

    return keep


def all_answers() -> dict[str, Answers]:
    """The answers to every check, by its name."""
    for topic in TOPICS:
        importlib.import_module(f"magnet_lab.course.answers.{topic}")
    return _ALL
