"""Figure 5: how much a model repeats itself when it writes on from five words, or from a sentence."""

from statistics import fmean

from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Setting, bootstrap
from magnet_lab.evaluation.repetition import continuations, rep_n, rep_sen
from magnet_lab.evaluation.verdicts import at_most, row_more
from magnet_lab.paraphrase import sentences

SENTENCES = "Wikitext Rep-Sen"


def _row(adapter: str | None):
    def measure(setting: Setting) -> dict[str, Figure]:
        lab = setting.lab(adapter)
        passages = setting.data.passages(setting.some(64, 4))
        stories = setting.data.stories(setting.some(64, 4))
        prefixes = {
            "Wikitext": [" ".join(passage.split()[:5]) for passage in passages],
            "stories": [sentences(story, shortest=1, longest=1000)[0] for story in stories],
        }
        figures = {}
        for name, texts in prefixes.items():
            written = continuations(lab, texts, new_tokens=setting.some(128, 24))
            figures[f"{name} Rep-Sen"] = bootstrap([rep_sen(text) for text in written], fmean)
            figures[f"{name} Rep-4"] = bootstrap([rep_n(text) for text in written], fmean)
        return figures

    return measure


EXPERIMENT = Experiment(
    id="figure5",
    title="Repetition in what is written on from a prefix",
    rows={"base": _row(None), "LLM2Vec": _row("llm2vec"), "MAGNET": _row("magnet")},
    claims=[
        Claim(
            "LLM2Vec repeats more sentences than the base model (36.5 times)",
            lambda rows: row_more(rows, "LLM2Vec", "base", SENTENCES),
        ),
        Claim(
            "MAGNET repeats fewer sentences than LLM2Vec", lambda rows: row_more(rows, "LLM2Vec", "MAGNET", SENTENCES)
        ),
        Claim(
            "MAGNET repeats at most three times as many sentences as the base model (2.7 times)",
            lambda rows: at_most(rows, "MAGNET", 3, "base", SENTENCES),
        ),
    ],
)
