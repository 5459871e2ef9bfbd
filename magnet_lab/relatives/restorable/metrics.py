"""How much of a text came back: ROUGE-1, ROUGE-2 and ROUGE-L (Section 4).

ROUGE counts what two texts share: single words (ROUGE-1), pairs of neighbours (ROUGE-2), or the longest row of words
that stands in both in the same order, with gaps allowed (ROUGE-L). Each is an F-score, times 100 as in the tables: the
harmonic mean of the shared part of the restored text and of the original. A text that comes back whole scores 100.
"""

import re
from collections import Counter

_WORD = re.compile(r"[a-z0-9]+")


def rouge_n(original: str, restored: str, n: int) -> float:
    """F-score of the shared runs of n words, 0 … 100; a run counts as often as both texts have it."""
    runs = [Counter(zip(*(text[start:] for start in range(n)), strict=False)) for text in _both(original, restored)]
    return _f_score((runs[0] & runs[1]).total(), runs[0].total(), runs[1].total())


def rouge_l(original: str, restored: str) -> float:
    """F-score of the longest common subsequence of words, 0 … 100."""
    original_words, restored_words = _both(original, restored)
    # lengths[j]: the longest subsequence shared by the original so far and the first j words of the restored text.
    lengths = [0] * (len(restored_words) + 1)
    for word in original_words:
        above = lengths
        lengths = [0]
        for column, other in enumerate(restored_words, start=1):
            lengths.append(above[column - 1] + 1 if word == other else max(above[column], lengths[-1]))
    return _f_score(lengths[-1], len(original_words), len(restored_words))


def rouge(originals: list[str], restored: list[str]) -> dict[str, float]:
    """Means over texts of the three scores, under their names in the paper's tables: R-1, R-2 and R-L."""
    pairs = list(zip(originals, restored, strict=True))
    return {
        "R-1": sum(rouge_n(*pair, 1) for pair in pairs) / len(pairs),
        "R-2": sum(rouge_n(*pair, 2) for pair in pairs) / len(pairs),
        "R-L": sum(rouge_l(*pair) for pair in pairs) / len(pairs),
    }


def _both(*texts: str) -> list[list[str]]:
    """Words as the reference implementation of ROUGE takes them: lower case, letters and digits."""
    return [_WORD.findall(text.lower()) for text in texts]


def _f_score(shared: int, in_original: int, in_restored: int) -> float:
    return 100 * 2 * shared / (in_original + in_restored) if shared else 0.0
