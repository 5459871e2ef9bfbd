"""The document's tables and claims in miniature: which runs they are made of, and what these say.

A figure is a mean over seeds with a 95 % interval. A claim says that some scores are higher than others of the same
seeds, so it is their difference that has an interval. The claim is held if that lies above 0, not held if it lies
below 0, and open otherwise.
"""

from dataclasses import dataclass, replace

from magnet_lab.relatives.prefix_lm.report import over_seeds
from magnet_lab.relatives.restorable.experiments import Run

Task = tuple  # the name of a function of `experiments` and its arguments between the setting and the seed
Results = dict[Task, list[dict]]  # what it returned, seed by seed

INPUT, CROSS, PRODUCT, GATING = (Run(decoder) for decoder in ("input", "cross", "product", "gating"))
CROSS_3, CROSS_5 = (replace(CROSS, sentences=count) for count in (3, 5))
GATING_3, GATING_5 = (replace(GATING, sentences=count) for count in (3, 5))
INPUT_TOKEN, CROSS_TOKEN, GATING_TOKEN = (replace(run, pooling="classification") for run in (INPUT, CROSS, GATING))
A, B, C, D = (replace(GATING, configuration=letter) for letter in "abcd")

# Table -> row -> what is run for it.
TABLES: dict[str, dict[str, Task]] = {
    title: {name: ("restoration", run) for name, run in rows.items()}
    for title, rows in {
        "mean pooling (Table 2)": {"input": INPUT, "cross": CROSS, "cross, Equation 3": PRODUCT, "gating": GATING},
        "classification token (Table 2)": {"input": INPUT_TOKEN, "cross": CROSS_TOKEN, "gating": GATING_TOKEN},
        "configurations, gating (Table 2)": {"(a)": A, "(b)": B, "(c)": C, "(d)": D},
        "sentences, cross (Table 3)": {"1": CROSS, "3": CROSS_3, "5": CROSS_5},
        "sentences, gating (Table 3)": {"1": GATING, "3": GATING_3, "5": GATING_5},
    }.items()
} | {
    "passage retrieval (Table 9)": {
        "0 layers more, not restoring": ("retrieval", A, False),
        "0 layers more, (a)": ("retrieval", A, True),
        "0 layers more, (b)": ("retrieval", B, True),
        "1 layer more, not restoring": ("retrieval", C, False),
        "1 layer more, (c)": ("retrieval", C, True),
        "1 layer more, (d)": ("retrieval", D, True),
    },
    "from a vector of MAGNET": {
        "from nothing": ("embedded", "nothing"),
        "from the last token's": ("embedded", "last"),
        "from the mean": ("embedded", "mean"),
    },
}
TASKS = list(dict.fromkeys(task for rows in TABLES.values() for task in rows.values()))


@dataclass(frozen=True)
class Claim:
    """That the scores under `higher`, added up, are above those under `lower`."""

    words: str
    higher: list[Task]
    lower: list[Task]
    score: str = "R-L"


def _restored(*runs: Run) -> list[Task]:
    return [("restoration", run) for run in runs]


CLAIMS = [
    Claim("gating restores better than cross", _restored(GATING), _restored(CROSS)),
    Claim("gating restores better than cross by Equation 3", _restored(GATING), _restored(PRODUCT)),
    Claim("cross restores better than input", _restored(CROSS), _restored(INPUT)),
    Claim("mean pooling is above the classification token, input", _restored(INPUT), _restored(INPUT_TOKEN)),
    Claim("mean pooling is above the classification token, cross", _restored(CROSS), _restored(CROSS_TOKEN)),
    Claim("mean pooling is above the classification token, gating", _restored(GATING), _restored(GATING_TOKEN)),
    Claim("frozen restores worse, no layers more: (a) over (b)", _restored(A), _restored(B)),
    Claim("frozen restores worse, with layers more: (c) over (d)", _restored(C), _restored(D)),
    Claim("more layers make up for freezing: (d) over (b)", _restored(D), _restored(B)),
    Claim("1 sentence is restored better than 3, cross", _restored(CROSS), _restored(CROSS_3)),
    Claim("1 sentence is restored better than 3, gating", _restored(GATING), _restored(GATING_3)),
    Claim("3 sentences are restored better than 5, cross", _restored(CROSS_3), _restored(CROSS_5)),
    Claim("3 sentences are restored better than 5, gating", _restored(GATING_3), _restored(GATING_5)),
    Claim("gating is above cross at 3 sentences", _restored(GATING_3), _restored(CROSS_3)),
    Claim("gating is above cross at 5 sentences", _restored(GATING_5), _restored(CROSS_5)),
    Claim("from 1 to 3 sentences cross loses more", _restored(CROSS, GATING_3), _restored(CROSS_3, GATING)),
    Claim("having restored helps retrieval, (a)", [("retrieval", A, True)], [("retrieval", A, False)], "R@5"),
    Claim("having restored helps retrieval, (d)", [("retrieval", D, True)], [("retrieval", C, False)], "R@5"),
    Claim("frozen retrieves better, with layers more", [("retrieval", D, True)], [("retrieval", C, True)], "R@5"),
    Claim("MAGNET's last token holds words", [("embedded", "last")], [("embedded", "nothing")], "R-1"),
    Claim("MAGNET's last token holds their order", [("embedded", "last")], [("embedded", "nothing")], "R-2"),
    Claim("the mean holds more than the last token", [("embedded", "mean")], [("embedded", "last")]),
]


def figures(results: Results) -> dict:
    """Every table: for each row its scores, for each score mean, interval and number of seeds."""
    return {
        title: {
            row: {
                score: over_seeds([result[score] for result in results[task]])
                for score in results[task][0]
                if score != "samples"
            }
            for row, task in rows.items()
        }
        for title, rows in TABLES.items()
    }


def verdicts(results: Results) -> dict[str, dict]:
    """Every claim: the difference that it speaks of, and "held", "not held" or "open"."""
    return {claim.words: verdict(claim, results) for claim in CLAIMS}


def verdict(claim: Claim, results: Results) -> dict:
    """One claim: mean difference over seeds, its interval, and what follows."""
    higher, lower = (
        [sum(scores) for scores in zip(*([r[claim.score] for r in results[task]] for task in side), strict=True)]
        for side in (claim.higher, claim.lower)
    )
    difference = over_seeds([one - other for one, other in zip(higher, lower, strict=True)])
    held = difference["low"] is not None and difference["low"] > 0
    contradicted = difference["high"] is not None and difference["high"] < 0
    return {"score": claim.score, **difference, "verdict": "held" if held else "not held" if contradicted else "open"}
