"""Slides for whoever teaches, a deck for each part of the course.

    python notebooks/src/decks.py slides          # slides/1-masks.html …

A deck is one HTML file that needs no network and no server: Page Down turns a slide, and the browser prints one a page.
What a slide says stands in a notebook: its question and goals, its first picture, its summary, its questions, their
answers. Nothing is written here a second time, so a deck is made when it is wanted and is as old as the notebooks are.
"""

import argparse
import io
import re
import sys
from base64 import b64encode
from html import escape
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import math_to_image
from nbformat import NotebookNode

SOLVED = Path(__file__).parents[1] / "solutions"
PARTS = {
    "1-masks": ("Who may look at whom", ("00", "01")),
    "2-objectives": ("Three objectives, one training", ("02", "03", "04", "05")),
    "3-evidence": (
        "What it can do, and how one would know",
        ("06", "07", "08", "09"),
    ),
    "4-relatives": (
        "Relatives, and larger models",
        ("10", "11", "12", "13", "14"),
    ),
}
BARE_ROOT = re.compile(r"\\sqrt\s*(\w)")  # TeX takes it, matplotlib wants braces
MATH = re.compile(r"\$([^$]+)\$")
MARKDOWN = MarkdownIt("commonmark").enable("table")
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
html {{ scroll-snap-type: y mandatory; }}
body {{ margin: 0; background: #fff; color: #111; font: clamp(15px, 2.7vmin, 30px)/1.45 system-ui, sans-serif; }}
section {{ box-sizing: border-box; min-height: 100vh; padding: 5vh 8vw; scroll-snap-align: start;
  border-bottom: 1px solid #c8c8c8; display: flex; flex-direction: column; justify-content: center; }}
h1 {{ font-size: 2em; margin: 0 0 .6em; }} h2 {{ font-size: 1.4em; margin: 0 0 .6em; }}
li {{ margin: .3em 0; }} .picture {{ max-width: 100%; max-height: 72vh; object-fit: contain; }}
pre {{ overflow: auto; }} .from {{ color: #555; margin: 1em 0 0; }}
td, th {{ padding: .1em .8em .1em 0; text-align: left; }}
@page {{ size: A4 landscape; margin: 10mm; }}
@media print {{ body {{ font-size: 14pt; }} section {{ min-height: 0; height: 185mm; padding: 0 10mm; border: 0;
  break-after: page; }} .picture {{ max-height: 140mm; }} }}
</style>
{slides}
</html>
"""


def slides(notebook: NotebookNode) -> list[str]:
    """The slides of an executed notebook, as HTML."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    heading, opening = cells[0].split("\n", 1)
    title = heading.removeprefix("# ")
    prose = "\n\n".join(cells)
    questions, _, answers = section(prose, "Do you know now?").partition("<details>")
    answers = answers.partition("</summary>")[2].partition("</details>")[0]
    return [
        f"<h1>{inline(title)}</h1>{html(opening)}",
        picture(notebook),
        f"<h2>What to keep</h2>{html(section(prose, 'Summary'))}",
        f"<h2>Do you know now?</h2>{html(questions)}",
        f"<h2>Answers</h2>{html(answers)}",
    ]


def section(prose: str, name: str) -> str:
    """What stands under a heading of the second rank, up to the next one.

    Raises:
        ValueError: if there is no such heading.
    """
    found = re.search(rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", prose, re.M | re.S)
    if not found:
        raise ValueError(f"the notebook has no section {name!r}")
    return found[1]


def picture(notebook: NotebookNode) -> str:
    """The first picture of a notebook, its content in words beside it for who does not see it.

    Raises:
        ValueError: if it has none, as one that was never executed.
    """
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            png = output.get("data", {}).get("image/png")
            if png:
                words = escape(output.data.get("text/plain", ""), quote=True)
                source = f"data:image/png;base64,{png.replace(chr(10), '')}"
                return f'<img class="picture" alt="{words}" src="{source}">'
    raise ValueError("the notebook has no picture: build.py runs it")


def html(text: str) -> str:
    """Markdown with formulas as HTML."""
    return MARKDOWN.render(MATH.sub(formula, text))


def inline(text: str) -> str:
    """The same for a line."""
    return MARKDOWN.renderInline(MATH.sub(formula, text))


def formula(found: re.Match) -> str:
    """A formula as a picture, as a browser without a network cannot read TeX."""
    file, size = io.BytesIO(), 10  # points
    braced = BARE_ROOT.sub(r"\\sqrt{\1}", found[1])
    font = FontProperties(size=size)
    depth = math_to_image(f"${braced}$", file, prop=font, dpi=72, format="svg")
    height = float(re.search(rb'height="([\d.]+)pt"', file.getvalue())[1])
    style = f"height: {height / size:.2f}em; vertical-align: {-depth / size:.2f}em"
    source = b64encode(file.getvalue()).decode()
    alt = escape(found[1], quote=True)
    return f'<img style="{style}" alt="{alt}" src="data:image/svg+xml;base64,{source}">'


def deck(title: str, notebooks: dict[str, NotebookNode]) -> str:
    """A page of slides: the part's title and questions, then each notebook's slides."""
    first = "".join(f"<li>{inline(name)}</li>" for name in notebooks)
    made = [f"<h1>{escape(title)}</h1><ul>{first}</ul>"]
    for name, notebook in notebooks.items():
        of = f'<p class="from">{inline(name)}</p>'
        made += [
            f"{slide}{of if number else ''}"
            for number, slide in enumerate(slides(notebook))
        ]
    sections = "\n".join(f"<section>{slide}</section>" for slide in made)
    return PAGE.format(title=escape(title), slides=sections)


def part(name: str) -> str:
    """The deck of a part, from the executed solutions."""
    title, numbers = PARTS[name]
    notebooks = {}
    for path in sorted(SOLVED.glob("*.ipynb")):
        if path.stem[:2] in numbers:
            notebook = nbformat.read(path, as_version=4)
            notebooks[notebook.cells[0].source.split("\n")[0].removeprefix("# ")] = (
                notebook
            )
    return deck(title, notebooks)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Make slides of the course, a deck for each part."
    )
    parser.add_argument("folder", type=Path, help="where they go")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name in PARTS:
        path = folder / f"{name}.html"
        path.write_text(part(name), encoding="utf-8")
        print(f"{path}: open it in a browser; Page Down turns a slide")
    return 0


if __name__ == "__main__":
    sys.exit(main())
