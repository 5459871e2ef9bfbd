"""Make the course's notebooks from their sources, and run them.

    python notebooks/src/build.py            # all of them
    python notebooks/src/build.py 00 04      # some
    python notebooks/src/build.py --nbgrader course/source     # not executed: assignments for nbgrader

`NN_name.py` (py:percent, with nbgrader's markers around solutions) is what people write. Out of it come
`../NN_name.ipynb`, where students find an empty function and a folded solution, and `../solutions/NN_name.ipynb`. Both are
executed, cleaned of all that differs from one run to the next, and committed, so that they read without a kernel.
"""

import argparse
import ast
import re
import sys
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from tqdm import tqdm

SOURCES = Path(__file__).parent
FOLDER = SOURCES.parent
SECONDS = 90  # that a notebook may take on two cores
SOLUTION = re.compile(
    r"^([ \t]*)### BEGIN SOLUTION\n(.*?)^[ \t]*### END SOLUTION\n?",
    re.DOTALL | re.MULTILINE,
)
CHECK = re.compile(r"^check\.\w+\(", re.MULTILINE)
STUB = 'raise NotImplementedError("your turn")'
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def sources() -> list[Path]:
    """The course's sources, in order."""
    return sorted(SOURCES.glob("[0-9][0-9]_*.py"))


def notebooks(source: Path) -> dict[Path, NotebookNode]:
    """What a source makes, not executed: where it goes -> the notebook."""
    made = {}
    for path, make in (
        (FOLDER / f"{source.stem}.ipynb", student),
        (FOLDER / "solutions" / f"{source.stem}.ipynb", solved),
    ):
        notebook = make(jupytext.read(source))
        for number, cell in enumerate(notebook.cells):
            cell["id"] = f"cell-{number:03d}"
            cell["metadata"] = (
                {"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {}
            )
        notebook["metadata"] = dict(METADATA)
        made[path] = notebook
    return made


def student(notebook: NotebookNode) -> NotebookNode:
    """For students: each solution gives way to a stub, and stands folded below the cell."""
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type == "code" and SOLUTION.search(cell.source + "\n"):
            answer = solution(cell.source)
            cell.source = SOLUTION.sub(rf"\1{STUB}\n", cell.source + "\n").rstrip()
            cells.append(
                new_markdown_cell(
                    f"<details><summary>Solution</summary>\n\n```python\n{answer}\n```\n\n</details>"
                )
            )
    notebook.cells = cells
    return notebook


def solved(notebook: NotebookNode) -> NotebookNode:
    """For instructors: the solutions in their places."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = solution(cell.source)
    return notebook


def graded(notebook: NotebookNode) -> NotebookNode:
    """For nbgrader: its markers kept, the cells of the exercises and those of their checks marked as it wants them.

    A check is worth as many points as its exercise has ●, and fails by an exception, which is what nbgrader looks for.
    """
    exercise, points = 0, 0
    for number, cell in enumerate(notebook.cells):
        cell["id"], cell["metadata"] = f"cell-{number:03d}", {}
        if cell.cell_type == "markdown":
            points = cell.source.count("●") or points
        elif SOLUTION.search(cell.source + "\n"):
            exercise += 1
            cell.metadata["nbgrader"] = _marked(f"exercise-{exercise}", solution=True)
        elif exercise and CHECK.search(cell.source):
            cell.source = asserted(cell.source)
            cell.metadata["nbgrader"] = _marked(
                f"check-{exercise}-{number}", grade=True, locked=True, points=points
            )
    notebook["metadata"] = dict(METADATA)
    return notebook


def asserted(code: str) -> str:
    """A cell's code with each of its checks as an assertion, whose message is what the check says."""
    lines = code.splitlines()
    for node in reversed(ast.parse(code).body):
        call = ast.get_source_segment(code, node)
        if isinstance(node, ast.Expr) and CHECK.match(call):
            lines[node.lineno - 1 : node.end_lineno] = [
                f"assert (verdict := {call}), verdict.message"
            ]
    return "\n".join(lines)


def _marked(name: str, **marks) -> dict:
    defaults = {
        "schema_version": 3,
        "grade": False,
        "solution": False,
        "locked": False,
        "task": False,
    }
    return defaults | {"grade_id": name} | marks


def solution(code: str) -> str:
    """A cell's code with its solution, without the markers."""
    return SOLUTION.sub(r"\2", code + "\n").rstrip()


def execute(notebook: NotebookNode) -> None:
    """Run all cells, and keep of what they print what is the same each time."""
    NotebookClient(
        notebook,
        timeout=10 * SECONDS,
        startup_timeout=10 * SECONDS,  # importing all libraries on a busy machine
        kernel_name="python3",
        resources={"metadata": {"path": FOLDER}},
    ).execute()
    notebook["metadata"] = dict(
        METADATA
    )  # no state of widgets: code hosts refuse half of one
    count = 0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        cell["metadata"].pop("execution", None)
        count += 1
        cell["execution_count"] = count
        outputs = [clean(output, count) for output in joined(cell.outputs)]
        # A bar that removed itself left an empty line.
        cell["outputs"] = [
            output for output in outputs if output.get("text", "something").strip()
        ]


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """What one cell prints comes in pieces, cut by chance: here in one."""
    whole: list[NotebookNode] = []
    for output in outputs:
        if (
            output.output_type == "stream"
            and whole
            and whole[-1].get("name") == output.name
        ):
            whole[-1]["text"] += output.text
        else:
            whole.append(output)
    return whole


def clean(output: NotebookNode, count: int) -> NotebookNode:
    """An output without addresses in memory, counts and widgets that no reader could see."""
    if "execution_count" in output:
        output["execution_count"] = count
    if "data" in output:
        output["data"].pop("application/vnd.jupyter.widget-view+json", None)
        if "text/plain" in output["data"]:
            output["data"]["text/plain"] = _without_addresses(
                output["data"]["text/plain"]
            )
    if "text" in output:
        # A progress bar writes its line over and over; its last state is what a reader would have seen.
        lines = (line.rsplit("\r", 1)[-1] for line in output["text"].split("\n"))
        output["text"] = _without_addresses("\n".join(lines))
    return output


def _without_addresses(text: str) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Make the course's notebooks from their sources, and run them."
    )
    parser.add_argument(
        "numbers", nargs="*", help="of the notebooks, such as 00; by default all"
    )
    parser.add_argument(
        "--nbgrader",
        type=Path,
        metavar="FOLDER",
        help="write assignments for nbgrader, and run nothing",
    )
    options = parser.parse_args()
    wanted = options.numbers
    chosen = [source for source in sources() if not wanted or source.stem[:2] in wanted]
    if not chosen:
        names = ", ".join(source.stem for source in sources())
        print(
            f"build.py: no source of a notebook has the number {', '.join(wanted)}; there are {names}",
            file=sys.stderr,
        )
        return 1
    if options.nbgrader:
        for source in chosen:
            path = options.nbgrader / source.stem / f"{source.stem}.ipynb"
            path.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(graded(jupytext.read(source)), path)
        print(f"{len(chosen)} assignments in {options.nbgrader}")
        return 0
    for source in tqdm(chosen, unit="notebook"):
        for path, notebook in notebooks(source).items():
            start = time.perf_counter()
            execute(notebook)
            path.parent.mkdir(exist_ok=True)
            nbformat.write(notebook, path)
            size = path.stat().st_size / 1e6
            tqdm.write(
                f"{path.relative_to(FOLDER)}: {time.perf_counter() - start:.0f} s, {size:.2f} MB"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
