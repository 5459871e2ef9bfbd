"""Table 6: what each objective is for. One adapter for each set of objectives, trained for the same number of steps.

Where the paper measures word vectors for some rows and sentence vectors for others, every row is measured on
everything here, infilling too: the objective that does not serve a task shows by how little it does.
"""

import dataclasses

from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Rows, Setting
from magnet_lab.evaluation.infilling import log_probs, perplexity, remove_sentences
from magnet_lab.evaluation.similarity import cosines, spearman
from magnet_lab.evaluation.table1 import TASKS, accuracy, probe, with_tags
from magnet_lab.evaluation.table2 import INSTRUCTION
from magnet_lab.evaluation.trained import adapters, recipe_for, seeds, with_phases
from magnet_lab.evaluation.verdicts import exact, more, opposite, over_seeds
from magnet_lab.model import Magnet
from magnet_lab.training.recipe import Recipe

INFILLING = "perplexity of missing sentences"


def all_objectives(setting: Setting) -> Recipe:
    """MAGNET's two phases, as long as the other rows of the table: the rows without MNTP, with it."""
    recipe = recipe_for(setting, "ablation-sscl-msg")
    return with_phases(recipe, [dataclasses.replace(phase, mntp=1.0) for phase in recipe.phases])


def scores(lab: Magnet, setting: Setting, seed: int) -> dict[str, float]:
    """Word vectors (%), sentence vectors (Spearman x 100), infilling (perplexity) of one adapter."""
    found = words(lab, setting, seed)
    for task, (grades, first, second) in setting.data.similarity().items():
        most = setting.some(len(grades), 24)
        alike = cosines(lab, first[:most], second[:most], pooling="last", instruction=INSTRUCTION)
        found[task] = spearman(grades[:most], alike.tolist())
    missing = remove_sentences(setting.data.stories(setting.some(60, 4)), seed=setting.seed)
    found[INFILLING] = perplexity(log_probs(lab, missing, mode="infill"))
    return found


def words(lab: Magnet, setting: Setting, seed: int) -> dict[str, float]:
    """Accuracy (%) of Table 1's linear probe in its three tasks; 1000 steps for the samples, which are few."""
    train, test = setting.data.tagged()
    train, test = train[: setting.some(3000, 12)], test[: setting.some(1000, 6)]
    of_train, of_test = (lab.encode_words([sentence.words for sentence in part]) for part in (train, test))
    found = {}
    for task in TASKS:
        names = sorted({tag for sentence in (*train, *test) for tag in sentence.tags[task]})
        guesses = probe(
            with_tags(of_train, train, task, names),
            with_tags(of_test, test, task, names),
            len(names),
            steps=setting.some(1000 if setting.data.source == "samples" else 4000, 20),
            seed=seed,
        )
        pairs = [(s.tags[task], [names[tag] for tag in tags]) for s, tags in zip(test, guesses, strict=True)]
        found[task] = accuracy(pairs)
    return found


def trained_row(name: str, recipe_of):
    """A row that trains an adapter a seed, by `recipe_of(setting)`, and measures each."""

    def measure(setting: Setting) -> dict[str, Figure]:
        recipe, found = recipe_of(setting), []
        for seed in seeds(setting):
            (adapter,) = adapters(setting, name, dataclasses.replace(recipe, seed=seed)).values()
            found.append(scores(setting.lab(str(adapter)), setting, seed))
        return {column: over_seeds([values[column] for values in found]) for column in found[0]}

    return measure


def _recipe(name: str):
    def recipe_of(setting: Setting) -> Recipe:
        recipe = recipe_for(setting, name)
        return with_phases(recipe, recipe.phases)

    return recipe_of


def _base(setting: Setting) -> dict[str, Figure]:
    return {column: exact(value) for column, value in scores(setting.lab(None), setting, setting.seed).items()}


def _not_below(rows: Rows, one: str, other: str, columns, by: float) -> bool | None:
    """Whether one row is nowhere more than `by` points below another."""
    if one not in rows or other not in rows:
        return None
    shared = [column for column in columns if column in rows[one]]
    return all(rows[one][column].value >= rows[other][column].value - by for column in shared)


def similarities(rows: Rows, row: str) -> list[str]:
    """The columns that measure sentence vectors."""
    return [column for column in rows.get(row, {}) if column not in (*TASKS, INFILLING)]


def _infills_worse(rows: Rows, without: str) -> bool | None:
    if without not in rows or ALL not in rows:
        return None
    return more(rows[without][INFILLING], rows[ALL][INFILLING])


ALL = "MNTP + SSCL + MSG"

EXPERIMENT = Experiment(
    id="table6",
    title="Ablation of the objectives",
    rows={
        "base": _base,
        "MNTP": trained_row("mntp-in-spans", _recipe("ablation-mntp")),
        "SSCL": trained_row("sscl", _recipe("ablation-sscl")),
        "MNTP + MSG": trained_row("mntp-msg", _recipe("ablation-mntp-msg")),
        "SSCL + MSG": trained_row("sscl-msg", _recipe("ablation-sscl-msg")),
        "MNTP + SSCL": trained_row("mntp-sscl", _recipe("ablation-mntp-sscl")),
        ALL: trained_row("all", all_objectives),
    },
    claims=[
        Claim(
            "MSG costs the word vectors nothing: MNTP + MSG is in no task more than half a point below MNTP (92.51, "
            "98.20, 93.38 against 92.44, 98.11, 93.18)",
            lambda rows: _not_below(rows, "MNTP + MSG", "MNTP", TASKS, 0.5),
        ),
        Claim(
            "MNTP and MSG cost the sentence vectors little: all three together are in no task more than 1.1 points "
            "below SSCL alone (as STS12 is)",
            lambda rows: _not_below(rows, ALL, "SSCL", similarities(rows, "SSCL"), 1.1),
        ),
        Claim(
            "Beyond the paper: without MSG the adapter infills worse, for all that it sees both sides",
            lambda rows: _infills_worse(rows, "MNTP + SSCL"),
        ),
        Claim(
            "Beyond the paper: without MNTP it infills no worse",
            lambda rows: opposite(_infills_worse(rows, "SSCL + MSG")),
        ),
    ],
)
