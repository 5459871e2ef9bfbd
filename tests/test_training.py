"""The loop against slow references: separate passes, one process, a run that was never killed."""

import dataclasses
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file

from magnet_lab import Magnet, views, zoo
from magnet_lab.data import pairs, rows
from magnet_lab.data.rows import Corpus
from magnet_lab.training import checkpoint
from magnet_lab.training import recipe as recipes
from magnet_lab.training.loop import Trainer, course

STORY = "Tom had a red ball. He lost it in the park. A girl found it under a tree. Tom was happy again. They played. "


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """Eight short steps on the bundled model, four of them with pairs."""
    folder = tmp_path_factory.mktemp("data")
    stories = [" ".join(random.Random(i).sample(STORY.split(), k=len(STORY.split()))) for i in range(40)]
    (folder / "stories.jsonl").write_text("".join(json.dumps({"text": story}) + "\n" for story in stories))
    (folder / "pairs.tsv").write_text("".join(f"{story[:40]}\t{story[5:50]}\n" for story in stories))
    return recipes.parse(
        f"""
model: tiny
corpus: {{paths: ["{folder}/stories.jsonl"], pack: false}}
phases: [{{steps: 4, mntp: 1, msg: 1}}, {{steps: 4, mntp: 1, msg: 2, sscl: 9}}]
spans: {{longest: 8, sentence_share: 0.5, causal_share: 0.2}}
contrast: {{positives: pairs, paths: ["{folder}/pairs.tsv"], batch: 6, length: 24}}
lora: {{r: 4, alpha: 8, dropout: 0.1}}
optimizer: {{lr: 1e-3, warmup: 2, schedule: cosine}}
batch: 6
length: 32
save_every: 2
"""
    )


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """Rows are written to a folder of the tests' own."""
    before = os.environ.get("MAGNET_LAB_CACHE")
    os.environ["MAGNET_LAB_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    os.environ.pop("MAGNET_LAB_CACHE") if before is None else os.environ.update(MAGNET_LAB_CACHE=before)


def gradients(recipe, number: int, tmp_path) -> dict[str, torch.Tensor]:
    """What a step adds up, caught before the optimizer takes it."""
    trainer = Trainer(recipe, tmp_path)
    phase, _ = recipe.phase(number)
    torch.manual_seed(0)
    trainer.trained.eval()  # without dropout: its random numbers fall differently in differently cut batches
    if phase.mntp or phase.msg or phase.mtp:
        trainer._masked_and_missing(number, phase)
    if phase.sscl:
        trainer._contrastive(number, phase.sscl)
    return {name: p.grad.clone() for name, p in trainer.parameters.items() if p.grad is not None}


def one_phase(recipe, **changes):
    phase = {"steps": 1, "mntp": 0.0, "msg": 0.0, "sscl": 0.0, "mtp": 0.0} | changes
    return dataclasses.replace(recipe, phases=[recipes.Phase(**phase)])


def assert_same(one: dict, other: dict, tolerance: float = 1e-5) -> None:
    assert one.keys() == other.keys()
    scale = max(float(gradient.abs().max()) for gradient in one.values())
    assert scale > 0
    for name in one:
        assert (one[name] - other[name]).abs().max() < tolerance * scale, name


def test_the_joint_step_is_the_sum_of_separate_ones(recipe, tmp_path):
    """One pass for MNTP and MSG, and SSCL beside it: the gradient of three separate passes, weighted."""
    joint = gradients(one_phase(recipe, mntp=1.0, msg=2.0, sscl=3.0), 0, tmp_path)
    parts = [(1.0, "mntp"), (2.0, "msg"), (3.0, "sscl")]
    alone = [(weight, gradients(one_phase(recipe, **{name: 1.0}), 0, tmp_path)) for weight, name in parts]
    summed = {name: sum(weight * found[name] for weight, found in alone if name in found) for name in joint}
    assert_same(joint, summed)


def test_the_joint_losses_are_those_of_transformers(recipe, tmp_path):
    """Full logits under a mask given by hand, and PyTorch's mean cross entropy."""
    trainer = Trainer(one_phase(recipe, mntp=1.0, msg=1.0), tmp_path)
    values = trainer._masked_and_missing(0, trainer.recipe.phases[0])
    input_ids, tokens = trainer.rows.batch(0, recipe.batch, recipe.seed)
    made = trainer.views(input_ids, tokens, 0)
    mask = torch.zeros(*made.span_ids.shape, made.span_ids.shape[1], dtype=torch.bool)
    for n, ids in enumerate(made.span_ids.tolist()):
        for q in range(len(ids)):
            for k in range(len(ids)):
                mask[n, q, k] = q == k or ids[k] == 0 or (ids[k] > 0 and ids[q] == ids[k] and k <= q)
    with torch.no_grad():
        logits = trainer.lab.model(input_ids=made.input_ids, attention_mask=mask[:, None]).logits
    for name, labels in (("mntp", made.mntp_labels), ("msg", made.msg_labels)):
        expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
        assert values[name] == pytest.approx(float(expected), rel=1e-4)


def test_micro_batches_change_nothing(recipe, tmp_path):
    whole = one_phase(recipe, mntp=1.0, msg=1.0)
    assert_same(gradients(whole, 0, tmp_path), gradients(dataclasses.replace(whole, micro_batch=1), 0, tmp_path))


def test_contrastive_chunks_change_nothing(recipe, tmp_path):
    whole = one_phase(recipe, sscl=1.0)
    chunked = dataclasses.replace(whole, contrast=dataclasses.replace(whole.contrast, chunk=5))
    assert_same(gradients(whole, 0, tmp_path), gradients(chunked, 0, tmp_path))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_compiled_blocks_compute_the_same(recipe, tmp_path):
    recipe = dataclasses.replace(recipe, lora=dataclasses.replace(recipe.lora, dropout=0.0), phases=recipe.phases[1:])
    plain, compiled = Trainer(recipe, tmp_path / "plain"), Trainer(recipe, tmp_path / "compiled", compiled=True)
    for number in range(2):
        one, other = plain.step(number), compiled.step(number)
        assert one == pytest.approx(other, rel=1e-4)
    assert plain.lab.infill("Tom had a [blank:2] ball.").text == compiled.lab.infill("Tom had a [blank:2] ball.").text


def test_every_phase_begins_with_averages_of_its_own(recipe, tmp_path):
    """The first step of each phase, and no other, is the learning rate times the gradient's sign."""
    recipe = dataclasses.replace(recipe, optimizer=recipes.Optimizer(lr=1e-3, clip=None))
    trainer, from_sign = Trainer(recipe, tmp_path), []
    for number in range(recipe.steps):
        weights = [parameter for name, parameter in trainer.parameters.items() if "lora_B" in name]
        before = torch.nn.utils.parameters_to_vector(weights).detach()
        trainer.step(number)
        moved = (torch.nn.utils.parameters_to_vector(weights).detach() - before).abs().max()
        from_sign.append(float(moved) == pytest.approx(1e-3, rel=1e-3))
    assert [number for number, found in enumerate(from_sign) if found] == [0, recipe.phases[0].steps]


def test_hard_negatives_are_candidates_of_everybody(recipe, tmp_path):
    """The gradient of InfoNCE over (sentences) x (paraphrases, look-alikes), through the plain encoder, all at once."""
    (tmp_path / "t.tsv").write_text(
        "".join(f"Tom had {i} balls\tThere were {i} balls of Tom's own\tTom lost {i} cats\n" for i in range(6))
    )
    contrast = recipes.Contrast(positives="triplets", paths=[str(tmp_path / "t.tsv")], batch=4, length=32)
    recipe = dataclasses.replace(one_phase(recipe, sscl=2.0), contrast=contrast)
    found = gradients(recipe, 0, tmp_path / "loop")

    trainer = Trainer(recipe, tmp_path / "plain")
    trainer.trained.eval()
    batch = pairs.batch(trainer.pairs, 0, 4, recipe.seed)
    columns = [
        torch.cat([trainer.sentence_vectors([trainer._contrast_ids(row[column])]) for row in batch])
        for column in range(3)
    ]
    loss = 0.0
    for n, anchor in enumerate(columns[0]):
        scores = [torch.cosine_similarity(anchor, other, dim=0) / 0.1 for other in (*columns[1], *columns[2])]
        loss = loss - torch.log(scores[n].exp() / sum(score.exp() for score in scores)) / 4
    (2.0 * loss).backward()
    assert_same(found, {name: p.grad for name, p in trainer.parameters.items() if p.grad is not None})


def test_attention_dropout_sets_two_passes_apart_and_ends(recipe, tmp_path):
    trainer = Trainer(one_phase(recipe, mntp=1.0), tmp_path)
    trainer.trained.train()
    made = [trainer._contrast_ids("Tom had a red ball.")]
    with torch.no_grad():
        one, same = trainer.sentence_vectors(made), trainer.sentence_vectors(made)
        trainer.recipe.contrast.attention_dropout = 0.5
        torch.manual_seed(0)
        apart, again = trainer.sentence_vectors(made), trainer.sentence_vectors(made)
        trainer.recipe.contrast.attention_dropout = 0.0
        after = trainer.sentence_vectors(made)
    assert torch.equal(one, same) or recipe.lora.dropout
    assert not torch.allclose(apart, again, atol=1e-3)
    assert all(
        module.attention_dropout == 0 for module in trainer.lab.model.modules() if hasattr(module, "attention_dropout")
    )
    assert after.shape == one.shape


def test_a_batch_is_no_wider_than_its_longest_row(recipe, tmp_path):
    (tmp_path / "texts.txt").write_text("One.\nOne two three four five six.\nOne two.\n")
    corpus = Corpus([str(tmp_path / "texts.txt")], pack=False)
    tokenizer = zoo.load_tokenizer(zoo.resolve("tiny"))
    longest = len(tokenizer("One two three four five six.")["input_ids"]) + 1  # and the end of the text
    ids, tokens = rows.rows(corpus, tokenizer, 200).batch(0, 3, seed=0)
    assert ids.shape == tokens.shape == (3, longest)
    assert sorted(tokens.sum(dim=1).tolist())[-1] == longest


@pytest.mark.parametrize("name, divisor", [("mntp", 6 * 32), ("msg", 6)])
def test_averaging_as_printed(recipe, tmp_path, name, divisor):
    """Equation 2 divides the sum over its targets by N·L, Equation 4 by N."""
    by_targets = one_phase(recipe, **{name: 1.0})
    trainer = Trainer(by_targets, tmp_path)
    made = trainer.views(*trainer.rows.batch(0, recipe.batch, recipe.seed), 0)
    ratio = int((getattr(made, f"{name}_labels") != views.NO_LABEL).sum()) / divisor
    printed = gradients(dataclasses.replace(by_targets, averaging="printed"), 0, tmp_path)
    assert_same({n: g * ratio for n, g in gradients(by_targets, 0, tmp_path).items()}, printed)


def test_the_learning_rate_takes_its_course():
    settings = recipes.Optimizer(warmup=2, schedule="cosine")
    assert [course(step, 8, settings) for step in (0, 1, 2)] == [0.5, 1.0, 1.0]
    assert course(7, 8, settings) == pytest.approx((1 + math.cos(math.pi * 5 / 6)) / 2)
    assert course(5, 8, dataclasses.replace(settings, schedule="linear")) == pytest.approx(0.5)
    late = dataclasses.replace(settings, schedule="linear", decay=0.5)
    assert [course(step, 8, late) for step in (3, 4, 5, 6, 7)] == [1.0, 1.0, 0.75, 0.5, 0.25]


def test_the_result_is_a_plain_peft_adapter(recipe, tmp_path, tiny_lab):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    Trainer(recipe, tmp_path).run()
    base = AutoModelForCausalLM.from_pretrained(zoo.resolve("tiny"), dtype=torch.float32)
    theirs = PeftModel.from_pretrained(base, tmp_path)
    ids = torch.arange(10, 30)[None]
    lab = tiny_lab.use(str(tmp_path))
    with torch.no_grad():
        assert torch.allclose(lab.model(input_ids=ids).logits, theirs(input_ids=ids).logits, atol=1e-5)
        assert not torch.allclose(lab.model(input_ids=ids).logits, tiny_lab.model(input_ids=ids).logits, atol=1e-3)
    assert {t.dtype for t in load_file(tmp_path / "adapter_model.safetensors").values()} == {torch.bfloat16}
    card = (tmp_path / "README.md").read_text()
    assert "More Information Needed" not in card and "8 steps of 6 rows of up to 32 tokens" in card
    assert "Contrastive pairs: pairs from pairs.tsv, 6 a step, temperature 0.1, last token." in card
    losses = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in losses] == list(range(1, 9))
    assert ["sscl" in line for line in losses] == [False] * 4 + [True] * 4
    assert f"msg {sum(line['msg'] for line in losses) / 8:.3f}" in card
    assert "4 steps of 6 rows of up to 32 tokens" in (tmp_path / "phase-1" / "README.md").read_text()
    first, last = (load_file(tmp_path / place / "adapter_model.safetensors") for place in ("phase-1", "."))
    assert first.keys() == last.keys() and not all(torch.equal(first[name], last[name]) for name in first)


