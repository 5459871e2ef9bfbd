"""The prefix-LM chapter: its masks, its training on its own text, and what its printed mask does.

Models of 110,000 parameters are trained on the spot, for seconds each: --model and --data play no part.
"""

from magnet_lab.attention import attention_mask
from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Setting
from magnet_lab.evaluation.verdicts import exact
from magnet_lab.relatives.prefix_lm import experiments as chapter
from magnet_lab.relatives.prefix_lm.masks import MODES, printed_mask
from magnet_lab.relatives.prefix_lm.model import PrefixLM, parameter_count
from magnet_lab.relatives.seeds import above, run_seeds, within

GUESSING = 3.4657  # nats: ln 32, as the chapter prints it


def _trained(measure, full: int, *known, seeds: int = 5):
    """A row: `measure(*known, seed, steps)` over seeds, of `full` steps each."""

    def row(setting: Setting) -> dict[str, Figure]:
        steps = setting.some(full, 2)
        return run_seeds(setting, lambda seed: measure(*known, seed=seed, steps=steps), seeds)

    return row


def _mask(name: str):
    return lambda setting: {column: exact(value) for column, value in chapter.mask(name).items()}


def _model(setting: Setting) -> dict[str, Figure]:
    return {"parameters (thousands)": exact(parameter_count(PrefixLM(1000)) / 1000)}


MASKS = Experiment(
    id="prefixlm-masks",
    title="Who may look at whom: six tokens, three of them prefix",
    own_models=True,
    rows={name: _mask(name) for name in chapter.MASKS} | {"model, 1000 tokens": _model},
    claims=[
        Claim("36 pairs may attend in both directions", within(("bidirectional", "pairs"), 36, 36)),
        Claim("21 causally", within(("unidirectional", "pairs"), 21, 21)),
        Claim("24 with a prefix, by the chapter's equation", within(("prefix", "pairs"), 24, 24)),
        Claim("33 with a prefix, by the chapter's code", within(("prefix, as printed", "pairs"), 33, 33)),
        Claim(
            "a target that is told later cannot reach one that is told before (not by the chapter's code)",
            within(("prefix, as printed", "later targets in reach, two layers"), 0, 0),
        ),
        Claim(
            "the chapter's model has 670,184 parameters",
            within(("model, 1000 tokens", "parameters (thousands)"), 670.184, 670.184),
        ),
    ],
)

TEXT = Experiment(
    id="prefixlm-text",
    title=f"500 steps on the chapter's 216 characters: losses (nats; guessing has {GUESSING})",
    own_models=True,
    rows={name: _trained(chapter.chapter, chapter.STEPS, name) for name in chapter.ARMS},
    claims=[
        Claim("the loss begins within half a nat of guessing", within(("printed", "first loss"), 3.0, 4.0)),
        Claim("it falls by 85 % or more (88.9 %), the chapter's code", within(("printed", "fall (%)"), 85)),
        Claim("it falls by 85 % or more, the chapter's equation", within(("prefix", "fall (%)"), 85)),
        Claim(
            "the first target token is told better than the next four",
            above(("prefix", "2nd to 5th"), ("prefix", "1st target")),
        ),
        Claim(
            "the next four are told better than the tenth to fourteenth",
            above(("prefix", "10th to 14th"), ("prefix", "2nd to 5th")),
        ),
        Claim(
            "a prefix that is read in both directions helps: half a row is told better than causally",
            above(("causal", "half a row"), ("prefix", "half a row")),
        ),
    ],
)

RANDOM, ONE, LAST_FIVE = "random splits", "one split", "loss of the row's last five"
LENGTHS = Experiment(
    id="prefixlm-lengths",
    title="Prefixes of other lengths than in training, which has 14 to 33, or always 24",
    own_models=True,
    rows={
        f"{splits}, prefix of {length}": _trained(chapter.prefix_of, chapter.STEPS, length, arm)
        for splits, arm in ((RANDOM, "prefix"), (ONE, "one split"))
        for length in chapter.SPLITS
    },
    claims=[
        Claim(
            "with a longer prefix the row's last five characters are told better (29 against 14)",
            above((f"{RANDOM}, prefix of 14", LAST_FIVE), (f"{RANDOM}, prefix of 29", LAST_FIVE)),
        ),
        Claim(
            "random splits serve other prefix lengths better than one split does (14)",
            above((f"{ONE}, prefix of 14", "loss"), (f"{RANDOM}, prefix of 14", "loss")),
        ),
        Claim("… (33)", above((f"{ONE}, prefix of 33", "loss"), (f"{RANDOM}, prefix of 33", "loss"))),
    ],
)

