"""The course's notebooks: made from their sources, clean, and running from top to bottom."""

import ast
import importlib.util
import re
from pathlib import Path

import nbformat
import pytest
import torch

from magnet_lab.course.check import Verdict

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
_spec = importlib.util.spec_from_file_location("build", NOTEBOOKS / "src" / "build.py")
build = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build)

SOURCES = build.sources()
NAMES = [source.stem for source in SOURCES]
COMMITTED = [path for path in sorted(NOTEBOOKS.rglob("*.ipynb")) if ".ipynb_checkpoints" not in path.parts]

EXAMPLE = '''# %% [markdown]
# Write it.

# %% tags=["exercise"]
def one():
    """1"""
    ### BEGIN SOLUTION
    number = 1
    return number
    ### END SOLUTION


# %%
one()
'''


def test_a_source_makes_a_notebook_to_solve_and_one_solved(tmp_path):
    (tmp_path / "00_example.py").write_text(EXAMPLE)
    (for_students, for_instructors) = build.notebooks(tmp_path / "00_example.py").values()
    prose, stub, folded, call = for_students.cells
    assert stub.source == 'def one():\n    """1"""\n    raise NotImplementedError("your turn")'
    assert stub.metadata.tags == ["exercise"]
    assert "<details>" in folded.source and "    number = 1\n    return number\n```" in folded.source
    assert [prose.source, call.source] == ["Write it.", "one()"]
    assert [cell.source for cell in for_instructors.cells] == [
        "Write it.",
        'def one():\n    """1"""\n    number = 1\n    return number',
        "one()",
    ]


def test_an_assignment_for_nbgrader_has_its_exercise_and_its_check_marked(tmp_path):
    (tmp_path / "00_example.py").write_text(
        EXAMPLE.replace("Write it.", "Write it (●●○).").replace("\none()\n", "\ncheck.one(one)\n")
    )
    prose, exercise, test = build.graded(build.jupytext.read(tmp_path / "00_example.py")).cells
    assert "nbgrader" not in prose.metadata
    assert "### BEGIN SOLUTION" in exercise.source and exercise.metadata.nbgrader.solution
    assert test.source == "assert (verdict := check.one(one)), verdict.message"
    assert test.metadata.nbgrader.grade and test.metadata.nbgrader.locked and test.metadata.nbgrader.points == 2


def test_each_check_of_a_cell_fails_with_what_it_says():
    code = "print(1)\ncheck.one(\n    one,\n)\nother()\ncheck.two(two)"
    assert build.asserted(code).splitlines() == [
        "print(1)",
        "assert (verdict := check.one(",
        "    one,",
        ")), verdict.message",
        "other()",
        "assert (verdict := check.two(two)), verdict.message",
    ]


def test_cleaning_keeps_the_last_state_of_a_progress_bar_and_no_address():
    text = nbformat.v4.new_output("stream", text="0%\r50%\r100%\n<object at 0x7f3a>\n")
    assert build.clean(text, 1).text == "100%\n<object>\n"
    widget = nbformat.v4.new_output(
        "display_data",
        data={"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "IntSlider()"},
    )
    assert build.clean(widget, 1).data == {"text/plain": "IntSlider()"}


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_notebooks_are_those_of_their_sources(source):
    for path, expected in build.notebooks(source).items():
        assert path.is_file(), f"run: python notebooks/src/build.py {source.stem[:2]}"
        found = nbformat.read(path, as_version=4)
        assert [(cell.cell_type, cell.source) for cell in found.cells] == [
            (cell.cell_type, cell.source) for cell in expected.cells
        ], f"run: python notebooks/src/build.py {source.stem[:2]}"


def test_no_notebook_is_without_a_source():
    assert {path.stem for path in COMMITTED} == set(NAMES)


@pytest.mark.parametrize("path", COMMITTED, ids=[f"{path.parent.name}/{path.stem}" for path in COMMITTED])
def test_notebooks_read_without_a_kernel(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 1e6
    assert "widgets" not in notebook.metadata and "widget-view" not in text
    assert not re.search(r"at 0x[0-9a-f]{6}", text)
    assert str(NOTEBOOKS.parent) not in text, "a path of the machine it was built on"
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "not executed from top to bottom"
    for cell in code:
        for output in cell.outputs:
            assert output.output_type != "error"
            if "image/png" in output.get("data", {}):
                twin = output.data["text/plain"]
                assert not twin.startswith("<"), f"a picture without its content in words: {cell.source}"


def run(code: str, space: dict) -> list[Verdict]:
    """Run a cell here, without a kernel, as that would load the libraries anew; what its check says, if it is one."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), space)
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), space) if last is not None else None
    if isinstance(value, Verdict):
        return [value]
    if hasattr(value, "_repr_png_"):
        assert value._repr_png_().startswith(b"\x89PNG")
    return []


def names(code: str) -> set[str]:
    """The names that a cell reads or calls."""
    return {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_notebooks_run_and_their_checks_say_yes_to_solutions_and_not_yet_to_stubs(source, monkeypatch):
    """Solved, and beside it as students find it: a cell runs a second time where it is a stub or asks for one."""
    unsolved, solved = (
        [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        for notebook in build.notebooks(source).values()
    )
    monkeypatch.chdir(NOTEBOOKS)
    space, stubs = {"__name__": "__main__"}, {}
    with torch.enable_grad():  # a notebook may switch gradients off for good; other tests want them
        for stub, code in zip(unsolved, solved, strict=True):
            for verdict in run(code, space):
                assert verdict, verdict.message
            if stub != code or names(code) & stubs.keys():
                students = space | stubs
                for verdict in run(stub, students):
                    assert not verdict, f"a check is content with a stub: {stub}"
                written = {node.name for node in ast.parse(stub).body if isinstance(node, ast.FunctionDef)}
                stubs |= {name: students[name] for name in written if stub != code}


@pytest.mark.slow
def test_a_notebook_runs_in_a_kernel():
    (notebook, _) = build.notebooks(SOURCES[0]).values()
    build.execute(notebook)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
