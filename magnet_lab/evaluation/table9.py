"""Table 9: what the base model writes for a missing sentence when it is asked in words, by each of the four prompts.

The texts are for the stories that the paper shows, the figures for those of the data.
"""

from collections.abc import Iterable

from magnet_lab.evaluation.experiment import Claim, Experiment, Row, Rows, Setting
from magnet_lab.evaluation.infilling import Missing
from magnet_lab.evaluation.reproduce import published
from magnet_lab.evaluation.verdicts import every, row_more
from magnet_lab.evaluation.written import COPIES, SYSTEMS, Written, figures, middle_sentences, write

PROMPTS = {
    "blank infilling": "zero-shot, blank infilling",
    "contextual": "zero-shot, contextual",
    "prefix-suffix": "zero-shot, prefix-suffix",
    "line-by-line": "zero-shot",
}
TRUE = "true sentence"


def row(table: str, system: str):
    """How a system's row of Table 9 or 10 is measured."""

    def measure(setting: Setting) -> Row:
        stories = middle_sentences(setting.data, setting.some(60, 3), seed=setting.seed)
        if system == TRUE:
            return Row(figures([Written(story, story.fills[0]) for story in stories], setting.lab(None)))
        shown = [Missing(text, []) for text in list(published()[table]["texts"])[: setting.some(7, 1)]]
        filler = SYSTEMS[system](setting)
        texts = {each.missing.text: each.sentence for each in write(filler, shown)}
        return Row(figures(write(filler, stories), setting.lab(None)), texts)

    return measure


def copies_more(rows: Rows, these: Iterable[str], other: str) -> bool | None:
    """Whether each of these rows repeats its story more often than the other one."""
    return every([row_more(rows, row, other, COPIES) for row in these])


EXPERIMENT = Experiment(
    id="table9",
    title="Sentences written on request: four prompts",
    rows={
        "base": row("table9", "base"),
        **{name: row("table9", system) for name, system in PROMPTS.items()},
        "MAGNET": row("table9", "MAGNET"),
        TRUE: row("table9", TRUE),
    },
    claims=[
        Claim(
            "By whichever prompt, the base model repeats the story's lines, more than people do (Appendix B.1)",
            lambda rows: copies_more(rows, PROMPTS, TRUE),
        ),
        Claim(
            "By whichever prompt, it repeats them more than MAGNET does",
            lambda rows: copies_more(rows, PROMPTS, "MAGNET"),
        ),
    ],
    shown=7,
)
