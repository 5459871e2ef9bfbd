"""Figure 6: does a model repeat itself the more, the longer it is adapted? Rep-Sen and Rep-4 along the training.

As in Figure 5 the adaptations are compared before any contrastive training: LLM2Vec is then MNTP under the
bidirectional mask, MAGNET is MNTP + MSG. Continuations of Figure 5's two kinds of prefix count together, half and half.
"""

import dataclasses

from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Setting
from magnet_lab.evaluation.figure7 import ends_higher, masked_recipe, rises, stops
from magnet_lab.evaluation.repetition import continuations, rep_n, rep_sen
from magnet_lab.evaluation.trained import adapters, recipe_for, seeds, with_phases
from magnet_lab.evaluation.verdicts import exact, opposite, over_seeds
from magnet_lab.model import Magnet
from magnet_lab.paraphrase import sentences
from magnet_lab.training.recipe import Phase, Recipe

MEASURES = {"Rep-Sen": rep_sen, "Rep-4": rep_n}


def prefixes(setting: Setting) -> list[str]:
    """Five words of a passage, or the first sentence of a story."""
    passages = setting.data.passages(setting.some(16, 2))
    stories = setting.data.stories(setting.some(16, 2))
    openings = [sentences(story, shortest=1, longest=1000)[0] for story in stories]
    return [" ".join(passage.split()[:5]) for passage in passages] + openings


def _recipe(setting: Setting, method: str) -> Recipe:
    """As many steps for either; LLM2Vec's is the run of Figure 7 as well."""
    llm2vec = masked_recipe(setting, "mntp")
    if method == "LLM2Vec":
        return llm2vec
    recipe = recipe_for(setting, "ablation-mntp-msg")
    return with_phases(recipe, [Phase(llm2vec.steps, mntp=1.0, msg=1.0)])


def _row(method: str, name: str):
    def measure(setting: Setting) -> dict[str, Figure]:
        recipe, texts = _recipe(setting, method), prefixes(setting)
        runs = [
            adapters(setting, name, dataclasses.replace(recipe, seed=seed), stops=stops(setting))
            for seed in seeds(setting)
        ]
        found = {
            f"{key}, 0 steps": exact(value) for key, value in repetition(setting.lab(None), setting, texts).items()
        }
        for step in runs[0]:
            measured = [repetition(setting.lab(str(run[step])), setting, texts) for run in runs]
            for key in MEASURES:
                found[f"{key}, {step} steps"] = over_seeds([values[key] for values in measured])
        return found

    return measure


def repetition(lab: Magnet, setting: Setting, texts: list[str]) -> dict[str, float]:
    """Means over what a model writes on, greedily, from each of the texts."""
    written = continuations(lab, texts, new_tokens=setting.some(128, 24))
    return {name: sum(map(measure, written)) / len(written) for name, measure in MEASURES.items()}


EXPERIMENT = Experiment(
    id="figure6",
    title="Repetition along the training",
    rows={"LLM2Vec": _row("LLM2Vec", "mntp"), "MAGNET": _row("MAGNET", "mntp-msg-figure6")},
    claims=[
        Claim(
            "The longer LLM2Vec trains, the more sentences it repeats", lambda rows: rises(rows, "LLM2Vec", "Rep-Sen")
        ),
        Claim("… and the more runs of four words", lambda rows: rises(rows, "LLM2Vec", "Rep-4")),
        Claim(
            "MAGNET shows no such trend: it repeats no more sentences at the end than at the start",
            lambda rows: opposite(rises(rows, "MAGNET", "Rep-Sen")),
        ),
        Claim(
            "LLM2Vec ends with more repeated sentences than MAGNET",
            lambda rows: ends_higher(rows, "LLM2Vec", "MAGNET", "Rep-Sen"),
        ),
    ],
)
