"""Table 2: does the cosine of two sentences' vectors rank pairs of sentences as people do?"""

from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Rows, Setting, bootstrap
from magnet_lab.evaluation.similarity import cosines, spearman
from magnet_lab.evaluation.verdicts import average, more

INSTRUCTION = "Retrieve semantically similar text"  # Table 8


def _row(adapter: str | None, pooling: str):
    def measure(setting: Setting) -> dict[str, Figure]:
        lab, figures = setting.lab(adapter), {}
        for task, (scores, first, second) in setting.data.similarity().items():
            most = setting.some(len(scores), 24)
            found = cosines(lab, first[:most], second[:most], pooling=pooling, instruction=INSTRUCTION)
            pairs = list(zip(scores, found.tolist(), strict=False))
            figures[task] = bootstrap(pairs, lambda some: spearman(*zip(*some, strict=True)), draws=200)
        return figures

    return measure


def _better(one: str, other: str):
    def holds(rows: Rows) -> bool | None:
        if not rows.get(one) or not rows.get(other):
            return None
        return more(average(rows[one].values()), average(rows[other].values()))

    return holds


EXPERIMENT = Experiment(
    id="table2",
    title="Sentence similarity: Spearman correlation of the cosine (x 100)",
    # Each with its own paper's pooling, and with the other one: is the gain the pooling's?
    rows={
        "base": _row(None, "last"),
        "base, mean pooling": _row(None, "mean"),
        "Echo": _row(None, "echo"),
        "LLM2Vec": _row("llm2vec", "mean"),
        "LLM2Vec, last token": _row("llm2vec", "last"),
        "MAGNET": _row("magnet", "last"),
        "MAGNET, mean pooling": _row("magnet", "mean"),
    },
    claims=[
        Claim("MAGNET's vectors are better than the base model's (79.4 against 65.3)", _better("MAGNET", "base")),
        Claim("MAGNET's vectors are better than LLM2Vec's (79.4 against 75.9)", _better("MAGNET", "LLM2Vec")),
        Claim("MAGNET's vectors are better than Echo's (79.4 against 66.1)", _better("MAGNET", "Echo")),
    ],
)
