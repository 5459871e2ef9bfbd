"""Every page as axe-core sees it, in both themes: nothing serious.

axe-core comes with axe-playwright-python, which is not asked for more than that file.
"""

from importlib import resources

import pytest
from chromium import LONG, expect, pytestmark  # noqa: F401 - the marks

from magnet_lab.app.build import PAGES

AXE = resources.files("axe_playwright_python") / "axe.min.js"

# What gradio draws of itself, where we cannot reach: the navigation bar, its menu, the foot.
NOT_OURS = ["footer", ".nav-holder"]

RUN = """
async outside => {
  const found = await axe.run({exclude: outside.map(one => [one])}, {resultTypes: ['violations']});
  return found.violations.map(each => ({
    id: each.id, impact: each.impact, help: each.help,
    where: each.nodes.slice(0, 4).map(node => node.target.join(' ') + ' ' + node.html.slice(0, 160)),
  }));
}
"""


def look(page):
    """What axe-core finds serious or critical on a page as it is."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return [each for each in page.evaluate(RUN, NOT_OURS) if each["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("path", ["", *(page.PATH for page in PAGES)])
def test_nothing_serious(visit, theme, path):
    page = visit(path, theme)
    expect(page.locator("footer")).to_be_visible(timeout=LONG)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for _ in range(20):  # gradio draws an example's button before what it says, and much else bit by bit
        if not (found := look(page)):
            break
        page.wait_for_timeout(500)
    assert found == []


def test_what_is_wrong_is_found(visit):
    """So that an empty list says something."""
    page = visit("masks")
    expect(page.get_by_role("heading", level=1)).to_be_visible(timeout=LONG)
    page.evaluate(
        "document.querySelector('h1').insertAdjacentHTML('afterend', '<img src=\"data:,\"><button></button>')"
    )
    assert {each["id"] for each in look(page)} >= {"image-alt", "button-name"}
