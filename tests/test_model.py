"""`Magnet`: transformers' generation, adapters on shared weights, and two threads in two modes."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from peft import LoraConfig, get_peft_model

from magnet_lab import Magnet, zoo

PROMPT = "Once upon a time"
STORY = "Tom had a red ball. [blank:4] He was very sad."


@pytest.fixture(scope="module")
def adapter_folders(tmp_path_factory, tiny_lab):
    """Two adapters that change the model much, saved by PEFT itself."""
    from transformers import AutoModelForCausalLM

    folders = []
    for seed in (1, 2):
        base = AutoModelForCausalLM.from_pretrained(zoo.resolve("tiny"), dtype=torch.float32)
        torch.manual_seed(seed)
        config = LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
        folders.append(tmp_path_factory.mktemp("adapter"))
        get_peft_model(base, config).save_pretrained(folders[-1])
    return folders


def test_generation_is_that_of_transformers(tiny_lab):
    ids = tiny_lab.tokenizer(PROMPT, return_tensors="pt")["input_ids"]
    expected = tiny_lab.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=False)
    text = tiny_lab.tokenizer.decode(expected[0], skip_special_tokens=True)
    assert PROMPT + tiny_lab.generate(PROMPT, max_new_tokens=20) == text
    assert "".join(tiny_lab.generate(PROMPT, max_new_tokens=20, stream=True)) == text[len(PROMPT) :]
    assert tiny_lab.generate(PROMPT, max_new_tokens=20, num_beams=3) != ""


def test_sampling_repeats_with_its_seed_and_leaves_the_global_state_alone(tiny_lab):
    options = {"do_sample": True, "temperature": 1.5, "max_new_tokens": 20}
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first = tiny_lab.generate(PROMPT, seed=1, **options)
    assert torch.equal(torch.rand(3), expected)
    assert tiny_lab.generate(PROMPT, seed=1, **options) == first
    assert tiny_lab.generate(PROMPT, seed=2, **options) != first
    assert "".join(tiny_lab.generate(PROMPT, seed=1, stream=True, **options)) == first


def test_seeded_sampling_in_two_threads(tiny_lab):
    def sample(seed):
        return tiny_lab.generate(PROMPT, seed=seed, do_sample=True, temperature=1.5, max_new_tokens=10)

    serial = [sample(seed) for seed in range(10)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(sample, range(10))) == serial


def test_a_closed_stream_stops_the_work(tiny_lab):
    stream = tiny_lab.generate(PROMPT, max_new_tokens=800, min_new_tokens=800, stream=True)
    next(stream)
    stream.close()  # joins the thread, which would go on for many seconds
    assert list(stream) == []


def test_failures_in_a_stream_reach_the_reader(tiny_lab):
    with pytest.raises(ValueError):
        list(tiny_lab.generate(PROMPT, stream=True, do_sample=True, temperature=-1.0))


def test_an_empty_text_and_one_too_long(tiny_lab):
    assert tiny_lab.generate("", max_new_tokens=5)
    with pytest.raises(ValueError, match="the text has .* tokens; with 50 new ones that exceeds the model's 1,024"):
        tiny_lab.generate("word " * 2000)


def test_control_tokens_in_a_text_are_text(tiny_lab):
    ids = tiny_lab.tokenizer("<s></s><pad>")["input_ids"]
    assert ids[0] == tiny_lab.tokenizer.bos_token_id
    assert not set(ids[1:]) & set(tiny_lab.tokenizer.all_special_ids)
    assert tiny_lab.tokenizer.decode(ids[1:]) == "<s></s><pad>"


def test_two_threads_in_two_modes(tiny_lab):
    """200 calls in each of two modes at once, and of the third: what each gives alone."""
    texts = [
        f"The {word} ran to the park with {number} friends."
        for number, word in enumerate(["dog", "cat", "boy", "girl"])
    ]
    calls = {
        "generate": lambda i: tiny_lab.generate(texts[i % 4], max_new_tokens=2),
        "encode": lambda i: tiny_lab.encode([texts[i % 4]]).tolist(),
        "infill": lambda i: tiny_lab.infill(texts[i % 4].replace("ran", "[blank:2]")),
    }
    serial = {mode: [call(i) for i in range(4)] for mode, call in calls.items()}
    with ThreadPoolExecutor(3) as pool:
        running = {mode: pool.submit(lambda call: [call(i) for i in range(200)], call) for mode, call in calls.items()}
    for mode, future in running.items():
        assert all(result == serial[mode][i % 4] for i, result in enumerate(future.result())), mode


def test_adapters_share_the_base_and_do_not_mix(tiny_lab, adapter_folders):
    """Against each adapter loaded by PEFT alone; in two threads; the base as it was, its tensors in memory once."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    before = tiny_lab.encode([PROMPT])
    labs = [tiny_lab.use(str(folder)) for folder in adapter_folders]
    ids = tiny_lab.tokenizer(PROMPT, return_tensors="pt")["input_ids"]
    for lab, folder in zip(labs, adapter_folders, strict=True):
        base = AutoModelForCausalLM.from_pretrained(zoo.resolve("tiny"), dtype=torch.float32)
        alone = PeftModel.from_pretrained(base, folder)
        with torch.no_grad():
            assert torch.allclose(lab.model(input_ids=ids).logits, alone(input_ids=ids).logits, atol=1e-5)
        shared = {parameter.data_ptr() for parameter in lab.model.parameters()}
        assert {parameter.data_ptr() for parameter in tiny_lab.model.parameters()} <= shared
    assert torch.equal(tiny_lab.encode([PROMPT]), before)

    serial = [lab.encode([PROMPT]) for lab in (tiny_lab, *labs)]
    assert not torch.allclose(serial[0], serial[1]) and not torch.allclose(serial[1], serial[2])
    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(lambda lab: [lab.encode([PROMPT]) for _ in range(50)], lab) for lab in (tiny_lab, *labs)]
    for expected, future in zip(serial, running, strict=True):
        assert all(torch.equal(vector, expected) for vector in future.result())

    again = labs[0].use(None)
    assert again.adapter is None
    assert torch.equal(again.encode([PROMPT]), before)
    assert torch.equal(labs[0].use(str(adapter_folders[1])).encode([PROMPT]), serial[2])


