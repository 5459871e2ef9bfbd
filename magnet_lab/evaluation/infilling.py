"""How likely a model finds what is missing from a text, and whether it copies what is there (Section 4.3).

Only the tokens of what is missing count. Read from left to right a model sees what stands before; under the MAGNET mask
it sees what follows as well. The ratio of the two perplexities is what the right context is worth, and the same words
are scored both ways, so nothing but the mask differs.
"""

from dataclasses import dataclass

import torch
from tqdm import tqdm

from magnet_lab.model import Magnet
from magnet_lab.paraphrase import sentences


@dataclass(frozen=True)
class Missing:
    """A text with blanks, and what stood in them."""

    text: str
    fills: list[str]


def remove_sentences(stories: list[str], *, seed: int = 0) -> list[Missing]:
    """From each story one sentence, at random, but never the first, which nothing to its left could tell."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for story in stories:
        parts = sentences(story, shortest=1, longest=1000)
        if len(parts) < 3:
            continue
        place = int(torch.randint(1, len(parts), (), generator=generator))
        made.append(Missing(" ".join([*parts[:place], "[blank]", *parts[place + 1 :]]), [parts[place]]))
    return made


def remove_spans(
    passages: list[str], *, at_most: int = 3, shortest: int = 6, longest: int = 24, seed: int = 0
) -> list[Missing]:
    """From each passage up to three runs of words that do not touch; the paper's 8 to 32 tokens are 6 to 24 words."""
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    made = []
    for passage in passages:
        words, taken = passage.split(), []
        for _ in range(draw(1, at_most)):
            length = draw(shortest, longest)
            starts = [
                start
                for start in range(1, len(words) - length)
                if all(start + length < first or start > last for first, last in taken)
            ]
            if starts and sum(last - first for first, last in taken) + length <= len(words) // 2:
                start = starts[draw(0, len(starts) - 1)]
                taken.append((start, start + length))
        pieces, rest = [], 0
        for first, last in sorted(taken):
            pieces += [*words[rest:first], "[blank]"]
            rest = last
        if taken:
            fills = [" ".join(words[first:last]) for first, last in sorted(taken)]
            made.append(Missing(" ".join([*pieces, *words[rest:]]), fills))
    return made


def log_probs(lab: Magnet, texts: list[Missing], *, mode: str) -> list[torch.Tensor]:
    """Log-probabilities (nats) of what is missing, one tensor a text; `mode` as in `score_infill`."""
    return [
        torch.cat(lab.score_infill(missing.text, missing.fills, mode=mode).log_probs)
        for missing in tqdm(texts, desc=f"span perplexity, {mode}", unit=" texts", leave=False)
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