SCRATCH = """
model: mine
scratch: {{vocabulary: 300, hidden: 32, inner: 48, layers: 2, heads: 2, key_value_heads: 1, positions: 64}}
lora: null
corpus: {{paths: ["{folder}/stories.txt"], pack: false}}
phases: [{{steps: 30, msg: 1}}]
spans: {{causal_share: 1}}
optimizer: {{lr: 1e-2, betas: [0.9, 0.95], weight_decay: 0.1}}
batch: 8
length: 32
save_every: 10
samples: ["Tom had"]
samples_every: 30
"""


def test_a_model_from_nothing_learns_the_next_token(tmp_path):
    """The causal loss of transformers on the same rows, before; and lower after; and what is saved is a model."""
    (tmp_path / "stories.txt").write_text((STORY + "\n") * 20)
    recipe = recipes.parse(SCRATCH.format(folder=tmp_path))
    trainer = Trainer(recipe, tmp_path / "run")
    input_ids, tokens = trainer.rows.batch(0, 8, recipe.seed)
    labels = input_ids.masked_fill(tokens == 0, -100)
    with torch.no_grad():
        expected = trainer.lab.model(input_ids=input_ids, attention_mask=tokens, labels=labels).loss
    assert trainer.step(0)["msg"] == pytest.approx(float(expected), rel=1e-4)
    Trainer(recipe, tmp_path / "run").run()
    losses = [json.loads(line)["msg"] for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert losses[-1] < losses[0] / 2
    lab = Magnet.from_pretrained(str(tmp_path / "run"), adapter=None)
    assert lab.model.num_parameters() < 40_000
    assert lab.tokenizer.convert_tokens_to_ids("_") is not None
    assert "red ball" in lab.generate("Tom had a", max_new_tokens=12)


def run_in_a_process(recipe, folder, *launcher) -> subprocess.Popen:
    path = folder.parent / f"{folder.name}.yaml"
    path.write_text(recipes.dump(recipe))
    command = [sys.executable, *launcher, "-m", "magnet_lab.training", str(path), "--out", str(folder)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_killed_at_any_moment_and_continued_is_never_killed(recipe, tmp_path):
    """kill -9 at random moments; the final adapter is bit for bit that of a run left alone."""
    whole = run_in_a_process(recipe, tmp_path / "whole")
    assert whole.wait() == 0, whole.stderr.read()
    kills = 0
    for attempt in range(40):
        run = run_in_a_process(recipe, tmp_path / "killed")
        deadline = time.monotonic() + 60
        # Wait until it trains, then for a random while: the longer, the more of the run is behind it.
        while run.poll() is None and time.monotonic() < deadline:
            log = tmp_path / "killed" / "log.jsonl"
            if log.is_file() and log.stat().st_mtime > time.time() - 0.5 and kills < 3:
                time.sleep(random.Random(attempt).uniform(0, 1.0))
                if run.poll() is None:
                    run.send_signal(signal.SIGKILL)
                    run.wait()
                    kills += 1
                break
            time.sleep(0.02)
        if run.wait() == 0:
            break
    assert kills >= 1
    for name in ("adapter_model.safetensors", "checkpoint-000008/state.safetensors"):
        one, other = (load_file(tmp_path / run / name) for run in ("whole", "killed"))
        assert one.keys() == other.keys()
        assert all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.slow
@pytest.mark.parametrize("shard", [False, True])
def test_two_processes_train_what_one_does(recipe, tmp_path, shard):
    """Two CPU processes over gloo, negatives shared with their gradient, each with all of the base model's weights or
    with half of them: the weights of one process."""
    samples = ["Tom had a [blank:2] ball."]
    recipe = dataclasses.replace(
        recipe, lora=dataclasses.replace(recipe.lora, dropout=0.0), shard=shard, samples=samples, samples_every=4
    )
    one = run_in_a_process(recipe, tmp_path / "one")
    assert one.wait() == 0, one.stderr.read()
    launcher = ["-m", "torch.distributed.run", "--nproc_per_node=2", f"--master_port={29611 + shard}"]
    two = run_in_a_process(recipe, tmp_path / "two", *launcher)
    assert two.wait() == 0, two.stderr.read()
    assert len((tmp_path / "two" / "log.jsonl").read_text().splitlines()) == 8  # one process speaks for both
    a, b = (load_file(tmp_path / run / "checkpoint-000008" / "state.safetensors") for run in ("one", "two"))
    for name in a:
        if name.startswith("parameter."):
            assert (a[name] - b[name]).abs().max() < 2e-4, name


def test_a_folder_that_takes_no_files_is_named_before_training(recipe, tmp_path):
    (tmp_path / "file").write_text("here")
    with pytest.raises(checkpoint.CheckpointError, match=r"nothing can be written to .*file/run: Not a directory"):
        Trainer(recipe, tmp_path / "file" / "run")


def test_a_checkpoint_that_cannot_be_written_leaves_the_last_one(recipe, tmp_path, monkeypatch):
    trainer = Trainer(recipe, tmp_path)
    for number in range(2):
        trainer.step(number)
    kept = checkpoint.save(tmp_path, 2, recipes.dump(recipe), trainer.parameters, trainer.optimizer)
    before = (kept / "state.safetensors").read_bytes()

    def full(tensors, path):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(
        checkpoint.CheckpointError, match=r"after step 3 could not .*No space left.*checkpoint-000002 is"
    ):
        checkpoint.save(tmp_path, 3, recipes.dump(recipe), trainer.parameters, trainer.optimizer)
    assert checkpoint.latest(tmp_path) == kept
    assert (kept / "state.safetensors").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-000002"]


def test_a_folder_with_another_run_is_refused(recipe, tmp_path):
    trainer = Trainer(recipe, tmp_path)
    trainer.step(0)
    checkpoint.save(tmp_path, 1, recipes.dump(recipe), trainer.parameters, trainer.optimizer)
    other = dataclasses.replace(recipe, seed=1)
    with pytest.raises(checkpoint.CheckpointError, match="holds a run by another recipe"):
        Trainer(other, tmp_path).run()


def test_missing_files_are_named(recipe, tmp_path):
    gone = dataclasses.replace(recipe, corpus=dataclasses.replace(recipe.corpus, paths=["nowhere.jsonl"]))
    with pytest.raises(ValueError, match=r"no file 'nowhere\.jsonl' to train on"):
        Trainer(gone, tmp_path)
    few = dataclasses.replace(recipe, contrast=dataclasses.replace(recipe.contrast, batch=1000))
    with pytest.raises(ValueError, match="a batch of 1000 pairs is asked for, and there are only 40"):
        Trainer(few, tmp_path).step(4)


def test_trackers_get_settings_that_they_take(recipe, tmp_path, monkeypatch):
    """TensorBoard refuses settings within settings: numbers and texts alone."""
    from accelerate import Accelerator

    given = {}
    monkeypatch.setattr(Accelerator, "init_trackers", lambda self, name, config: given.update(config))
    Trainer(recipe, tmp_path, tracker="tensorboard")
    assert given and all(isinstance(value, int | float | str | bool) for value in given.values())
    assert recipes.parse(given["recipe"]) == recipe
