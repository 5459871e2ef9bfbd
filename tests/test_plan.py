"""The plan of a run against the run itself: the bytes that autograd really keeps, the products that are really made."""

import dataclasses

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from magnet_lab import zoo
from magnet_lab.attention import bidirectional
from magnet_lab.decoder import hidden_states, vocabulary_scores
from magnet_lab.training import plan
from magnet_lab.training import recipe as recipes
from magnet_lab.training.loop import Trainer

TINY = """
model: tiny
corpus: {paths: [stories-held-out.txt], pack: false}
phases: [{steps: 3, mntp: 1, msg: 1}, {steps: 2, mntp: 1, msg: 1, sscl: 1}]
spans: {longest: 32}
contrast: {positives: triplets, paths: [sentences-held-out.tsv], batch: 8, length: 64}
batch: 8
length: 96
"""


@pytest.fixture(scope="module")
def recipe():
    return recipes.parse(TINY)


def really(trainer: Trainer, count: int, width: int, labels: int, half: bool) -> tuple[int, float]:
    """A pass with data: bytes kept outside the weights, and operations without attention's."""
    model = trainer.lab.model
    own = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage._cdata] = (storage.nbytes(), tensor)  # the tensor lives on, so that its place is not reused
        return tensor

    ids = torch.zeros(count, width, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        with (
            torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
            torch.autocast("cpu", torch.bfloat16, enabled=half),
        ):
            states = hidden_states(model, ids, bidirectional(torch.ones_like(ids)))
            scores = vocabulary_scores(model, states.flatten(0, 1)[:labels])
            loss = torch.nn.functional.cross_entropy(scores.float(), torch.zeros(labels, dtype=torch.long))
        loss.backward()
    return sum(size for size, _ in kept.values()), counter.get_total_flops()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_is_kept_and_what_is_computed(recipe, tmp_path, precision):
    recipe = dataclasses.replace(recipe, precision=precision)
    trainer = Trainer(recipe, tmp_path)
    model = plan._without_data(recipe)
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in trainer.lab.model.parameters())
    made = plan.cost(model, recipe, 4, 40, labels=50)
    kept, operations = really(trainer, 4, 40, 50, precision == "bfloat16")
    assert made.kept == pytest.approx(kept, rel=0.05)
    config = trainer.lab.model.config
    attention = 7 * 2 * 4 * 40**2 * config.hidden_size * config.num_hidden_layers
    assert made.operations - attention == pytest.approx(operations, rel=0.02)


def test_a_plan_of_a_run(recipe, tmp_path):
    """The tokens that its steps then read, its trained weights and the optimizer's averages."""
    made = plan.plan(recipe)
    trainer = Trainer(recipe, tmp_path)
    read = []
    for number in range(recipe.steps):
        trainer.step(number)
        read.append(trainer.tokens)
    assert made.tokens[0] == pytest.approx(sum(read[:3]) / 3, rel=0.15)
    assert made.tokens[1] == pytest.approx(sum(read[3:]) / 2, rel=0.15)
    trained = trainer.parameters.values()  # the adapter and the projection head
    assert made.trained == 4 * sum(p.numel() * p.element_size() for p in trained)  # itself, gradient, two averages
    assert made.memory == made.weights + made.trained + made.activations


def test_activation_checkpointing_and_chunks_trade_work_for_memory(recipe):
    whole = plan.plan(recipe)
    thrifty = dataclasses.replace(
        recipe, activation_checkpointing=True, contrast=dataclasses.replace(recipe.contrast, chunk=4)
    )
    made = plan.plan(thrifty)
    assert made.activations < whole.activations / 2
    assert all(more > less for more, less in zip(made.operations, whole.operations, strict=True))


def test_a_model_that_is_not_here_and_one_that_is_not_known(recipe, tmp_path, monkeypatch):
    """LLaMA-2-7B is planned for by its shape alone: 6.74 billion weights in bfloat16."""
    monkeypatch.setenv("MAGNET_LAB_CACHE", str(tmp_path))
    llama = dataclasses.replace(recipe, model="llama-2-7b", precision="bfloat16")
    model = plan._without_data(llama)
    assert sum(p.numel() for p in model.parameters() if not p.requires_grad) == zoo.MODELS["llama-2-7b"].parameters
    with pytest.raises(zoo.ModelUnavailable, match="shape of 'some/where' is not known"):
        plan.plan(dataclasses.replace(recipe, model="some/where"))
