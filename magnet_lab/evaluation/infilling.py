"""Infilling, Table 4: how likely a model finds the sentence that is missing from a story, and whether it can write one.

Only the tokens of the missing sentence count. Read from left to right a model sees what stands before the sentence;
under the MAGNET mask it sees what follows as well. The ratio of the two perplexities is what the right context is
worth, and the same words are scored both ways, so nothing but the mask differs.
"""

from dataclasses import dataclass

import torch
from tqdm import tqdm

from magnet_lab.model import Magnet
from magnet_lab.paraphrase import sentences


@dataclass(frozen=True)
class Missing:
    """A story with a blank in place of one of its sentences, and that sentence."""

    text: str
    sentence: str


def remove_sentences(stories: list[str], *, seed: int = 0) -> list[Missing]:
    """From each story one sentence, at random, but never the first, which nothing to its left could tell."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for story in stories:
        parts = sentences(story, shortest=1, longest=1000)
        if len(parts) < 3:
            continue
        place = int(torch.randint(1, len(parts), (), generator=generator))
        made.append(Missing(" ".join([*parts[:place], "[blank]", *parts[place + 1 :]]), parts[place]))
    return made


def log_probs(lab: Magnet, stories: list[Missing], *, mode: str) -> list[torch.Tensor]:
    """Log-probabilities (nats) of the missing sentences' tokens, one tensor a story; `mode` as in `score_infill`."""
    return [
        lab.score_infill(story.text, [story.sentence], mode=mode).log_probs[0]
        for story in tqdm(stories, desc=f"span perplexity, {mode}", unit=" stories", leave=False)
    ]


def perplexity(log_probs: list[torch.Tensor]) -> float:
    """Over all tokens of all stories together."""
    return torch.cat(log_probs).mean().neg().exp().item()


def copies(context: str, written: str, n: int = 4) -> bool:
    """Whether a text repeats any n words of its context, in order."""
    return bool(ngrams(context, n) & ngrams(written, n))


def ngrams(text: str, n: int) -> set[tuple[str, ...]]:
    """The runs of n words of a text, without case and punctuation."""
    words = [word.strip(".,;:!?…\"'“”‘’()-").lower() for word in text.split()]
    words = [word for word in words if word]
    return {tuple(words[start : start + n]) for start in range(len(words) - n + 1)}
