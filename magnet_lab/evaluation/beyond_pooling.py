"""Is MAGNET's gain on sentences the pooling's? The paper reads MAGNET and the base model from the last token, LLM2Vec
from the mean of all; here each of them is read both ways, on the same pairs."""

from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Setting, bootstrap
from magnet_lab.evaluation.similarity import cosines, spearman
from magnet_lab.evaluation.table2 import INSTRUCTION
from magnet_lab.evaluation.verdicts import above, opposite, row_more

LAST, MEAN, DIFFERENCE = "last token", "mean", "mean - last token"


def _row(adapter: str | None):
    def measure(setting: Setting) -> dict[str, Figure]:
        lab, triples = setting.lab(adapter), []  # (task, grade, cosine by the last token, by the mean)
        for task, (grades, first, second) in setting.data.similarity().items():
            most = setting.some(len(grades), 24)
            both = [
                cosines(lab, first[:most], second[:most], pooling=pooling, instruction=INSTRUCTION).tolist()
                for pooling in ("last", "mean")
            ]
            triples += [(task, *row) for row in zip(grades, *both, strict=False)]
        last, mean = (lambda some: average(some, 2)), (lambda some: average(some, 3))
        return {
            LAST: bootstrap(triples, last, draws=200),
            MEAN: bootstrap(triples, mean, draws=200),
            DIFFERENCE: bootstrap(triples, lambda some: mean(some) - last(some), draws=200),
        }

    return measure


def average(pairs: list[tuple], place: int) -> float:
    """Spearman x 100 of the grades and the cosines at a place of each tuple, averaged over the tasks."""
    tasks = sorted({pair[0] for pair in pairs})
    found = [
        spearman(*zip(*((pair[1], pair[place]) for pair in pairs if pair[0] == task), strict=True)) for task in tasks
    ]
    return sum(found) / len(found)


EXPERIMENT = Experiment(
    id="beyond-pooling",
    title="Last token or mean: Spearman correlation of the cosine (x 100), average of the tasks",
    rows={"base": _row(None), "LLM2Vec": _row("llm2vec"), "MAGNET": _row("magnet")},
    claims=[
        Claim(
            "The gain is not the pooling's: by the mean for both, MAGNET is better than the base model",
            lambda rows: row_more(rows, "MAGNET", "base", MEAN),
        ),
        Claim(
            "By the mean for both, MAGNET is better than LLM2Vec",
            lambda rows: row_more(rows, "MAGNET", "LLM2Vec", MEAN),
        ),
        Claim(
            "By the last token for both, MAGNET is better than LLM2Vec",
            lambda rows: row_more(rows, "MAGNET", "LLM2Vec", LAST),
        ),
        Claim(
            "The last token, which the paper chose, serves MAGNET better than the mean",
            lambda rows: opposite(above(rows.get("MAGNET", {}).get(DIFFERENCE), 0)),
        ),
    ],
)
