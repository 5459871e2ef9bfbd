"""LLM2Vec's three steps, each with what it changes, on the bundled model and texts whatever --model and --data are."""

from magnet_lab.data import pairs, rows
from magnet_lab.data.rows import Corpus
from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Setting
from magnet_lab.evaluation.verdicts import exact
from magnet_lab.relatives import llm2vec
from magnet_lab.relatives.seeds import above, run_seeds, within


def _texts(setting: Setting) -> tuple[list[str], list[pairs.Pair]]:
    """Held-out stories, and held-out triplets of a sentence, its paraphrase and its look-alike."""
    most = setting.some(200, 6)
    stories = list(rows.texts(Corpus(["stories-held-out.txt"])))
    return stories[:most], pairs.read("triplets", Corpus(["sentences-held-out.tsv"]))[:most]


def _reach(name: str):
    def row(setting: Setting) -> dict[str, Figure]:
        found = llm2vec.reach(llm2vec.bundled(), _texts(setting)[0][:32])
        return {column: exact(value) for column, value in found[name].items()}

    return row


TURN = "turn of the first half by another second half"
REACH = Experiment(
    id="llm2vec-reach",
    title="Step 1: what a token hears of the tokens after it",
    own_models=True,
    rows={name: _reach(name) for name in ("causal", "both ways")},
    claims=[
        Claim("causally the first half of a text does not feel the second", within(("causal", TURN), -1e-6, 1e-6)),
        Claim("with the mask of step 1 it does", within(("both ways", TURN), 0.01)),
    ],
)


def _causal(setting: Setting) -> dict[str, Figure]:
    found = llm2vec.causal_baseline(llm2vec.bundled(), _texts(setting)[1])
    return {column: exact(value) for column, value in found.items()}


def _untrained(setting: Setting) -> dict[str, Figure]:
    lab = llm2vec.bundled()
    return {column: exact(value) for column, value in llm2vec.measure(lab.model, lab, *_texts(setting)).items()}


def _trained(train):
    """A row: `train(setting, seed)` is a model and its losses."""

    def row(setting: Setting) -> dict[str, Figure]:
        def measure(seed: int) -> dict[str, float]:
            model, losses = train(setting, seed)
            share = max(1, len(losses) // 6)
            found = llm2vec.measure(model, llm2vec.bundled(), *_texts(setting))
            return found | {"first losses": sum(losses[:share]) / share, "last losses": sum(losses[-share:]) / share}

        return run_seeds(setting, measure, full=3)

    return row


def _mntp(shifted: bool):
    return lambda setting, seed: llm2vec.after_mntp(seed, setting.some(60, 1), shifted)


def _simcse(setting: Setting, seed: int):
    return llm2vec.after_simcse(seed, setting.some(60, 1), setting.some(30, 1))


BOTH_WAYS, MNTP, UNSHIFTED, SIMCSE = "1 both ways", "2 MNTP", "2 labels not shifted", "3 SimCSE"
FOUND, NEAREST, LOOK_ALIKE, STRANGERS = (
    "hidden tokens found (%)",
    "paraphrase is the nearest of all (%)",
    "paraphrase nearer than the look-alike (%)",
    "cosine of strangers",
)
STEPS = Experiment(
    id="llm2vec-steps",
    title="LLM2Vec step by step: 60 steps of MNTP, 30 of SimCSE",
    own_models=True,
    rows={
        "0 causal": _causal,
        BOTH_WAYS: _untrained,
        UNSHIFTED: _trained(_mntp(shifted=False)),
        MNTP: _trained(_mntp(shifted=True)),
        SIMCSE: _trained(_simcse),
    },
    claims=[
        Claim("after MNTP more hidden tokens are found than before", above((MNTP, FOUND), (BOTH_WAYS, FOUND))),
        Claim("labels have to be shifted: more are found with it", above((MNTP, FOUND), (UNSHIFTED, FOUND))),
        Claim("after SimCSE strangers are less alike than after MNTP", above((MNTP, STRANGERS), (SIMCSE, STRANGERS))),
        Claim("… and a paraphrase is oftener the nearest of all", above((SIMCSE, NEAREST), (MNTP, NEAREST))),
        Claim("… oftener than for the causal model", above((SIMCSE, NEAREST), ("0 causal", NEAREST))),
        Claim("… and oftener nearer than its look-alike", above((SIMCSE, LOOK_ALIKE), (MNTP, LOOK_ALIKE))),
    ],
)

EXPERIMENTS = [REACH, STEPS]
