"""mteb's tasks through our encoder: the instructions as Table 8 prints them, the vectors of `Magnet.encode`."""

import pytest
import torch

pytest.importorskip("mteb")

import mteb
from mteb.mocks import (
    LegacyMockClusteringFastTask,
    MockClassificationTask,
    MockPairClassificationTask,
    MockRetrievalTask,
    MockSTSTask,
)
from mteb.types import PromptType
from scipy.stats import spearmanr

from magnet_lab.integrations.mteb_encoder import MagnetEncoder

TEXTS = ["A man plays a guitar.", "Hi", "The little dog ran into the garden and barked at a bird.", "Someone plays."]
BATCHES = [{"text": TEXTS[:1]}, {"text": TEXTS[1:]}]


def encode(encoder, metadata, prompt_type=None, batches=BATCHES, **options):
    return encoder.encode(
        batches, task_metadata=metadata, hf_split="test", hf_subset="default", prompt_type=prompt_type, **options
    )


@pytest.mark.parametrize(
    "task, instruction",
    [
        ("STS12", "Retrieve semantically similar text"),
        ("STSBenchmark", "Retrieve semantically similar text"),
        ("SICK-R", "Retrieve semantically similar text"),
        ("BiorxivClusteringP2P", "Identify the main category of Biorxiv papers based on the titles and abstracts"),
        ("BiorxivClusteringS2S.v2", "Identify the main category of Biorxiv papers based on the titles"),
        ("TwentyNewsgroupsClustering", "Identify the topic or theme of the given news articles"),
        ("TwentyNewsgroupsClustering.v2", "Identify the topic or theme of the given news articles"),
        ("MedrxivClusteringP2P.v2", "Identify the main category of Medrxiv papers based on the titles and abstracts"),
        ("MedrxivClusteringS2S", "Identify the main category of Medrxiv papers based on the titles"),
    ],
)
def test_a_task_of_table_8_gets_its_instruction(tiny_lab, task, instruction):
    vectors = encode(MagnetEncoder(tiny_lab), mteb.get_task(task).metadata)
    assert (vectors - tiny_lab.encode(TEXTS, instruction=instruction)).abs().max() < 1e-5
    assert (vectors - tiny_lab.encode(TEXTS)).abs().max() > 0.1  # an instruction is not a detail


def test_other_tasks_get_that_of_mteb_and_documents_that_of_training(tiny_lab):
    encoder, metadata = MagnetEncoder(tiny_lab), mteb.get_task("SciFact").metadata
    instruction = metadata.prompt["query"]
    assert "retrieve documents" in instruction
    queries = encode(encoder, metadata, PromptType.query)
    assert (queries - tiny_lab.encode(TEXTS, instruction=instruction)).abs().max() < 1e-5
    documents = encode(encoder, metadata, PromptType.document)
    trained = tiny_lab.encode(TEXTS, instruction="Given the sentence, find its representation:")
    assert (documents - trained).abs().max() < 1e-5


@pytest.mark.parametrize("pooling", ["last", "mean", "echo"])
def test_poolings(tiny_lab, pooling):
    vectors = encode(MagnetEncoder(tiny_lab, pooling=pooling), MockSTSTask.metadata)
    expected = tiny_lab.encode(TEXTS, instruction="Retrieve semantically similar text", pooling=pooling)
    assert (vectors - expected).abs().max() < 1e-5


def test_an_unknown_pooling_is_named_at_once(tiny_lab):
    with pytest.raises(ValueError, match="pooling 'max' is not known"):
        MagnetEncoder(tiny_lab, pooling="max")


def test_what_benchmarks_hold_does_not_stop_them(tiny_lab):
    """Texts that are too long, and some with nothing in them."""
    encoder = MagnetEncoder(tiny_lab)
    vectors = encode(encoder, MockSTSTask.metadata, batches=[{"text": ["", "Hi"]}, {"text": ["word " * 3000, " \n"]}])
    some = tiny_lab.encode(["Hi", "word " * 3000], instruction="Retrieve semantically similar text", truncate=True)
    assert (vectors[1:3] - some).abs().max() < 1e-5
    assert not vectors[[0, 3]].any()
    assert encode(encoder, MockSTSTask.metadata, batches=[{"text": [""]}]).shape == (1, 256)


FIRST = ["A man plays a guitar.", "The dog ran.", "She ate a cake.", "Hello there.", "It rains.", "A boy.", "No", "Up"]
SECOND = ["Someone plays.", "A cat sat.", "He ate bread.", "Good day.", "It snows.", "A girl.", "Yes", "Down"]
SCORES = [0.9, 0.2, 0.5, 0.8, 0.4, 0.6, 0.1, 0.3]


class GradedPairs(MockSTSTask):
    """mteb's mock has two pairs, on which a rank correlation says nothing; here are eight."""

    def load_data(self, **kwargs):
        from datasets import Dataset, DatasetDict

        pairs = {"sentence1": FIRST, "sentence2": SECOND, "score": SCORES}
        self.dataset = DatasetDict({"test": Dataset.from_dict(pairs)})
        self.data_loaded = True


def evaluate(encoder, task):
    return mteb.evaluate(encoder, [task], cache=None, show_progress_bar=False).task_results[0]


def test_a_score_of_mteb_is_the_rank_correlation_of_our_cosines(tiny_lab):
    result = evaluate(MagnetEncoder(tiny_lab), GradedPairs())
    a, b = (tiny_lab.encode(side, instruction="Retrieve semantically similar text") for side in (FIRST, SECOND))
    cosines = [float(x @ y / (x.norm() * y.norm())) for x, y in zip(a, b, strict=True)]
    assert result.get_score() == pytest.approx(spearmanr(SCORES, cosines).statistic, abs=1e-6)


@pytest.mark.parametrize(
    "task", [MockClassificationTask, LegacyMockClusteringFastTask, MockPairClassificationTask, MockRetrievalTask]
)
def test_other_kinds_of_task_run(tiny_lab, task):
    """Offline, through all of mteb; with so few texts a score means nothing, but it is one."""
    assert 0 <= evaluate(MagnetEncoder(tiny_lab), task()).get_score() <= 1


def test_a_model_that_was_trained_again_is_measured_again(tiny_lab, tmp_path):
    """mteb takes a result from its cache by name and revision."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    from magnet_lab import zoo

    metas = []
    for seed in (1, 2):  # into the same folder
        base = AutoModelForCausalLM.from_pretrained(zoo.resolve("tiny"), dtype=torch.float32)
        torch.manual_seed(seed)
        config = LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
        get_peft_model(base, config).save_pretrained(tmp_path / "mine")
        metas.append(MagnetEncoder(tiny_lab.use(str(tmp_path / "mine"))).mteb_model_meta)
    assert [meta.name for meta in metas] == ["magnet-lab/tiny-mine-last"] * 2
    assert metas[0].revision != metas[1].revision
    again = MagnetEncoder(tiny_lab.use(str(tmp_path / "mine"))).mteb_model_meta
    assert again.revision == metas[1].revision
    assert MagnetEncoder(tiny_lab, pooling="mean").mteb_model_meta.name == "magnet-lab/tiny-base-mean"
