"""Links to a page as it is filled in: made, followed, and nothing happens that a link should not do."""

import re
import urllib.parse

from chromium import HOSTILE, LONG, expect, pytestmark, text_box  # noqa: F401 - the marks


def number(page, name):
    return page.get_by_role("spinbutton", name=re.compile(name))


def follow(visit, app_address, path, **asked):
    page = visit()
    page.goto(f"{app_address}/{path}?{urllib.parse.urlencode(asked)}")
    expect(page.locator("footer")).to_be_visible(timeout=LONG)
    return page


def test_a_link_is_made_and_followed(visit, app_address):
    page = visit("generate")
    text_box(page, "Beginning").fill("Tom & Lily + “two” dogs?")
    page.get_by_role("button", name="Options").click()
    number(page, "Tokens at most").fill("64")
    number(page, "Tokens at most").press("Tab")
    page.get_by_role("button", name="Make a link to this page as it is").click()
    expect(page.get_by_text("The link stands in your browser's address line")).to_be_visible(timeout=LONG)
    asked = urllib.parse.parse_qs(urllib.parse.urlsplit(page.url).query)
    assert asked == {"prefix": ["Tom & Lily + “two” dogs?"], "tokens": ["64"]}  # what stands as ever is left out

    other = visit()
    other.goto(page.url)
    expect(text_box(other, "Beginning")).to_have_value("Tom & Lily + “two” dogs?", timeout=LONG)
    other.get_by_role("button", name="Options").click()
    expect(number(other, "Tokens at most")).to_have_value("64")


def test_a_link_draws_what_it_names(visit, app_address):
    page = follow(visit, app_address, "objectives", text="Lily ran home to her big red house.", seed=3, tau="0.5")
    view = page.get_by_role("list", name=re.compile("View xᵐ"))
    expect(view).to_contain_text("home", timeout=LONG)
    expect(number(page, "Seed")).to_have_value("3")
    expect(number(page, "Temperature τ")).to_have_value("0.5")


def test_a_hostile_link_is_text(visit, app_address):
    page = follow(visit, app_address, "objectives", text=HOSTILE, seed="1e99", tau="nan", adapter="<b>", number="x")
    expect(text_box(page, "Text")).to_have_value(HOSTILE, timeout=LONG)
    expect(number(page, "Seed")).to_have_value("0")
    expect(number(page, "Temperature τ")).to_have_value("0.1")
    expect(page.get_by_role("radio", name="MAGNET")).to_be_checked()


def test_results_have_links_too(visit):
    page = visit("results")
    expect(page.get_by_role("heading", level=3).first).to_be_visible(timeout=LONG)
    page.get_by_role("button", name="Make a link to this page as it is").click()
    expect(page).to_have_url(re.compile(r"results\?model=\w+&table=\w+"), timeout=LONG)
