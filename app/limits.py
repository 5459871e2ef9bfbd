"""What the pages take at most: one place, so that a class full of people cannot stall each other by accident."""

import math

MASK_CHARACTERS, MASK_TOKENS = 1_000, 96
MASK_LAYERS = 12
OBJECTIVE_TOKENS, SENTENCE_PAIRS, LOWEST_TAU, LAMBDA = 64, 8, 0.02, 10
PREFIX_CHARACTERS, NEW_TOKENS, MASK_FILLING_TOKENS = 2_000, 256, 30
INFILL_CHARACTERS, BLANKS, BLANK_TOKENS = 3_000, 6, 64
CANDIDATES = 5
TEMPERATURE = 2.0
SENTENCES, SENTENCE_CHARACTERS = 24, 400
WORDS = 24

JUDGED_STORIES = 20  # each as every system completed it: about a hundred to judge, or half an hour
RATERS, RATINGS_AN_HOUR, CODE_NAME_CHARACTERS = 500, 900, 40
PASSWORD_TRIES = 10  # wrong ones within a minute, of all visitors together
PAIRS = 6  # of raters whose agreement is shown with an interval

SECONDS_BETWEEN_FRAMES = 0.1  # a browser falls behind when a stream brings more than ten pictures a second


def check_text(name: str, text: str, characters: int) -> None:
    """Raise a ValueError if a text is empty or too long."""
    if not text or not text.strip():
        raise ValueError(f"{name} is empty; write something, or take an example")
    if len(text) > characters:
        raise ValueError(f"{name} has {len(text):,} characters; at most {characters:,} fit here, so shorten it")


def check_number(name: str, value: float | None, low: float, high: float, *, whole: bool = False) -> None:
    """Raise a ValueError if a number is missing, none at all, or out of range."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} is no number; choose one between {low:g} and {high:g}")
    if not low <= value <= high or (whole and value != int(value)):
        raise ValueError(
            f"{name} is {value:g}; choose a {'whole ' if whole else ''}number between {low:g} and {high:g}"
        )
