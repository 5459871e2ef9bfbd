"""The main journeys on the pages of training and of the relatives."""

import re
import tempfile
import time
from pathlib import Path

import pytest
from chromium import HOSTILE, LONG, expect, pytestmark, refusal, text_box  # noqa: F401 - the marks

from magnet_lab.app import limits


def folders():
    return set(Path(tempfile.gettempdir()).glob("magnet-lab-training-*"))


def wait_until_gone(before):
    closed = time.monotonic()
    while folders() != before and time.monotonic() - closed < limits.TRAINING_ALONE_SECONDS + 15:
        time.sleep(0.1)
    assert folders() == before


@pytest.mark.slow
def test_training_is_watched_stopped_gone_on_with_and_taken_home(visit, theme):
    before = folders()
    page = visit("train", theme)
    steps = page.get_by_role("spinbutton", name=re.compile("Steps"))
    steps.fill("3")
    steps.press("Tab")
    page.get_by_role("button", name="Train", exact=True).click()
    samples = page.get_by_role("region", name=re.compile("step"))
    expect(samples.first.locator("mark.generated")).to_have_count(1, timeout=4 * LONG)
    page.get_by_role("button", name="Stop", exact=True).click()
    link = page.get_by_role("link", name=re.compile("Download the adapter after"))
    expect(link).to_be_visible(timeout=2 * LONG)
    expect(page.get_by_role("img", name=re.compile("Losses by step"))).to_be_visible()
    page.get_by_role("button", name="Go on", exact=True).click()
    expect(page.get_by_text("All 3 steps are made.")).to_be_visible(timeout=4 * LONG)
    with page.expect_download() as download:
        link.click()
    assert download.value.suggested_filename == "magnet-tiny-3-steps.zip"
    page.get_by_role("button", name="Losses and samples as text").click()
    expect(page.locator(".twin textarea").first).to_have_value(re.compile(r"MNTP.*After step 3\n", re.DOTALL))
    assert len(folders() - before) == 1
    page.close()
    wait_until_gone(before)


@pytest.mark.slow
def test_a_training_goes_on_when_its_page_is_loaded_anew(visit):
    before = folders()
    page = visit("train")
    steps = page.get_by_role("spinbutton", name=re.compile("Steps"))
    steps.fill("30")
    steps.press("Tab")
    story = page.get_by_role("textbox", name=re.compile("^Story to fill"))
    story.fill("Lily had [blank:3].")
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.get_by_text(re.compile(r"Step \d+ of 30;"))).to_be_visible(timeout=4 * LONG)
    page.reload()
    expect(page.get_by_text(re.compile(r"Step \d+ of 30;"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Losses by step"))).to_be_visible()
    expect(steps).to_have_value("30")
    expect(story).to_have_value("Lily had [blank:3].")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_role("link", name=re.compile("Download the adapter after"))).to_be_visible(timeout=2 * LONG)
    other = visit("train")  # another tab is another visitor
    expect(other.locator("footer")).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name=re.compile("Download the adapter after"))).to_be_visible()
    expect(page.get_by_role("button", name="Go on", exact=True)).to_be_visible()
    expect(other.get_by_role("link", name=re.compile("Download the adapter after"))).to_have_count(0)
    page.close()
    wait_until_gone(before)


def test_what_cannot_be_trained_is_said_beside_it(visit):
    page = visit("train")
    page.get_by_role("textbox", name=re.compile("^Story to fill")).fill(f"{HOSTILE} without")
    page.get_by_role("button", name="Train", exact=True).click()
    expect(refusal(page, "the text has no blank")).to_be_visible()


def test_a_prefix_is_masked_and_gone_on_with(visit, theme):
    page = visit("relatives", theme)
    expect(page.get_by_text(re.compile("21 from left to right, and 24 with a prefix of 3"))).to_be_visible()
    expect(page.get_by_text(re.compile("“home” \\(3\\) of 4–5"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("prefix mask"))).to_have_count(2)
    layers = page.get_by_role("spinbutton", name=re.compile("layers"))
    layers.fill("1")
    layers.press("Tab")
    expect(page.get_by_text(re.compile("no word of the target hears"))).to_be_visible()
    page.get_by_role("button", name="Go on", exact=True).click()
    expect(page.get_by_role("region", name="Under the sound mask").locator("mark.generated")).to_have_count(1)
    text_box(page, "Text").fill("one")
    expect(page.get_by_role("alert").first).to_contain_text("give 2 to 16")


def test_a_factorization_is_stepped_through(visit):
    page = visit("relatives")
    page.get_by_role("tab", name="UniLMv2").click()
    row = page.get_by_role("list", name=re.compile("The row of one pass, by step"))
    expect(row.get_by_role("listitem").filter(has_text="predicted here").first).to_be_visible()
    expect(page.get_by_text(re.compile("Step 1 of"))).to_be_visible()
    count = row.get_by_role("listitem").count()
    page.get_by_role("button", name="Next step").click()
    expect(page.get_by_text(re.compile("Step 2 of"))).to_be_visible()
    assert row.get_by_role("listitem").count() > count
    page.get_by_role("radio", name="AE").check()
    expect(page.get_by_text(re.compile("All at once:"))).to_be_visible()
    text_box(page, "Sentence").fill(HOSTILE[:40])
    expect(row.locator("img, s")).to_have_count(0)


def test_a_sentence_goes_to_a_vector_and_back(visit):
    page = visit("relatives")
    page.get_by_role("tab", name="One vector").click()
    expect(page.get_by_text(re.compile("come back word for word"))).to_be_visible()
    page.get_by_role("button", name="Encode and restore").click()
    table = page.get_by_role("region", name="What came back, and what lies between")
    expect(table.get_by_role("row").nth(1)).to_contain_text("he was late for work.")
    expect(table.get_by_role("row").last).to_contain_text("she found the dog in the park.")


@pytest.mark.parametrize("path", ["train", "relatives"])
def test_the_pages_fit_a_phone(visit, path):
    page = visit(path, width=390)
    expect(page.get_by_role("contentinfo")).to_be_visible()
    if path == "relatives":
        expect(page.get_by_role("tab", name="One vector")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
