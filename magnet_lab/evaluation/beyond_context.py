"""Infilling by how much of the right context is in view: perplexity of a missing sentence.

The same sentence of the same story is scored each time; only the text after the blank is cut. With no word to the right
there is nothing but the left context, which the MAGNET mask still reads in both directions.
"""

from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Rows, Setting, bootstrap
from magnet_lab.evaluation.infilling import Missing, log_probs, perplexity, remove_sentences
from magnet_lab.evaluation.verdicts import more, opposite

WORDS = (0, 1, 2, 4, 8, 16, 32)  # to the right of what is missing


def cut(missing: Missing, words: int) -> Missing:
    """The same text with at most so many words after its blank."""
    left, right = missing.text.split("[blank]")
    return Missing(f"{left}[blank]{''.join(f' {word}' for word in right.split()[:words])}", missing.fills)


def column(words: int) -> str:
    return f"{words} words to the right"


def _row(adapter: str | None):
    def measure(setting: Setting) -> dict[str, Figure]:
        lab = setting.lab(adapter)
        stories = remove_sentences(setting.data.stories(setting.some(100, 4)), seed=setting.seed)
        # The last sentence of a story has nothing to its right that could be cut.
        stories = [missing for missing in stories if len(missing.text.split("[blank]")[1].split()) >= 4]
        return {
            column(words): bootstrap(
                log_probs(lab, [cut(missing, words) for missing in stories], mode="infill"), perplexity, draws=300
            )
            for words in WORDS
        }

    return measure


def _better(many: int, few: int, row: str = "MAGNET"):
    def holds(rows: Rows) -> bool | None:
        if row not in rows:
            return None
        return opposite(more(rows[row][column(many)], rows[row][column(few)]))

    return holds


EXPERIMENT = Experiment(
    id="beyond-context",
    title="Infilling by how much of the right context is in view: perplexity of a missing sentence",
    rows={"base under the MAGNET mask": _row(None), "MAGNET": _row("magnet")},
    claims=[
        Claim("The right context helps MAGNET: all of it against none", _better(WORDS[-1], 0)),
        Claim("Its first four words help already", _better(4, 0)),
        Claim("What lies beyond the first eight words still helps", _better(WORDS[-1], 8)),
        Claim(
            "Nobody taught the base model to look right: it is of no help to it",
            lambda rows: opposite(_better(WORDS[-1], 0, "base under the MAGNET mask")(rows)),
        ),
    ],
)