def test_an_adapter_folder_is_loaded_with_its_base(adapter_folders, tiny_lab):
    lab = Magnet.from_pretrained("tiny", adapter=str(adapter_folders[0]), device="cpu", dtype=torch.float32)
    assert lab.adapter == str(adapter_folders[0])
    assert torch.equal(lab.encode([PROMPT]), tiny_lab.use(str(adapter_folders[0])).encode([PROMPT]))


def test_without_the_default_adapter_the_base_is_used_and_said_so(tmp_path):
    """A copy of the bundled model without its adapters."""
    import shutil
    from pathlib import Path

    shutil.copytree(Path(zoo.resolve("tiny")), tmp_path / "copy", ignore=shutil.ignore_patterns("adapters"))
    with pytest.warns(UserWarning, match="comes without a 'magnet' adapter: this is the base model"):
        lab = Magnet.from_pretrained(tmp_path / "copy")
    assert lab.adapter is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Magnet.from_pretrained(tmp_path / "copy", adapter=None)
    with pytest.raises(zoo.ModelUnavailable, match="comes without an adapter named 'mntp'"):
        lab.use("mntp")


def test_bfloat16_and_float32_agree(tiny_lab):
    """Pooled in float32, a bfloat16 model's vectors point where the float32 model's do."""
    half = Magnet.from_pretrained("tiny", adapter=None, device="cpu", dtype=torch.bfloat16)
    a, b = (
        half.encode([PROMPT, "Tom had a red ball."], pooling="mean"),
        tiny_lab.encode([PROMPT, "Tom had a red ball."], pooling="mean"),
    )
    assert a.dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(a, b).min() > 0.999
    assert half.infill(STORY).spans


def test_import_is_light():
    """Neither gradio nor matplotlib nor transformers before they are used."""
    import subprocess
    import sys

    code = "import sys, magnet_lab; print({'gradio', 'matplotlib', 'transformers', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
