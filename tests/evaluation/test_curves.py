"""Experiments that train, and those beyond the paper: against slow loops, other libraries and the command's loop."""

import dataclasses
import math

import pytest
import torch
from safetensors.torch import load_file
from scipy import stats

from magnet_lab import views
from magnet_lab.attention import bidirectional
from magnet_lab.blanks import template
from magnet_lab.data.rows import Corpus
from magnet_lab.decoder import hidden_states, logits, start_ids, text_ids, vocabulary_scores
from magnet_lab.evaluation import (
    beyond_cost,
    beyond_mask,
    beyond_phases,
    beyond_pooling,
    beyond_spans,
    figure7,
    masked,
    table6,
    trained,
)
from magnet_lab.evaluation.data import Data
from magnet_lab.evaluation.experiment import Figure, Setting
from magnet_lab.evaluation.infilling import Missing
from magnet_lab.evaluation.verdicts import above, more, opposite, over_seeds
from magnet_lab.scoring import ids_of_fill
from magnet_lab.training.loop import Trainer
from magnet_lab.training.recipe import Contrast, Phase, Recipe, Spans

STORY = "Tom had a red ball. He lost it in the park. He was very sad."


def tiny(**changes) -> Setting:
    return Setting("tiny", Data("samples"), **changes)


def around(value: float, half: float) -> Figure:
    return Figure(value, value - half, value + half, 3)


def test_the_interval_over_seeds_is_students():
    values = [3.0, 5.0, 4.5]
    low, high = stats.t.interval(0.95, 2, loc=sum(values) / 3, scale=stats.sem(values))
    found = over_seeds(values)
    assert (found.value, found.low, found.high, found.n) == pytest.approx((sum(values) / 3, low, high, 3))
    assert over_seeds([2.0]) == Figure(2.0, 2.0, 2.0, 1)


def test_numbers_differ_where_their_difference_is_beyond_chance():
    """Half widths of 3 and 4 are 5 for the difference."""
    assert more(around(10, 3), around(4.9, 4)) is True
    assert more(around(4.9, 4), around(10, 3)) is False
    assert more(around(10, 3), around(5.1, 4)) is None and more(around(5.1, 4), around(10, 3)) is None
    # An interval that reaches far to one side only counts on the side where the other number is.
    assert more(Figure(10, 9, 30, 3), around(8, 1)) is True
    assert above(around(2, 1), 0.9) is True and above(around(2, 1), 3.1) is False
    assert above(around(2, 1), 2.9) is None and above(None, 0) is None
    assert [opposite(answer) for answer in (True, False, None)] == [False, True, None]


@pytest.fixture
def few_steps() -> Recipe:
    """Four steps in two phases, on little text."""
    return Recipe(
        model="tiny",
        corpus=Corpus(["stories-held-out.txt"], pack=False),
        phases=[Phase(2, mntp=1, msg=1), Phase(2, mntp=1, msg=1, sscl=1)],
        contrast=Contrast("triplets", ["sentences-held-out.tsv"], batch=2, length=32),
        spans=Spans(shortest=2, longest=6),
        batch=2,
        length=24,
    )


def weights(folder) -> dict:
    return load_file(folder / "adapter_model.safetensors")


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_training_that_is_killed_ends_like_the_commands(few_steps, tmp_path, monkeypatch):
    setting = tiny()
    setting.folder = tmp_path
    whole_step = Trainer.step

    def killed(trainer, number):
        if number == 3:
            raise KeyboardInterrupt
        return whole_step(trainer, number)

    monkeypatch.setattr(Trainer, "step", killed)
    with pytest.raises(KeyboardInterrupt):
        trained.adapters(setting, "some", few_steps, stops=2)
    steps = []
    monkeypatch.setattr(Trainer, "step", lambda trainer, n: steps.append(n) or whole_step(trainer, n))
    found = trained.adapters(setting, "some", few_steps, stops=2)
    assert list(found) == [2, 4] and steps == [2, 3]  # from the checkpoint after two steps
    assert trained.losses(found[4], "mntp").keys() == {1, 2, 3, 4}
    assert not list(found[4].parent.glob("checkpoint-*"))

    out = Trainer(few_steps, tmp_path / "command").run()
    assert same(weights(found[4]), weights(out))
    assert same(weights(found[2]), weights(out / "phase-1")) and not same(weights(found[2]), weights(out))

    monkeypatch.setattr(trained, "Trainer", None)  # nothing is trained twice
    assert trained.adapters(setting, "some", few_steps, stops=2) == found
    with pytest.raises(TypeError):
        trained.adapters(setting, "some", dataclasses.replace(few_steps, seed=1), stops=2)


def test_recipes_for_tiny_are_short_and_need_no_network():
    for name in ("ablation-mntp", "ablation-sscl", "ablation-sscl-msg", "mtp"):
        recipe = trained.recipe_for(tiny(), name)
        assert recipe.model == "tiny" and recipe.steps < 60
        assert recipe.corpus.paths == ["plain-stories.txt", "stories.txt"]
        assert trained.recipe_for(tiny(quick=True), name).steps <= 4
    assert trained.recipe_for(Setting("small", Data("hub")), "ablation-mntp").steps > 500
    assert trained.recipe_for(Setting("llama-2-7b", Data("hub")), "ablation-mntp").optimizer.lr == 3e-5


