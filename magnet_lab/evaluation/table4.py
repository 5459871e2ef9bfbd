"""Table 4: perplexity of a missing sentence of a story, and of missing spans of a passage."""

from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Setting, bootstrap
from magnet_lab.evaluation.infilling import log_probs, perplexity, remove_sentences, remove_spans
from magnet_lab.evaluation.verdicts import row_more

STORIES, PASSAGES = "stories, one sentence", "Wikitext, spans"


def _row(adapter: str | None, mode: str):
    def measure(setting: Setting) -> dict[str, Figure]:
        lab = setting.lab(adapter)
        texts = {
            STORIES: remove_sentences(setting.data.stories(setting.some(200, 8)), seed=setting.seed),
            PASSAGES: remove_spans(setting.data.passages(setting.some(100, 4)), seed=setting.seed),
        }
        return {column: bootstrap(log_probs(lab, missing, mode=mode), perplexity) for column, missing in texts.items()}

    return measure


EXPERIMENT = Experiment(
    id="table4",
    title="Infilling: perplexity of what is missing",
    rows={
        "base": _row(None, "causal"),
        "base under the MAGNET mask": _row(None, "infill"),
        "MAGNET, left context only": _row("magnet", "causal"),
        "MAGNET": _row("magnet", "infill"),
    },
    claims=[
        Claim(
            "With both sides in view MAGNET finds a story's missing sentence likelier than the base model does from "
            "the left (9.5 against 13.9)",
            lambda rows: row_more(rows, "base", "MAGNET", STORIES),
        ),
        Claim(
            "The same for missing spans of Wikitext (15.5 against 22.0)",
            lambda rows: row_more(rows, "base", "MAGNET", PASSAGES),
        ),
        Claim(
            "The gain is the right context's, not only the training's: the same adapter, left context alone, is worse",
            lambda rows: row_more(rows, "MAGNET, left context only", "MAGNET", STORIES),
        ),
    ],
)
