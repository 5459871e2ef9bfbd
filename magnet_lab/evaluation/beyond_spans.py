"""Infilling by the length of what is missing: perplexity of a token, from the left alone and with both sides in view.

Appendix F says that MAGNET infills very long stretches worse. A token deep in a long stretch is far from both ends, so
the right context should also be worth the less, the longer the stretch.
"""

from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Rows, Setting, bootstrap
from magnet_lab.evaluation.infilling import log_probs, perplexity, remove_spans
from magnet_lab.evaluation.verdicts import more

LENGTHS = (1, 2, 4, 8, 16, 24)  # words
LEFT, BOTH = "MAGNET, left context only", "MAGNET"


def _row(adapter: str | None, mode: str):
    def measure(setting: Setting) -> dict[str, Figure]:
        lab, found = setting.lab(adapter), {}
        kinds = {
            "stories": setting.data.stories(setting.some(40, 3)),
            "Wikitext": setting.data.passages(setting.some(40, 3)),
        }
        for kind, texts in kinds.items():
            for length in LENGTHS:
                # A stretch of one word is one or two tokens, so short ones need more places to be measured as well.
                seeds = range(setting.seed, setting.seed + setting.some(max(1, 4 // length), 1))
                spans = [remove_spans(texts, at_most=1, shortest=length, longest=length, seed=seed) for seed in seeds]
                missing = [one for some in spans for one in some]
                found[f"{kind}, {length} words"] = bootstrap(log_probs(lab, missing, mode=mode), perplexity, draws=300)
        return found

    return measure


def gain(rows: Rows, kind: str, length: int) -> float:
    """How many times likelier a token is for the same adapter if it sees the right context as well."""
    column = f"{kind}, {length} words"
    return rows[LEFT][column].value / rows[BOTH][column].value


def _worth_less(kind: str):
    def holds(rows: Rows) -> bool | None:
        if LEFT not in rows or BOTH not in rows:
            return None
        return gain(rows, kind, LENGTHS[0]) > gain(rows, kind, LENGTHS[-1])

    return holds


def _worse(kind: str):
    def holds(rows: Rows) -> bool | None:
        if BOTH not in rows:
            return None
        return more(rows[BOTH][f"{kind}, {LENGTHS[-1]} words"], rows[BOTH][f"{kind}, {LENGTHS[0]} words"])

    return holds


EXPERIMENT = Experiment(
    id="beyond-spans",
    title="Infilling by the length of what is missing: perplexity",
    rows={"base": _row(None, "causal"), LEFT: _row("magnet", "causal"), BOTH: _row("magnet", "infill")},
    claims=[
        Claim("The longer what is missing, the less the right context is worth (stories)", _worth_less("stories")),
        Claim("… (Wikitext)", _worth_less("Wikitext")),
        Claim("MAGNET finds a token of 24 missing words less likely than of one (stories)", _worse("stories")),
        Claim("… (Wikitext)", _worse("Wikitext")),
    ],
)
