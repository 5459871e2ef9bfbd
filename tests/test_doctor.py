"""The doctor finds what is wrong, says how to mend it, and is silent about what is not."""

import importlib.metadata
import json
import re
import socket
from pathlib import Path

import pytest

from magnet_lab import doctor, fetch, zoo

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MAGNET_LAB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def small(monkeypatch):
    """A folder that is whole, in place of the real weights."""
    folder = zoo.cache_folder() / "small"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(bytes(100))
    (folder / "config.json").write_text("{}")
    fetch._write_manifest(folder)
    return folder


def only(check) -> doctor.Finding:
    (finding,) = doctor._findings(check)
    return finding


def test_all_is_well_here(capsys, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setattr(doctor, "PORT", free.getsockname()[1])
    assert doctor.main() == 0
    out = capsys.readouterr().out
    assert "[FAIL]" not in out and "All is well" in out
    assert "[--]   small is not here yet" in out
    core = PYPROJECT.read_text().partition("\ndependencies = [")[2].partition("]")[0]
    for name in re.findall(r'"([\w-]+)', core):
        assert f"[OK]   {name} {importlib.metadata.version(name)}" in out


def test_failures_count_and_do_not_stop_the_rest(capsys, monkeypatch):
    def broken():
        raise OSError("no such luck")
        yield

    def failing():
        yield doctor.Finding(doctor.FAIL, "it rains", "take an umbrella")

    def fine():
        yield doctor.Finding(doctor.OK, "the sun shines")

    monkeypatch.setattr(doctor, "CHECKS", (broken, failing, fine))
    assert doctor.main() == 1
    out = capsys.readouterr().out
    assert "[FAIL] broken: OSError: no such luck" in out
    assert "[FAIL] it rains\n       mend: take an umbrella" in out
    assert "[OK]   the sun shines" in out and "2 to mend" in out


def test_old_python(monkeypatch):
    monkeypatch.setattr(doctor.platform, "python_version", lambda: "3.9.18")
    finding = only(doctor.python_version)
    assert finding.verdict == doctor.FAIL and ">=3.11" in finding.mend


def test_missing_and_old_dependencies(monkeypatch):
    needed = ["no-such-thing>=1", "torch>=99", "numpy>=1", 'only-for-tests>=1; extra == "dev"']
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: needed)
    missing, old, fine = doctor._findings(doctor.dependencies)
    assert missing.verdict == old.verdict == doctor.FAIL and fine.verdict == doctor.OK
    assert "no-such-thing is missing" in missing.text and 'install "no-such-thing>=1"' in missing.mend
    assert f"torch {importlib.metadata.version('torch')}" in old.text and 'install "torch>=99"' in old.mend


def test_missing_tiny(monkeypatch, tmp_path):
    monkeypatch.setattr(zoo, "BUNDLED", tmp_path)
    finding = only(doctor.tiny_works)
    assert finding.verdict == doctor.FAIL and "install magnet_lab again" in finding.mend


def test_small_absent_intact_and_damaged(small):
    assert only(doctor.small_is_intact).verdict == doctor.OK
    (small / "model.safetensors").write_bytes(bytes(99) + b"\1")  # of the same size
    damaged = only(doctor.small_is_intact)
    assert damaged.verdict == doctor.FAIL
    assert "model.safetensors" in damaged.text and "config.json" not in damaged.text and str(small) in damaged.mend
    (small / fetch.MANIFEST).write_text(json.dumps({"files": {}}))
    assert only(doctor.small_is_intact).verdict == doctor.FAIL


def test_cache_in_the_way_of_a_file(tmp_path):
    (tmp_path / "cache").write_text("")
    finding = only(doctor.cache_is_writable)
    assert finding.verdict == doctor.FAIL and "MAGNET_LAB_CACHE" in finding.mend


def test_read_only_cache_is_enough_once_small_is_there(monkeypatch, small):
    def refuse(*_):
        raise PermissionError("read only")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert only(doctor.cache_is_writable).verdict == doctor.NOTE
    (small / "config.json").unlink()
    assert only(doctor.cache_is_writable).verdict == doctor.FAIL


def test_cache_without_space(monkeypatch):
    usage = type("Usage", (), {"free": 10**6})
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage)
    assert only(doctor.cache_is_writable).verdict == doctor.FAIL


def test_cache_without_space_is_fine_once_small_is_there(monkeypatch, small):
    usage = type("Usage", (), {"free": 10**6})
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage)
    assert only(doctor.cache_is_writable).verdict == doctor.OK


def test_port(monkeypatch):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        monkeypatch.setattr(doctor, "PORT", other.getsockname()[1])
        taken = only(doctor.port_is_free)
    assert taken.verdict == doctor.NOTE and f"--port {doctor.PORT + 1}" in taken.text
    assert only(doctor.port_is_free).verdict == doctor.OK


def test_no_network_is_only_a_note(monkeypatch):
    def no_network():
        raise OSError("Name or service not known")

    monkeypatch.setattr("huggingface_hub.get_session", no_network)
    assert only(doctor.hub_is_reachable).verdict == doctor.NOTE
