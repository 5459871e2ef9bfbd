"""Table 10: what is written for a missing sentence from the left alone, after five solved examples, and by MAGNET.

The texts are for the stories that the paper shows, the figures for those of the data.
"""

from magnet_lab.evaluation.experiment import Claim, Experiment, Rows
from magnet_lab.evaluation.table9 import TRUE, copies_more, row
from magnet_lab.evaluation.verdicts import row_more
from magnet_lab.evaluation.written import FOLLOWING


def _leads_on(rows: Rows, system: str) -> bool | None:
    """A sentence that copies what follows makes it likelier too, so it must not do so by more copies."""
    return False if copies_more(rows, [system], "base") else row_more(rows, "base", system, FOLLOWING)


EXPERIMENT = Experiment(
    id="table10",
    title="Sentences written: left context, five examples, MAGNET",
    rows={name: row("table10", name) for name in ("base", "five-shot", "MAGNET", TRUE)},
    claims=[
        Claim(
            "MAGNET's sentences lead to what follows: it is likelier after them than after those that the base model "
            "writes from the left, and not by more copies",
            lambda rows: _leads_on(rows, "MAGNET"),
        ),
        Claim("So do those after five solved examples", lambda rows: _leads_on(rows, "five-shot")),
    ],
    shown=7,
)
