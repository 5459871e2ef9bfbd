"""Recipes: what is read, and mistakes by their line."""

import pytest

from magnet_lab.training import recipe as recipes

GOOD = """\
model: tiny
corpus:
  paths: [stories.jsonl]
phases:
  - {steps: 30, mntp: 1, msg: 1}
  - {steps: 10, mntp: 1, sscl: 9, msg: 1}
contrast:
  temperature: 0.1
optimizer:
  lr: 3e-5
length: 256
"""


def test_what_is_written_is_read():
    recipe = recipes.parse(GOOD)
    assert recipe.optimizer.lr == 3e-5  # which YAML takes for a string
    assert recipe.steps == 40
    assert [recipe.phase(step)[0].sscl for step in (0, 29, 30, 39)] == [0, 0, 9, 9]
    assert [recipe.phase(step)[1] for step in (0, 29, 30, 39)] == [0, 29, 0, 9]
    with pytest.raises(IndexError):
        recipe.phase(40)
    assert recipes.parse(recipes.dump(recipe)) == recipe


def test_defaults_are_the_papers():
    """Appendix A."""
    recipe = recipes.parse(GOOD)
    assert (recipe.lora.r, recipe.lora.alpha) == (16, 32)
    assert (recipe.spans.at_most, recipe.spans.shortest, recipe.spans.longest) == (2, 4, 128)
    assert (recipe.batch, recipe.mask_share) == (32, 0.2)
    assert (recipe.contrast.batch, recipe.contrast.length, recipe.contrast.temperature) == (64, 128, 0.1)
    assert recipe.optimizer.betas == [0.9, 0.999] and recipe.optimizer.eps == 1e-8


@pytest.mark.parametrize(
    "change, line, message",
    [
        (("lr: 3e-5", "learning_rate: 3e-5"), 10, "no key 'learning_rate'"),
        (("lr: 3e-5", "lrr: 3e-5"), 10, "did you mean 'lr'"),
        (("lr: 3e-5", "lr: fast"), 10, "'fast' is no float"),
        (("  temperature: 0.1", "  temperature: 0"), 8, "temperature 0.0 is not above 0"),
        (("  temperature: 0.1", "  positives: pairs"), 8, "pairs need files"),
        (
            ("  temperature: 0.1", "  positives: magic"),
            8,
            "positives 'magic' is not one of parrot, pairs, triplets, rules, dropout",
        ),
        (("lr: 3e-5", "lr: 0"), 10, "learning rate 0"),
        (("mntp: 1, msg: 1}", "mntp: -1, msg: 1}"), 5, "weight of mntp is -1.0; it cannot be negative"),
        (("steps: 30", "steps: 3.5"), 5, "'3.5' is no int"),
        (("steps: 30", "steps: 0"), 5, "needs at least 1"),
        (("steps: 30, ", ""), 5, "phase lacks the key 'steps'"),
        (("length: 256", "length: 100"), 11, "spans of up to 128 tokens are longer than a row of 100"),
        (("  paths: [stories.jsonl]", "  paths: stories.jsonl"), 3, "a list is wanted"),
        (("model: tiny", "model: [tiny]"), 1, "a single value is wanted"),
        (("length: 256", "length: 256\nscratch: {layers: 2}"), 12, "nothing for LoRA to adapt"),
        (("length: 256", "length: 256\nlora: null\nshard: true"), 13, "with lora: null there are none"),
        (("lr: 3e-5", "lr: 3e-5\n  decay: 0"), 11, "decay 0.0 is not a share"),
        (("length: 256", "length: 256\nlength: 128"), 12, "second time"),
        (("contrast:\n  temperature: 0.1\n", ""), 4, "weighs sscl"),
        (("paths: [stories.jsonl]", "paths: [stories.jsonl"), 4, "no YAML"),
    ],
)
def test_mistakes_are_named_by_their_line(change, line, message):
    text = GOOD.replace(*change)
    assert text != GOOD
    with pytest.raises(recipes.RecipeError) as error:
        recipes.parse(text, "mine.yaml")
    assert str(error.value).startswith(f"mine.yaml, line {line}: ")
    assert message in str(error.value)


def test_a_recipe_like_another_says_only_where_it_differs(tmp_path, monkeypatch):
    (tmp_path / "good.yaml").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    text = "like: good.yaml\nphases: [{steps: 5, sscl: 1}]\ncontrast: {pooling: mean}\n"
    made, good = recipes.parse(text), recipes.load("good.yaml")
    assert made.steps == 5 and made.contrast.pooling == "mean"
    assert (made.contrast.temperature, made.optimizer, made.length) == (0.1, good.optimizer, 256)
    (tmp_path / "other.yaml").write_text(GOOD.replace("3e-5", "2e-5"))
    assert recipes.parse(text, like="other.yaml").optimizer.lr == 2e-5
    with pytest.raises(recipes.RecipeError, match=r"mine, line 3: pooling 'best': last or mean"):
        recipes.parse(text.replace("mean", "best"), "mine")
    with pytest.raises(recipes.RecipeError, match="names no recipe that it is like"):
        recipes.parse(GOOD, like="other.yaml")
    with pytest.raises(recipes.RecipeError, match="there is no recipe 'gone'"):
        recipes.parse("like: gone\n")


def test_table_6_differs_in_its_objectives_alone():
    rows = {name: recipes.load(name) for name in recipes.names() if name.startswith("ablation-")}
    assert len(rows) == 5  # the sixth is `small` itself
    small = recipes.load("small")
    for name, recipe in rows.items():
        used = {loss for phase in recipe.phases for loss in ("mntp", "sscl", "msg") if getattr(phase, loss)}
        assert used == set(name.split("-")[1:])
        recipe.phases = small.phases
        assert recipe == small


def test_a_line_number_for_what_spans_a_recipe():
    with pytest.raises(recipes.RecipeError, match=r"line \d+: a span"):
        recipes.parse(GOOD + "spans: {shortest: 200, longest: 220}\n")
    with pytest.raises(recipes.RecipeError, match="is empty"):
        recipes.parse("")
    with pytest.raises(recipes.RecipeError, match="there is no recipe 'nothing'"):
        recipes.load("nothing")


@pytest.mark.parametrize("name", recipes.names())
def test_the_projects_recipes_are_whole(name):
    assert recipes.load(name).steps > 0