def test_every_row_of_the_ablation_has_its_objectives_and_as_many_steps():
    recipes = {
        name: trained.recipe_for(tiny(), f"ablation-{name}") for name in ("mntp", "mntp-msg", "sscl-msg", "mntp-sscl")
    } | {"all": table6.all_objectives(tiny()), "one": beyond_phases.one_phase(tiny())}
    assert len({recipe.steps for recipe in recipes.values()}) == 1
    weights_of = {name: [(p.mntp, p.sscl, p.msg) for p in recipe.phases] for name, recipe in recipes.items()}
    assert weights_of["all"] == [(1, 0, 1), (1, 1, 1)] and weights_of["one"] == [(1, 1, 1)]
    assert weights_of["sscl-msg"] == [(0, 0, 1), (0, 1, 1)]
    assert trained.with_phases(recipes["mntp"], recipes["mntp"].phases).contrast is None
    mntp, mtp = (figure7.masked_recipe(tiny(), objective) for objective in ("mntp", "mtp"))
    assert dataclasses.replace(mtp, phases=mntp.phases) == mntp
    assert mtp.phases == [Phase(mntp.steps, mtp=1.0)] and mtp.spans.at_most == 0


def test_hidden_tokens_found_from_either_place(tiny_lab):
    stories = Data("samples").stories(5)
    ids = torch.tensor([start_ids(tiny_lab.tokenizer) + text_ids(tiny_lab.tokenizer, stories[0])])
    made = views.make_views(
        ids,
        torch.ones_like(ids),
        tokenizer=tiny_lab.tokenizer,
        generator=torch.Generator().manual_seed(0),
        max_spans=0,
    )
    with torch.no_grad():
        best = logits(tiny_lab.model, made.input_ids, bidirectional(torch.ones_like(ids)))[0].argmax(dim=-1)
    for own_place, shift in ((True, 0), (False, 1)):
        hidden = [place for place in range(ids.shape[1]) if made.selected[0, place]]
        right = [bool(best[place - shift] == ids[0, place]) for place in hidden]
        found = masked.accuracy(tiny_lab, stories[:1], own_place=own_place)
        assert found == pytest.approx(100 * sum(right) / len(right))


def test_a_curve_rises_where_its_end_is_clearly_above_its_start():
    rows = {
        "LLM2Vec": {"a, 0 steps": around(1, 0), "b, 0 steps": around(9, 0), "a, 8 steps": around(3, 1)},
        "MAGNET": {"a, 0 steps": around(1, 0), "a, 8 steps": around(1.5, 1)},
    }
    assert figure7.rises(rows, "LLM2Vec", "a") is True and figure7.rises(rows, "MAGNET", "a") is None
    assert figure7.rises(rows, "none", "a") is None
    assert figure7.ends_higher(rows, "LLM2Vec", "MAGNET", "a") is True
    assert figure7.ends_higher(rows, "MAGNET", "none", "a") is None


@torch.no_grad()
def test_bidirectional_likelihoods_token_by_token(tiny_lab):
    """What is not written yet is cut out of the text, all else keeping its place; or mask tokens stand there."""
    missing = Missing("Tom had a red ball. [blank] He was very sad.", ["He lost it in the park."])
    plan = template(tiny_lab.tokenizer, missing.text)
    fill = ids_of_fill(tiny_lab.tokenizer, plan, 0, missing.fills[0])
    before, after = plan.ids[: plan.anchors[0] + 1], plan.ids[plan.anchors[0] + 1 :]
    left_out, masks = [], []
    for step, token in enumerate(fill):
        ids = torch.tensor([[*before, *fill[:step], *after]])
        places = [*range(len(before) + step), *range(len(before) + len(fill), len(before) + len(fill) + len(after))]
        states = tiny_lab.model.get_decoder()(
            input_ids=ids,
            attention_mask=torch.ones(1, 1, ids.shape[1], ids.shape[1], dtype=torch.bool),
            position_ids=torch.tensor([places]),
        ).last_hidden_state[0, len(before) + step - 1]
        left_out.append(vocabulary_scores(tiny_lab.model, states).log_softmax(dim=-1)[token])
        hidden = [views.mask_token_id(tiny_lab.tokenizer)] * (len(fill) - step)
        ids = torch.tensor([[*before, *fill[:step], *hidden, *after]])
        states = hidden_states(tiny_lab.model, ids, torch.zeros_like(ids))[0, len(before) + step - 1]
        masks.append(vocabulary_scores(tiny_lab.model, states).log_softmax(dim=-1)[token])
    for found, wanted in ((False, left_out), (True, masks)):
        made = beyond_mask.bidirectional_log_probs(tiny_lab, missing, masked=found)
        assert torch.allclose(made, torch.stack(wanted), atol=1e-4)
    assert not torch.allclose(torch.stack(left_out), torch.stack(masks), atol=1e-2)


