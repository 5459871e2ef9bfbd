"""UniLMv2: one forward pass in place of many, what would leak, and Table 6 in miniature.

Models of a few layers, random or trained on the spot on a little world of fifty words: --model plays no part, and of
--data only the stories in which `unilmv2-onepass` hides words.
"""

from dataclasses import replace
from functools import partial

from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Setting
from magnet_lab.evaluation.verdicts import exact, over_seeds
from magnet_lab.relatives.pseudo_masked import experiments, proof
from magnet_lab.relatives.seeds import above, run_seeds, within

LOG_PROBS = 1e-5  # nats: how far what is equal may differ in float32


def _one_pass(name: str):
    def row(setting: Setting) -> dict[str, Figure]:
        stories = setting.data.stories(setting.some(250, 20))
        seeds = range(setting.seed, setting.seed + setting.some(5, 1))
        found = proof.one_pass_is_many(stories, name, seeds, texts=setting.some(8, 2))
        return {column: exact(value) for column, value in found.items()}

    return row


DIFFERENCE, TO_BERT = "largest difference (nats)", "to BERT's reading (nats)"
ONE_PASS = Experiment(
    id="unilmv2-onepass",
    title="Log-probabilities of hidden tokens, from one pass and from instances of their own",
    own_models=True,
    rows={name: _one_pass(name) for name in ("AE", "AR", "PAR")},
    claims=[
        Claim(f"one pass gives the probabilities of all steps, {name}", within((name, DIFFERENCE), 0, LOG_PROBS))
        for name in ("AE", "AR", "PAR")
    ]
    + [
        Claim(
            f"… also where the context is read anew in each step, as by BERT, {name}",
            within((name, TO_BERT), 0, LOG_PROBS),
        )
        for name in ("AR", "PAR")
    ],
)


def _tokens(length: int, name: str):
    def row(setting: Setting) -> dict[str, Figure]:
        found = proof.tokens(length, name, texts=setting.some(20, 3), seed=setting.seed)
        return {column: over_seeds(values) for column, values in found.items()}

    return row


TOKENS = Experiment(
    id="unilmv2-tokens",
    title="Tokens to read for both losses of a text: means over texts",
    own_models=True,
    rows={
        f"{name}, texts of {length}": _tokens(length, name)
        for length in (proof.LENGTH, proof.DOCUMENT_LENGTH)
        for name in ("AE + PAR", "AE + AR")
    },
    claims=[
        Claim(
            f"one pass reads fewer tokens than instances do, {name} of {length}",
            above((f"{name}, texts of {length}", "as instances"), (f"{name}, texts of {length}", "in one pass")),
        )
        for length in (proof.LENGTH, proof.DOCUMENT_LENGTH)
        for name in ("AE + PAR", "AE + AR")
    ],
)


def _leaks(way: str):
    def row(setting: Setting) -> dict[str, Figure]:
        seeds = range(setting.seed, setting.seed + setting.some(5, 1))
        found = {}
        for layers, name in ((1, "1 layer"), (2, "2 layers"), (4, "4 layers")):
            own, anywhere = proof.leaks(proof.WAYS[way], layers, seeds)
            found[f"own mask, {name}"], found[f"elsewhere, {name}"] = exact(own), exact(anywhere)
        return found

    return row


AS_PRINTED, EXPLICIT, IMPLICIT, SHOWN = proof.WAYS
LEAKS = Experiment(
    id="unilmv2-leaks",
    title="A hidden token is exchanged: the largest change (nats) where it must not be known",
    own_models=True,
    rows={way: _leaks(way) for way in proof.WAYS},
    claims=[
        Claim("nothing leaks, with any number of layers", within((AS_PRINTED, "elsewhere, 4 layers"), 0, 0)),
        Claim("a pseudo mask that sees its own token knows it", within((EXPLICIT, "own mask, 1 layer"), LOG_PROBS)),
        Claim("through the context nothing leaks with one layer", within((IMPLICIT, "own mask, 1 layer"), 0, 0)),
        Claim("… and with two it does", within((IMPLICIT, "own mask, 2 layers"), LOG_PROBS)),
        Claim(
            "80/10/10 and [M] in everyone's view do not go together", within((SHOWN, "own mask, 1 layer"), LOG_PROBS)
        ),
    ],
)


def _objective(name: str):
    def row(setting: Setting) -> dict[str, Figure]:
        settings = experiments.Settings()
        if setting.quick:
            settings = replace(settings, stories=64, steps=3, examples=16, tuning_steps=3, tested=20, beam=2)
        return run_seeds(setting, partial(experiments.run, name, settings=settings), full=3)

    return row


# What Section 4.6 says of Table 6: (better, worse, the tasks that it says it of, by what stands for them here).
BOTH = ("label", "answer")
COMPARISONS = [
    ("PAR", "AE", ["label"]),
    ("PAR", "AR", BOTH),
    ("AE", "AR", ["answer"]),
    ("AE+AR", "AE", BOTH),
    ("AE+AR", "AR", BOTH),
    ("AE+PAR", "AE", BOTH),
    ("AE+PAR", "PAR", BOTH),
    ("AE+PAR", "AE+AR", BOTH),
    ("AE+PAR", "AE+PAR, no relative bias", BOTH),
    ("AE+PAR", "no pre-training", (*BOTH, "ask")),
]

TABLE_6 = Experiment(
    id="unilmv2-table6",
    title="Pre-training objectives by what they are good for: accuracy and exact match (%)",
    own_models=True,
    rows={name: _objective(name) for name in experiments.OBJECTIVES},
    claims=[
        Claim(f"{better} over {worse}, {task}", above((better, task), (worse, task)))
        for better, worse, tasks in COMPARISONS
        for task in tasks
    ],
)

EXPERIMENTS = [ONE_PASS, TOKENS, LEAKS, TABLE_6]
