"""A sentence to one vector and back: what a vector can hold, and what lies between two."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .relatives import WORD, loaded, unknown, words

if TYPE_CHECKING:
    from magnet_lab.relatives.demo import Restorer


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
    """The model; raises a ValueError if it is not there."""
    from magnet_lab.relatives import demo

    return loaded(demo.load_restorer)


def check_sentence(name: str, text: str) -> None:
    """Raise a ValueError if a sentence cannot be made a vector."""
    words(name, text)


def restore(first: str, second: str = "") -> tuple[list[Restored], list[str]]:
    """A sentence as it comes back from its vector; with a second, also from points between the two vectors.

    Returns:
        What was restored, and sentences about it.
    """
    import torch

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
    texts = model.restore(torch.stack(points))
    found = [
        Restored(share, text, rouge_l(first, text), rouge_l(second, text) if second else None)
        for share, text in zip(shares, texts, strict=True)
    ]
    about = unknown([word for sentence in sentences for word in model.unknown(sentence)])
    for sentence in sentences:
        if not WORDS[0] <= (count := len(WORD.findall(sentence))) <= WORDS[1]:
            about.append(
                f"“{sentence}” has {count} words and marks. The model has learnt from {WORDS[0]} to {WORDS[1]}: expect "
                "little of others."
            )
    about.append(f"Each sentence became {vectors.shape[1]} numbers, and came back from them alone, in lower case.")
    return found, about


def measured() -> str:
    """How well sentences come back that the model has never seen."""
    from magnet_lab.relatives.demo import WORDS

    found = restorer().measured
    return (
        f"On {found['sentences']:.0f} sentences of {WORDS[0]} to {WORDS[1]} words and marks from stories that it "
        f"has never seen, {found['whole (%)']:.0f} % come back word for word. ROUGE (100: all of it): R-1 "
        f"{found['R-1']:.0f}, R-2 {found['R-2']:.0f}, R-L {found['R-L']:.0f}. Of sentences "
        f"of any length and with any words, R-L is {found['R-L, any sentence']:.0f}: of what is longer than all "
        "that it learnt from, or not among its words, less comes back."
    )
