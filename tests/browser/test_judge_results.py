"""Judge and Results in a real browser: their main journeys, in both themes, on a phone, with the keys alone."""

import re

import pytest
from chromium import HOSTILE, LONG, expect, pytestmark  # noqa: F401 - the marks

from magnet_lab.app import ratings
from magnet_lab.app.handlers import judge, results
from magnet_lab.evaluation import experiment
from magnet_lab.evaluation.experiment import Figure, Result, Row


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv(ratings.FOLDER, str(tmp_path / "ratings"))
    monkeypatch.setenv(results.FOLDER, str(tmp_path / "own"))
    monkeypatch.setattr(experiment, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setenv(judge.PASSWORD, "open sesame")
    judge._wrong.clear()
    return tmp_path


@pytest.fixture(params=[("light", 1280), ("dark", 390)], ids=["light", "dark phone"])
def page(request, browser, app_address):
    """A page in one theme and width; afterwards nothing may have gone wrong unseen, or gone out to another host."""
    theme, width = request.param
    context = browser.new_context(viewport={"width": width, "height": 900})
    page, problems = context.new_page(), []
    page.on("dialog", lambda dialog: (problems.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("pageerror", lambda error: problems.append(f"error {error}"))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    inside = (app_address, "data:", "blob:")
    page.on("request", lambda sent: None if sent.url.startswith(inside) else problems.append(sent.url))
    page.open = lambda path: page.goto(f"{app_address}/{path}{'&' if '?' in path else '?'}__theme={theme}")
    yield page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
    assert problems == []


def save_stories(folder, sentences):
    rows = {
        system: Row({}, {f"Story {number} begins. [blank] It ends.": sentence for number in range(2)})
        for system, sentence in sentences.items()
    }
    Result("table5", "tiny", "samples", False, 0, "", {}, None, rows).save(folder / "table5.json")


def begin(page, name):
    page.open("judge")
    page.get_by_role("checkbox", name=re.compile("I take part")).check(timeout=LONG)
    page.get_by_role("textbox", name="Code name").fill(name)
    page.keyboard.press("Enter")
    expect(page.get_by_text("0 of 4 judged")).to_be_visible()


def test_stories_are_judged_with_the_keys_and_gone_on_with_later(page, places):
    save_stories(places / "ratings", {"base": HOSTILE, "MAGNET": "It goes on."})
    begin(page, "anna")
    for done, key in enumerate("yn", start=1):
        expect(page.get_by_role("region", name=re.compile("The story")).locator("mark")).to_have_count(1)
        page.keyboard.press(key)
        expect(page.get_by_text(f"{done} of 4 judged")).to_be_visible()
    store = ratings.store(ratings.folder())
    assert [rating.fits for rating in sorted(store.all(), key=lambda rating: rating.fits)] == [False, True]

    page.reload()
    expect(page.get_by_text("Welcome back, anna")).to_be_visible(timeout=LONG)
    expect(page.get_by_role("region", name=re.compile("The story"))).to_be_visible()
    page.keyboard.press("b")  # to the one before this, which was answered second
    expect(page.get_by_text("You answered no")).to_be_visible()
    page.get_by_role("button", name="Yes, it fits").click()
    expect(page.get_by_text("Your answer “yes” is kept.")).to_be_visible()
    assert [rating.fits for rating in store.all()] == [True, True]

    page.get_by_role("button", name="Your answers").click()
    page.get_by_role("textbox", name=re.compile("To delete all")).press_sequentially("nanny")
    page.get_by_role("checkbox", name=re.compile("Answer with the keys")).uncheck()
    page.keyboard.press("y")
    page.get_by_role("button", name="No, it does not").click()
    expect(
        page.get_by_text("3 of 4 judged")
    ).to_be_visible()  # what was typed, and a key put out of use, count for nothing
    page.get_by_role("button", name="No, it does not").click()
    expect(page.get_by_text("You have judged them all")).to_be_visible()
    expect(page.get_by_role("button", name="Yes, it fits")).to_be_disabled()
    expect(page.locator(".filled-text img, .filled-text s")).to_have_count(0)


def test_an_instructor_sees_figures_and_others_do_not(page, places):
    save_stories(places / "ratings", {"base": "One.", "MAGNET": "Two."})
    there = judge.opened("tiny")
    for name in ("anna", "ben"):
        key = judge.begin(there, name, True)
        for item, written in there.items.items():
            judge.answer(there, key, item, written.system == "MAGNET")
    page.open("judge")
    page.get_by_role("button", name="For the instructor").click(timeout=LONG)
    password = page.get_by_role("textbox", name="Password")
    password.fill("wrong")
    password.press("Enter")
    expect(page.get_by_text("that is not the instructor's password")).to_be_visible()
    expect(page.get_by_role("table")).to_have_count(0)
    password.fill("open sesame")
    page.get_by_role("button", name="Show the figures").click()
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="MAGNET"))
    expect(row).to_contain_text("100.0")
    expect(page.get_by_role("row").filter(has_text="anna and ben")).to_contain_text("1.00")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all answers (CSV)").click()
    assert len(download.value.path().read_text(encoding="utf-8-sig").splitlines()) == 1 + 8


def test_without_sentences_the_page_says_how_to_make_some(page):
    page.open("judge")
    expect(page.get_by_text("magnet-lab reproduce table5 --model tiny")).to_be_visible(timeout=LONG)
    expect(page.get_by_role("button", name="Begin")).to_have_count(0)


def test_results_are_looked_through(page, places):
    rows = {
        name: Row({"STS12": Figure(value, value - 5, value + 5, 9)}) for name, value in (("base", 50), ("MAGNET", 60))
    }
    result = Result("table2", "small", "samples", False, 0, "two cores", {}, "abc1234", rows, {"base": 1.0})
    result.save(places / "own/small/table2.json")
    page.open("results")
    claims = page.get_by_role("region", name="Claims, by model")
    expect(claims.get_by_role("row")).to_have_count(4, timeout=LONG)
    expect(claims).to_contain_text("✓ held")
    expect(page.get_by_role("heading", name=re.compile("Table 2"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Table 2"))).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the figures (JSON)").click()
    assert download.value.path().read_bytes() == (places / "own/small/table2.json").read_bytes()

    page.get_by_label("Table or figure").click()
    page.get_by_role("option", name=re.compile("^Table 4 ·")).click()
    expect(page.get_by_role("heading", name=re.compile("Table 4.*not measured with small yet"))).to_be_visible()
    expect(page.get_by_role("rowheader", name="paper: MAGNET")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Table"))).to_have_count(0)

    page.open("results?model=small&table=figure5")
    expect(page.get_by_role("heading", name=re.compile("Figure 5"))).to_be_visible(timeout=LONG)
