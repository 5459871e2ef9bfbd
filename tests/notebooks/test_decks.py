"""The slides: all notebooks, each in one deck, with their own words and pictures, and nothing from elsewhere."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
_spec = importlib.util.spec_from_file_location("decks", NOTEBOOKS / "src" / "decks.py")
decks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(decks)


def example():
    png = {"image/png": "QUJD\nRA==\n", "text/plain": 'a <mask>, "drawn"'}
    return new_notebook(
        cells=[
            new_markdown_cell("# 99 · An example\n\n**What is it?**\n\n- **You will** look."),
            new_code_cell("show()", outputs=[new_output("display_data", data=png)]),
            new_code_cell("show()", outputs=[new_output("display_data", data={"image/png": "ZZZZ"})]),
            new_markdown_cell("## Summary\n- It is $\\sqrt T$ and *that* is all."),
            new_markdown_cell(
                "## Do you know now?\n1. What?\n\n<details><summary>Answers</summary>\n\n1. This.\n\n</details>"
            ),
        ]
    )


def test_a_notebook_gives_its_goals_first_picture_summary_questions_and_answers():
    title, picture, summary, questions, answers = decks.slides(example())
    assert "<h1>99 · An example</h1>" in title and "<strong>What is it?</strong>" in title
    assert 'src="data:image/png;base64,QUJDRA=="' in picture and "&lt;mask&gt;, &quot;drawn&quot;" in picture
    assert "<em>that</em> is all" in summary and "Do you" not in summary
    assert "What?" in questions and "This." not in questions and "This." in answers and "details" not in answers


def test_a_formula_is_a_picture_and_words():
    summary = decks.slides(example())[2]
    assert "$" not in summary and r'alt="\sqrt T"' in summary and "data:image/svg+xml;base64," in summary


def test_what_lacks_a_part_is_refused_with_its_name():
    bare = new_notebook(cells=[new_markdown_cell("# 99 · Bare\n\nNothing."), new_markdown_cell("## Summary\n- No.")])
    with pytest.raises(ValueError, match="Do you know now"):
        decks.slides(bare)
    with pytest.raises(ValueError, match="no picture"):
        decks.picture(bare)


def test_every_notebook_is_in_one_part():
    there = sorted(path.stem[:2] for path in (NOTEBOOKS / "src").glob("[0-9]*.py"))
    assert sorted(number for _, numbers in decks.PARTS.values() for number in numbers) == there


@pytest.mark.parametrize("name", decks.PARTS)
def test_decks_have_what_their_notebooks_say_and_want_no_network(name):
    page = decks.part(name)
    _, numbers = decks.PARTS[name]
    assert page.count("<section>") == 1 + 5 * len(numbers)
    loaded = re.findall(r'(?:src|href)="([^"]{0,20})', page)
    assert loaded and all(source.startswith("data:image/") for source in loaded), loaded
    assert "$" not in re.sub(r'"[^"]*"', "", page), "a formula that no browser can read"
    for number in numbers:
        (path,) = (NOTEBOOKS / "solutions").glob(f"{number}_*.ipynb")
        title = nbformat.read(path, as_version=4).cells[0].source.split("\n")[0].removeprefix("# ")
        assert f"<h1>{title}</h1>" in page