def test_the_ratio_of_perplexities_by_hand():
    half, quarter = torch.tensor([0.5]).log(), torch.tensor([0.25, 0.25]).log()
    assert beyond_mask.ratio([(quarter, half), (half, half)]) == pytest.approx((1 / 32) ** (-1 / 3) / 2)


def test_pairs_that_are_seen_by_the_rule_in_words():
    length = 16
    spans = [range(4, 6), range(10, 12)]  # 1/4 to 3/8, 5/8 to 3/4

    def sees(query: int, key: int) -> bool:
        of_key = next((span for span in spans if key in span), None)
        return of_key is None or (query in of_key and key <= query)

    wanted = sum(sees(query, key) for query in range(length) for key in range(length))
    assert beyond_cost.attention.attention_mask(beyond_cost.layout("MAGNET", length)).sum() == wanted
    assert beyond_cost.attention.attention_mask(beyond_cost.layout("causal", length)).sum() == length * (length + 1) / 2
    assert beyond_cost.attention.attention_mask(beyond_cost.layout("bidirectional", length)).sum() == length**2


def test_times_are_multiples_of_the_pass_without_a_mask(tiny_lab, monkeypatch):
    """By a clock that says 1 second for a pass without a mask and 3 for one with it, whichever comes first."""
    now = [0.0]
    monkeypatch.setattr(beyond_cost.time, "perf_counter", lambda: now[0])

    def masked_pass(*_):
        now[0] += 3

    class Decoder:
        def __call__(self, **_):
            now[0] += 1

    monkeypatch.setattr(beyond_cost, "hidden_states", masked_pass)
    monkeypatch.setattr(tiny_lab.model, "get_decoder", lambda: Decoder())
    assert beyond_cost.ratios(tiny_lab, beyond_cost.layout("MAGNET", 16), 3) == [3, 3, 3]


def test_average_correlations_over_tasks():
    first = [("a", grade, cosine, -cosine) for grade, cosine in ((1, 0.1), (2, 0.3), (3, 0.2), (4, 0.9))]
    second = [("b", grade, cosine, 2 * cosine) for grade, cosine in ((5, 0.5), (1, 0.6), (2, 0.1))]
    one = stats.spearmanr([1, 2, 3, 4], [0.1, 0.3, 0.2, 0.9]).statistic
    other = stats.spearmanr([5, 1, 2], [0.5, 0.6, 0.1]).statistic
    assert beyond_pooling.average(first + second, 2) == pytest.approx(100 * (one + other) / 2)
    assert beyond_pooling.average(first + second, 3) == pytest.approx(100 * (other - one) / 2)


def test_the_right_contexts_worth_by_length():
    rows = {
        beyond_spans.LEFT: {"stories, 1 words": around(30, 1), "stories, 24 words": around(12, 1)},
        beyond_spans.BOTH: {"stories, 1 words": around(10, 1), "stories, 24 words": around(8, 1)},
    }
    assert beyond_spans.gain(rows, "stories", 1) == 3 and beyond_spans.gain(rows, "stories", 24) == 1.5
    shorter, _, worse, _ = beyond_spans.EXPERIMENT.claims
    assert shorter.holds(rows) is True and worse.holds(rows) is False
    assert shorter.holds({}) is None and worse.holds({}) is None


def test_scores_of_the_ablation_are_there_and_numbers(tiny_lab):
    found = table6.scores(tiny_lab, tiny(quick=True), seed=0)
    assert list(found) == ["chunking", "NER", "POS", "graded pairs", table6.INFILLING]
    assert all(math.isfinite(value) for value in found.values())
    same_words = table6.words(tiny_lab, tiny(quick=True), seed=0)
    assert {task: found[task] for task in table6.TASKS} == same_words  # the same seed, the same probe


def test_verdicts_of_the_ablation():
    def row(chunking: float, infilling: float, graded: float = 50) -> dict[str, Figure]:
        words = {task: around(90, 0.1) for task in table6.TASKS} | {"chunking": around(chunking, 0.1)}
        return words | {"graded pairs": around(graded, 1), table6.INFILLING: around(infilling, 1)}

    rows = {
        "MNTP": row(92, 20),
        "MNTP + MSG": row(91.6, 12),
        "SSCL": row(88, 40, graded=60),
        "MNTP + SSCL": row(92, 25),
        "SSCL + MSG": row(90, 12),
        table6.ALL: row(92, 12.5, graded=58),
    }
    word, sentence, without_msg, without_mntp = (claim.holds(rows) for claim in table6.EXPERIMENT.claims)
    assert word is True and sentence is False and without_msg is True and without_mntp is None
    rows["MNTP + MSG"] = row(91.4, 12)
    assert table6.EXPERIMENT.claims[0].holds(rows) is False
    assert all(claim.holds({}) is None for claim in table6.EXPERIMENT.claims)
