"""Why two phases? The paper adds the contrastive objective late (Appendix A); here it is there from the start as well.

Both runs have the same steps, rows and seeds. The one-phase run sees a batch of pairs in every step, the other only in
its second phase, so it sees about five times as many and takes longer: a gain of two phases is in spite of that.
"""

from magnet_lab.evaluation.experiment import Claim, Experiment, Rows, Setting
from magnet_lab.evaluation.table6 import INFILLING, all_objectives, similarities, trained_row
from magnet_lab.evaluation.trained import with_phases
from magnet_lab.evaluation.verdicts import opposite, row_more
from magnet_lab.training.recipe import Phase, Recipe

TWO, ONE = "two phases", "one phase"


def one_phase(setting: Setting) -> Recipe:
    """All three objectives in every step."""
    recipe = all_objectives(setting)
    late = recipe.phases[-1]
    return with_phases(recipe, [Phase(recipe.steps, mntp=late.mntp, sscl=late.sscl, msg=late.msg)])


def _better_sentences(rows: Rows) -> bool | None:
    answers = {row_more(rows, TWO, ONE, task) for task in similarities(rows, TWO)}
    return answers.pop() if len(answers) == 1 else None


EXPERIMENT = Experiment(
    id="beyond-phases",
    title="One phase against two, for the same number of steps",
    rows={TWO: trained_row("all", all_objectives), ONE: trained_row("one-phase", one_phase)},
    claims=[
        Claim("Two phases infill better than one", lambda rows: row_more(rows, ONE, TWO, INFILLING)),
        Claim("Two phases give better sentence vectors than one, in every task", _better_sentences),
        Claim(
            "Two phases give word vectors that find chunks no worse",
            lambda rows: opposite(row_more(rows, ONE, TWO, "chunking")),
        ),
    ],
)
