"""The table of baselines, and sentence vectors against transformers' own passes."""

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model

from magnet_lab import Magnet
from magnet_lab.baselines import BASELINES, Echo, LLM2Vec

TEXTS = ["A man plays the guitar.", "Rain.", "The children ran down to the lake and swam until it got dark."]


def test_every_baseline_has_the_name_it_is_found_by(tiny_lab, monkeypatch):
    monkeypatch.setattr(Magnet, "use", lambda self, adapter: self)  # as if every adapter were there
    names = [make(tiny_lab).name for make in BASELINES.values()]
    assert names == list(BASELINES)
    verbs = {name for name, make in BASELINES.items() if hasattr(make(tiny_lab), "infill")}
    assert verbs == {name for name in BASELINES if "shot" in name} | {"unidirectional", "mask filling"}


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    """The folder of a random adapter, large enough to change what the model says."""
    folder = tmp_path_factory.mktemp("adapter")
    base = Magnet.from_pretrained("tiny", adapter=None, device="cpu", dtype=torch.float32).model
    torch.manual_seed(0)
    model = get_peft_model(base, LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False))
    model.save_pretrained(folder)
    return str(folder)


def test_llm2vec_is_the_mean_over_the_text_of_its_adapters_bidirectional_states(tiny_lab, adapter):
    """Against the adapter merged into a copy of the weights, each text alone, every token seeing every other."""
    vectors = LLM2Vec(tiny_lab, adapter).encode(TEXTS, instruction="Find the same")
    base = Magnet.from_pretrained("tiny", adapter=None, device="cpu", dtype=torch.float32).model
    merged = PeftModel.from_pretrained(base, adapter).merge_and_unload()
    for vector, text in zip(vectors, TEXTS, strict=True):
        before = tiny_lab.tokenizer("Find the same:")["input_ids"]
        ids = before + tiny_lab.tokenizer(f" {text}", add_special_tokens=False)["input_ids"]
        sees = torch.ones(1, 1, len(ids), len(ids), dtype=torch.bool)
        with torch.no_grad():
            states = merged.model(torch.tensor([ids]), attention_mask=sees).last_hidden_state[0]
        assert torch.allclose(vector, states[len(before) :].mean(dim=0), atol=1e-4)


def test_echo_is_the_mean_over_the_second_copy_of_the_base_models_causal_states(tiny_lab):
    vectors = Echo(tiny_lab.use("magnet")).encode(TEXTS)
    tokenizer = tiny_lab.tokenizer
    for vector, text in zip(vectors, TEXTS, strict=True):
        before = tokenizer(f"Rewrite the sentence: {text}\nThe rewritten sentence:")["input_ids"]
        again = tokenizer(f" {text}", add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            states = tiny_lab.model.model(torch.tensor([before + again])).last_hidden_state[0]
        assert torch.allclose(vector, states[len(before) :].mean(dim=0), atol=1e-4)


def test_words_and_text_come_from_the_adapted_model(tiny_lab, adapter):
    baseline = LLM2Vec(tiny_lab, adapter)
    adapted = tiny_lab.use(adapter)
    words = [["John", "lives", "here"]]
    assert torch.equal(baseline.encode_words(words)[0], adapted.encode_words(words)[0])
    assert not torch.allclose(baseline.encode_words(words)[0], tiny_lab.encode_words(words)[0], atol=1e-2)
    assert baseline.generate("Tom had", max_new_tokens=8) == adapted.generate("Tom had", max_new_tokens=8)
    assert baseline.generate("Tom had", max_new_tokens=8) != tiny_lab.generate("Tom had", max_new_tokens=8)