ATTENTION = Experiment(
    id="prefixlm-attention",
    title="What the attention of a trained model looks like",
    own_models=True,
    rows={f"layer {layer}": _trained(chapter.attention, chapter.STEPS, layer) for layer in (1, 2)},
    claims=[
        Claim(
            f"a prefix token's weights are more even than a target token's, layer {layer}",
            above((f"layer {layer}", "evenness, prefix token"), (f"layer {layer}", "evenness, target token")),
        )
        for layer in (1, 2)
    ]
    + [
        Claim(
            f"a target token gives the prefix more than its share, layer {layer}",
            above((f"layer {layer}", "target's weight on the prefix"), (f"layer {layer}", "… if all were alike")),
        )
        for layer in (1, 2)
    ],
)

WORSE_IN_WRITING = above(("printed mask", "loss in writing"), ("printed mask", "loss in training's pass"))
LEAK = Experiment(
    id="prefixlm-leak",
    title=f"Random letters, of which nothing can be known: losses (nats; guessing has {GUESSING})",
    own_models=True,
    rows={
        "sound mask": _trained(chapter.leak, 600, attention_mask),
        "printed mask": _trained(chapter.leak, 600, printed_mask),
    },
    claims=[
        Claim(
            "nothing is known under the sound mask",
            within(("sound mask", "loss in training's pass"), GUESSING),
        ),
        Claim(
            "nothing is known under the chapter's printed mask (where it is not held, the target has leaked)",
            within(("printed mask", "loss in training's pass"), GUESSING),
        ),
        Claim(
            "under the printed mask writing is as good as training says it is",
            lambda rows: None if (worse := WORSE_IN_WRITING(rows)) is None else not worse,
        ),
    ],
)

RIGHT = "letters written right (%)"
SORTING = Experiment(
    id="prefixlm-sorting",
    title="Eight letters, to be written in order",
    own_models=True,
    rows={name: _trained(chapter.sorting, 600, name, seeds=3) for name in chapter.SORTERS},
    claims=[
        Claim(
            "the sound mask writes better than the printed one",
            above(("prefix", RIGHT), ("prefix, printed mask", RIGHT)),
        ),
        Claim("a prefix that is read in both directions helps", above(("prefix", RIGHT), ("causal", RIGHT))),
        Claim(
            "an encoder-decoder of more parameters writes better than the decoder alone",
            above(("encoder-decoder, 2 + 2 layers", RIGHT), ("prefix", RIGHT)),
        ),
        Claim(
            "… of fewer parameters too",
            above(("encoder-decoder, 1 + 1 layers", RIGHT), ("prefix", RIGHT)),
        ),
    ],
)

UNIFIED = Experiment(
    id="prefixlm-modes",
    title="One model for three modes, and one for each: losses (nats)",
    own_models=True,
    rows={f"trained {name}": _trained(chapter.modes, chapter.STEPS, name, seeds=3) for name in ("unified", *MODES)},
    claims=[
        Claim(
            f"the unified model is far better than guessing where it is asked {mode}",
            within(("trained unified", f"asked {mode}"), high=GUESSING / 2),
        )
        for mode in MODES
    ]
    + [
        Claim(
            f"it is better {mode} than a model that was trained {other} alone",
            above((f"trained {other}", f"asked {mode}"), ("trained unified", f"asked {mode}")),
        )
        for mode, other in (
            ("bidirectional", "unidirectional"),
            ("unidirectional", "prefix"),
            ("prefix", "unidirectional"),
        )
    ],
)

EXPERIMENTS = [MASKS, TEXT, LENGTHS, ATTENTION, LEAK, SORTING, UNIFIED]
