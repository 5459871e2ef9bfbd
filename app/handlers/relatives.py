"""What the pages of the relatives share: short texts in words and marks, and small models that are loaded once."""

import functools
import re
import threading
from collections.abc import Callable, Sequence

from .. import limits

WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_lock = threading.Lock()


def words(name: str, text: str, least: int = 1) -> list[str]:
    """The words and marks of a text; the pages' pictures need no tokenizer.

    Raises:
        ValueError: if there are too few or too many.
    """
    limits.check_text(name, text, limits.RELATIVES_CHARACTERS)
    found = WORD.findall(text)
    if not least <= len(found) <= limits.RELATIVES_WORDS:
        raise ValueError(
            f"{name} has {len(found)} words and marks; give {least} to {limits.RELATIVES_WORDS}, so that the pictures "
            "can be read"
        )
    return found


def loaded(load: Callable, *which):
    """One of the trained models of `relatives.demo`, loaded once for all visitors: what `load(*which)` returns.

    Raises:
        ValueError: if it is not there, with the command that makes it.
    """
    with _lock:
        try:
            return _load(load, *which)
        except FileNotFoundError as missing:
            raise ValueError(str(missing)) from missing


@functools.cache
def _load(load: Callable, *which):
    return load(*which)


def unknown(found: Sequence[str]) -> list[str]:
    """A sentence about words that a model does not know, if there are any."""
    if not found:
        return []
    named = ", ".join(f"“{word}”" for word in dict.fromkeys(found))
    return [f"Not in the model's vocabulary, and lost on the way in: {named}."]
