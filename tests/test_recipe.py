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
            "positives 'magic' is not one of pairs, triplets, rules, dropout",
        ),
        (("lr: 3e-5", "lr: 0"), 10, "learning rate 0"),
        (("mntp: 1, msg: 1}", "mntp: -1, msg: 1}"), 5, "weight of mntp is -1.0; it cannot be negative"),
        (("steps: 30", "steps: 3.5"), 5, "'3.5' is no int"),
        (("steps: 30", "steps: 0"), 5, "needs at least 1"),
        (("steps: 30, ", ""), 5, "phase lacks the key 'steps'"),
        (("length: 256", "length: 100"), 11, "spans of up to 128 tokens are longer than a row of 100"),
        (("  paths: [stories.jsonl]", "  paths: stories.jsonl"), 3, "a list is wanted"),
        (("model: tiny", "model: [tiny]"), 1, "a single value is wanted"),
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
