"""Figure 7: a hidden token read one position to its left (MNTP) or at its own place (MTP), along the training.

Both start from the same weights, on the same rows with the same tokens hidden; only the place of the label differs. The
accuracy is on stories that nothing was trained on. A tenth of the hidden tokens stay as they are: read from its own
place such a token need only be copied, so copying alone finds ten percent.
"""

import dataclasses

from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Rows, Setting
from magnet_lab.evaluation.masked import accuracy
from magnet_lab.evaluation.trained import adapters, losses, recipe_for, seeds, with_phases
from magnet_lab.evaluation.verdicts import exact, more, opposite, over_seeds
from magnet_lab.training.recipe import Phase, Recipe

STOPS = 4
ACCURACY, LOSS = "hidden tokens found (%)", "training loss (nats)"


def masked_recipe(setting: Setting, objective: str) -> Recipe:
    """Appendix E's run: one objective under the bidirectional mask, as many steps for either."""
    recipe = recipe_for(setting, "mtp")
    spans = dataclasses.replace(recipe.spans, at_most=0)
    return with_phases(dataclasses.replace(recipe, spans=spans), [Phase(recipe.steps, **{objective: 1.0})])


def stops(setting: Setting) -> int:
    """How many points of a curve lie after its start."""
    return setting.some(STOPS, 2)


def _row(objective: str):
    def measure(setting: Setting) -> dict[str, Figure]:
        texts = setting.data.stories(setting.some(60, 8))
        own_place = objective == "mtp"
        recipe = masked_recipe(setting, objective)
        runs = [
            adapters(setting, objective, dataclasses.replace(recipe, seed=seed), stops=stops(setting))
            for seed in seeds(setting)
        ]
        logs = [losses(next(iter(run.values())), objective) for run in runs]
        found = {f"{ACCURACY}, 0 steps": exact(accuracy(setting.lab(None), texts, own_place=own_place))}
        last = 0
        for step in runs[0]:
            labs = (setting.lab(str(run[step])) for run in runs)
            found[f"{ACCURACY}, {step} steps"] = over_seeds([accuracy(lab, texts, own_place=own_place) for lab in labs])
            # Since the last point: the loss of a single step jumps about.
            means = [sum(log[s] for s in range(last + 1, step + 1)) / (step - last) for log in logs]
            found[f"{LOSS}, {step} steps"] = over_seeds(means)
            last = step
        return found

    return measure


def ends(rows: Rows, row: str, name: str) -> tuple[Figure, Figure] | None:
    """The first and the last point of a curve, columns "NAME, N steps"; None where it was not measured."""
    points = [figure for column, figure in rows.get(row, {}).items() if column.startswith(f"{name}, ")]
    return (points[0], points[-1]) if points else None


def rises(rows: Rows, row: str, name: str) -> bool | None:
    """Whether a curve ends above its start; None where it was not measured, or the intervals do not tell."""
    found = ends(rows, row, name)
    return found and more(found[1], found[0])


def ends_higher(rows: Rows, one: str, other: str, name: str) -> bool | None:
    """Whether one row's curve ends above another's."""
    first, second = ends(rows, one, name), ends(rows, other, name)
    return None if first is None or second is None else more(first[1], second[1])


EXPERIMENT = Experiment(
    id="figure7",
    title="MTP against MNTP along the training",
    rows={"MNTP": _row("mntp"), "MTP": _row("mtp")},
    claims=[
        Claim("MTP: the training loss falls", lambda rows: opposite(rises(rows, "MTP", LOSS))),
        Claim("… and yet fewer hidden tokens are found", lambda rows: opposite(rises(rows, "MTP", ACCURACY))),
        Claim("MNTP finds more of them the longer it trains", lambda rows: rises(rows, "MNTP", ACCURACY)),
        Claim("MNTP ends above MTP", lambda rows: ends_higher(rows, "MNTP", "MTP", ACCURACY)),
    ],
)
