"""Table 11: writing on from a text with bidirectional attention, one mask after the other, and with a decoder's own.

The paper shows BERT for the first; here it is the decoder itself under that mask, as it came and as LLM2Vec's first
step (MNTP) makes it. Mask filling has no way to end a text; all write equally many tokens at most.
"""

from collections.abc import Callable
from statistics import fmean

from tqdm import tqdm

from magnet_lab.baselines import MaskFilling
from magnet_lab.evaluation.experiment import Claim, Experiment, Row, Setting, bootstrap
from magnet_lab.evaluation.repetition import continuations, rep_n, rep_sen
from magnet_lab.evaluation.verdicts import row_more
from magnet_lab.paraphrase import sentences

MASKS, MASKS_MNTP = "mask filling", "mask filling, LLM2Vec [MNTP]"
SHOWN = 4


def by_masks(adapter: str | None) -> Callable:
    """A writer that fills one mask after the other, each under the bidirectional mask."""

    def write(setting: Setting, prefixes: list[str], new_tokens: int) -> list[str]:
        filler = MaskFilling(setting.lab(None), adapter)
        bar = tqdm(prefixes, desc="filling masks", unit=" texts", leave=False)
        return [filler.generate(prefix, max_new_tokens=new_tokens) for prefix in bar]

    return write


def plainly(adapter: str | None) -> Callable:
    """A writer from left to right that takes always the likeliest token."""

    def write(setting: Setting, prefixes: list[str], new_tokens: int) -> list[str]:
        return continuations(setting.lab(adapter), prefixes, new_tokens=new_tokens)

    return write


def prefixes(setting: Setting) -> list[str]:
    """First sentences of stories, and the first five words of passages, in turns (Section 4.4)."""
    most = setting.some(12, 2)
    stories = [sentences(story, shortest=1, longest=1000)[0] for story in setting.data.stories(most)]
    passages = [" ".join(passage.split()[:5]) for passage in setting.data.passages(most)]
    return [prefix for pair in zip(stories, passages, strict=False) for prefix in pair]


def _row(write: Callable):
    def measure(setting: Setting) -> Row:
        given = prefixes(setting)
        written = write(setting, given, setting.some(64, 12))
        figures = {
            "Rep-Sen": bootstrap([rep_sen(text) for text in written], fmean),
            "Rep-4": bootstrap([rep_n(text) for text in written], fmean),
        }
        return Row(figures, dict(zip(given[:SHOWN], written, strict=False)))

    return measure


EXPERIMENT = Experiment(
    id="table11",
    title="Written on from a prefix: mask by mask, and from left to right",
    rows={
        MASKS: _row(by_masks(None)),
        MASKS_MNTP: _row(by_masks("mntp")),
        "base": _row(plainly(None)),
        "LLM2Vec": _row(plainly("llm2vec")),
        "MAGNET": _row(plainly("magnet")),
    },
    claims=[
        Claim(
            "A model of bidirectional attention repeats itself when it writes mask by mask, more than MAGNET does",
            lambda rows: row_more(rows, MASKS_MNTP, "MAGNET", "Rep-4"),
        ),
        Claim(
            "LLM2Vec repeats itself from left to right as well, more than MAGNET",
            lambda rows: row_more(rows, "LLM2Vec", "MAGNET", "Rep-4"),
        ),
    ],
    shown=SHOWN,
)
