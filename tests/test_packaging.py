"""What is installed: the same by pip and by conda, all of it, and nothing beside the one package."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from lowest_versions import lowest_versions
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PROJECT = tomllib.loads(PYPROJECT)
CONDA_NAMES = {"pytorch": "torch"}


def ranges(requirements: list[str]) -> dict[str, str]:
    parsed = [Requirement(text) for text in requirements]
    return {canonicalize_name(CONDA_NAMES.get(r.name, r.name)): str(r.specifier) for r in parsed}


# Modules whose distribution has another name.
DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn", "yaml": "pyyaml"}
# Imported where a user asks for them, with a sentence where they are missing.
OPTIONAL = {"datasets", "lm-eval", "mteb", "sentence-transformers"}

CORE = ranges(PROJECT["project"]["dependencies"])
DEV = ranges(PROJECT["project"]["optional-dependencies"]["dev"])


def test_conda_names_the_same_dependencies():
    listed = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    (pip,) = [entry["pip"] for entry in listed if isinstance(entry, dict)]
    assert pip[-1] == "--editable ."
    conda = ranges([entry for entry in listed if isinstance(entry, str) and entry != "pip"])
    assert conda.pop("python") == PROJECT["project"]["requires-python"]
    assert not conda.keys() & ranges(pip[:-1]).keys()
    assert conda | ranges(pip[:-1]) == CORE


@pytest.mark.parametrize("python", ["3.11", "3.13"])
def test_constraints_pin_every_dependency_within_its_range(python):
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    requirements = [Requirement(line) for line in lines if not line.startswith("#")]
    valid = [r for r in requirements if r.marker is None or r.marker.evaluate({"python_version": python})]
    pins = {canonicalize_name(r.name): str(r.specifier).removeprefix("==") for r in valid}
    assert len(pins) == len(valid), "two pins for one name"
    for name, allowed in (CORE | DEV).items():
        assert Requirement(f"{name}{allowed}").specifier.contains(pins[name]), name


def test_lowest_versions_are_the_lower_bounds():
    pins = dict(line.split("==") for line in lowest_versions(PYPROJECT))
    assert {canonicalize_name(name): f">={version}" for name, version in pins.items()} == CORE | DEV
    assert "torch==2.13.0" in lowest_versions(PYPROJECT, "2.13.0")


def test_every_import_is_a_dependency():
    imported = set()
    for file in [*(ROOT / "magnet_lab").rglob("*.py"), *(ROOT / "app").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported.add(node.module.partition(".")[0])
    foreign = imported - set(sys.stdlib_module_names) - {"magnet_lab"}
    assert {canonicalize_name(DISTRIBUTIONS.get(name, name)) for name in foreign} - OPTIONAL <= CORE.keys()


def packages_on_disk() -> set[str]:
    found = set()
    for folder, name in ((ROOT / "magnet_lab", "magnet_lab"), (ROOT / "app", "magnet_lab.app")):
        for file in folder.rglob("*.py"):
            if file.parent == ROOT / "app" / "space":  # no package: the files of a Space
                continue
            parts = file.parent.relative_to(folder).parts
            found.add(".".join((name, *parts)))
    return found


def test_every_package_is_listed():
    listed = PROJECT["tool"]["setuptools"]["packages"]
    assert listed == sorted(listed)
    listed.remove("magnet_lab.notebooks")  # data alone
    assert set(listed) == packages_on_disk()
    folders = {name: ROOT / name.replace("magnet_lab.app", "app").replace(".", "/") for name in listed}
    assert [name for name, folder in folders.items() if not (folder / "__init__.py").is_file()] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("magnet_lab", "app", "notebooks"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(out), str(source)], check=True)
    return next(out.glob("*.whl"))


@pytest.mark.slow
def test_wheel_carries_everything_inside_one_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"magnet_lab"}
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    ignored = {"__pycache__", "src", ".ipynb_checkpoints", "space"}  # sources of the notebooks; files of a Space
    for folder, prefix in (
        ("magnet_lab", "magnet_lab"),
        ("app", "magnet_lab/app"),
        ("notebooks", "magnet_lab/notebooks"),
    ):
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and not ignored & set(file.parts):
                assert f"{prefix}/{file.relative_to(ROOT / folder).as_posix()}" in names


@pytest.mark.slow
def test_wheel_works_outside_the_clone(wheel, tmp_path):
    site = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(command, check=True)
    script = """
import torch, magnet_lab, magnet_lab.app.pages
print(magnet_lab.__file__, magnet_lab.app.__file__, sep="\\n")
lab = magnet_lab.Magnet.from_pretrained("tiny", adapter=None, dtype=torch.float32)
print(lab.generate("Once upon a time", max_new_tokens=5).strip() != "")
from magnet_lab.course import copy
print(copy.folder())
"""
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env={"PYTHONPATH": str(site)}, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    package, app, wrote, notebooks = result.stdout.split()
    assert Path(notebooks) == site / "magnet_lab" / "notebooks" and (Path(notebooks) / "solutions").is_dir()
    assert Path(package).parent == site / "magnet_lab" and Path(app).parent == site / "magnet_lab" / "app"
    assert wrote == "True"


def test_no_registry_is_named():
    """Users have mirrors; pip's own settings decide where packages come from."""
    patterns = ("*.toml", "*.txt", "*.yml", "*file", ".ci/*", "app/space/*")
    files = [path for pattern in patterns for path in ROOT.glob(pattern)]
    files += [*(ROOT / "magnet_lab").rglob("*.py"), *(ROOT / "app").rglob("*.py")]
    hosts = re.compile(r"\b(pypi\.\w+|files\.pythonhosted\w*|download\.pytorch\.org|anaconda\.org)")
    assert [path.name for path in files if hosts.search(path.read_text(encoding="utf-8"))] == []
