"""Restorable embeddings: Tables 2, 3 and 9 in miniature, and what is left of a sentence in a vector of MAGNET.

Small models, trained on the spot on the bundled plain stories: --model and --data play no part. The vocabulary has
1,200 words; others are lost before they are encoded, so that no figure can reach 100.
"""

from dataclasses import replace

from magnet_lab.data.rows import Corpus, texts
from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Setting
from magnet_lab.relatives.restorable import experiments
from magnet_lab.relatives.restorable.experiments import Run, Setup
from magnet_lab.relatives.seeds import above, run_seeds

SEEDS = 3


def _setup(setting: Setting) -> Setup:
    train, held_out = (tuple(texts(Corpus([f"plain-stories{part}.txt"]))) for part in ("", "-held-out"))
    if not setting.quick:
        return Setup(train, held_out)
    made = Setup(train[:60], held_out[:10], steps=3, pretraining_steps=3, retrieval_steps=3, measured=6)
    return replace(made, shape=replace(made.shape, vocabulary=300))


def _restored(**run):
    return lambda setting: run_seeds(
        setting, lambda seed: experiments.restoration(_setup(setting), Run(**run), seed), SEEDS
    )


def _retrieved(configuration: str, restoring: bool):
    def row(setting: Setting) -> dict[str, Figure]:
        run = Run(configuration=configuration)
        return run_seeds(setting, lambda seed: experiments.retrieval(_setup(setting), run, restoring, seed), SEEDS)

    return row


def _embedded(vector: str):
    return lambda setting: run_seeds(setting, lambda seed: experiments.embedded(_setup(setting), vector, seed), SEEDS)


def _claim(text: str, higher: str, lower: str, column: str = "R-L") -> Claim:
    return Claim(text, above((higher, column), (lower, column)))


TABLE_2 = Experiment(
    id="re-table2",
    title="One sentence restored from its vector: perplexity and ROUGE (%)",
    own_models=True,
    rows={
        "input": _restored(decoder="input"),
        "cross": _restored(decoder="cross"),
        "gating": _restored(),
        "gating, classification token": _restored(pooling="classification"),
        "gating (b)": _restored(configuration="b"),
        "gating (c)": _restored(configuration="c"),
        "gating (d)": _restored(configuration="d"),
    },
    claims=[
        _claim("gating restores better than cross", "gating", "cross"),
        _claim("cross restores better than input", "cross", "input"),
        _claim("mean pooling is above the classification token", "gating", "gating, classification token"),
        _claim("frozen restores worse, no layers more: (a) over (b)", "gating", "gating (b)"),
        _claim("frozen restores worse, with layers more: (c) over (d)", "gating (c)", "gating (d)"),
        _claim("more layers make up for freezing: (d) over (b)", "gating (d)", "gating (b)"),
    ],
)

TABLE_3 = Experiment(
    id="re-table3",
    title="Passages of several sentences restored from one vector: perplexity and ROUGE (%)",
    own_models=True,
    rows={
        f"{decoder}, {count}": _restored(decoder=decoder, sentences=count)
        for decoder in ("cross", "gating")
        for count in (1, 3, 5)
    },
    claims=[
        _claim("1 sentence is restored better than 3, cross", "cross, 1", "cross, 3"),
        _claim("3 sentences better than 5, cross", "cross, 3", "cross, 5"),
        _claim("1 sentence is restored better than 3, gating", "gating, 1", "gating, 3"),
        _claim("3 sentences better than 5, gating", "gating, 3", "gating, 5"),
        _claim("gating is above cross at 3 sentences", "gating, 3", "cross, 3"),
        _claim("gating is above cross at 5 sentences", "gating, 5", "cross, 5"),
    ],
)

TABLE_9 = Experiment(
    id="re-table9",
    title="The rest of a story found by its first sentence: recall (%)",
    own_models=True,
    rows={
        "0 layers more, not restoring": _retrieved("a", False),
        "0 layers more, (a)": _retrieved("a", True),
        "0 layers more, (b)": _retrieved("b", True),
        "1 layer more, not restoring": _retrieved("c", False),
        "1 layer more, (c)": _retrieved("c", True),
        "1 layer more, (d)": _retrieved("d", True),
    },
    claims=[
        _claim("having restored helps, (a)", "0 layers more, (a)", "0 layers more, not restoring", "R@5"),
        _claim("having restored helps, (d)", "1 layer more, (d)", "1 layer more, not restoring", "R@5"),
        _claim("with layers more, frozen retrieves better", "1 layer more, (d)", "1 layer more, (c)", "R@5"),
    ],
)

MAGNET = Experiment(
    id="re-magnet",
    title="A sentence restored from the bundled model's MAGNET vector: perplexity and ROUGE (%)",
    own_models=True,
    rows={
        "from nothing": _embedded("nothing"),
        "from the last token's": _embedded("last"),
        "from the mean": _embedded("mean"),
    },
    claims=[
        _claim("the last token's vector holds words", "from the last token's", "from nothing", "R-1"),
        _claim("… and something of their order", "from the last token's", "from nothing", "R-2"),
        _claim("the mean holds more than the last token's", "from the mean", "from the last token's"),
    ],
)

EXPERIMENTS = [TABLE_2, TABLE_3, TABLE_9, MAGNET]
