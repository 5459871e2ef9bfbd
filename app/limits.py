"""What the pages take at most: one place, so that a class full of people cannot stall each other by accident.

Each number can be given another value in the environment the app is started in: `MAGNET_LAB_LIMIT_NEW_TOKENS=512`.
"""

import math
import os
from collections.abc import Mapping

PREFIX = "MAGNET_LAB_LIMIT_"  # of the names in the environment

WAITING = 64  # visitors in the queue; the next is told to try later
SECONDS_A_REQUEST = 120  # that one visitor may have the model for
REQUEST_BYTES, FILE_BYTES = 2_000_000, 2_000_000  # of one call, and of one uploaded file
FILE_HOURS = 1  # after which an uploaded file is deleted

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

GRID_TOKENS = 40  # a row and a column each: a page of more buttons is slow, and nobody finds a cell in it
START_CHARACTERS, START_TOKENS = 200, 16  # a sentence of one's own, and what is written after it
UPLOAD_BYTES = 100_000  # of a file of sentences

TRAINING_STEPS, TRAINING_SECONDS = 100, 180  # of one training, counted from its first step
TRAINING_ALONE_SECONDS = 15  # until one ends whose page was closed and not loaded anew
TRAININGS_WAITING, TRAININGS_KEPT = 5, 16  # visitors before the door, and folders that somebody may go on with
OWN_CHARACTERS, OWN_LINES, OWN_WORDS = 20_000, 8, 6  # of a text of one's own, at most; lines, words of a line, at least
LOWEST_RATE, HIGHEST_RATE = 1e-5, 1e-2
SAMPLE_CHARACTERS = 300  # of the story that is filled while it learns
RELATIVES_CHARACTERS, RELATIVES_WORDS, RELATIVES_LAYERS = 300, 16, 6

SECONDS_BETWEEN_FRAMES = 0.1  # a browser falls behind when a stream brings more than ten pictures a second


def check_text(name: str, text: str, characters: int) -> None:
    """Raise a ValueError if a text is empty or too long."""
    if not text or not text.strip():
        raise ValueError(f"{name} is empty; write something, or take an example")
    if len(text) > characters:
        raise ValueError(f"{name} has {len(text):,} characters; at most {characters:,} fit here, so shorten it")


def check_number(name: str, value: float | None, low: float, high: float, *, whole: bool = False) -> None:
    """Raise a ValueError if a number is missing, none at all, or out of range."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(_as_float(value)):
        raise ValueError(f"{name} is no number; choose one between {low:g} and {high:g}")
    if not low <= value <= high or (whole and value != int(value)):
        raise ValueError(
            f"{name} is {_as_float(value):g}; choose a {'whole ' if whole else ''}number between {low:g} and {high:g}"
        )


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # Python's whole numbers have no largest one
        return math.copysign(math.inf, value)


def from_environment(limits: dict, environment: Mapping[str, str]) -> None:
    """Put what the environment says in place of the numbers of `limits`, by name.

    Raises:
        SystemExit: with a sentence, for a name that is not there or a value that is no such number.
    """
    for name, given in environment.items():
        if not name.startswith(PREFIX):
            continue
        limit = name.removeprefix(PREFIX)
        usual = limits.get(limit)
        if not limit.isupper() or not isinstance(usual, int | float):
            raise SystemExit(f"{name} is set, but the app has no limit {limit}; they stand in app/limits.py.")
        try:
            value = type(usual)(given)
        except ValueError:
            value = -1
        if not 0 <= value < math.inf:
            kind = "a whole number" if isinstance(usual, int) else "a number"
            raise SystemExit(f"{name} is {given!r}; give {kind} that is not below 0, such as {usual}.")
        limits[limit] = value


from_environment(globals(), os.environ)
