"""The folder of the Space: what it asks for is what the project asks for, and its wheel is what it runs."""

import importlib.util
import sys
import tomllib
import zipfile
from pathlib import Path

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
SPACE = ROOT / "app" / "space"


def front_matter():
    _, header, _ = (SPACE / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(header)


def requirements(lines):
    found = [Requirement(line) for line in lines if line and not line.startswith(("#", "-"))]
    return {each.name: str(each.specifier) for each in found}


def test_it_is_a_gradio_space_with_the_version_that_is_tested():
    header = front_matter()
    pins = requirements((ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines())
    assert header["sdk"] == "gradio" and f"=={header['sdk_version']}" == pins["gradio"]
    assert (SPACE / header["app_file"]).is_file()
    assert len(header["short_description"]) <= 60  # more is refused
    assert header["license"] == "apache-2.0"


def test_it_installs_what_the_app_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = requirements(project["dependencies"])
    del needed["gradio"], needed["jupyterlab"]  # the Space brings the one, and nobody opens a notebook there
    assert requirements((SPACE / "requirements.txt").read_text(encoding="utf-8").splitlines()) == needed


def test_the_newest_wheel_beside_it_is_imported(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "magnet_lab-9.9-py3-none-any.whl", "w") as wheel:
        wheel.writestr("magnet_lab_in_a_space.py", "VERSION = '9.9'")
    specification = importlib.util.spec_from_file_location("space_app", SPACE / "app.py")
    space = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(space)
    monkeypatch.setattr(sys, "path", list(sys.path))
    space.unpack(tmp_path / "nothing")
    assert importlib.util.find_spec("magnet_lab_in_a_space") is None
    space.unpack(tmp_path)
    assert importlib.import_module("magnet_lab_in_a_space").VERSION == "9.9"
