"""The main journeys on the pages of the objectives and of continuations."""

import re

import pytest
from chromium import HOSTILE, LONG, expect, pytestmark, text_box  # noqa: F401 - the marks
from gradio_client import Client


def view(page):
    return page.get_by_role("list", name=re.compile("View xᵐ")).get_by_role("button")


def test_a_text_is_walked_through_from_views_to_the_total(visit, theme):
    page = visit("objectives", theme)
    expect(view(page).first).to_have_text("<s>")
    hidden = view(page).filter(has_text="_").first
    expect(hidden).to_have_attribute("title", re.compile("hidden, the mask token stands there"))
    view(page).first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Position 1 reads “One”.")).to_be_visible()

    page.get_by_role("button", name="Ask the model").click()
    table = page.get_by_role("region", name="The model's five likeliest tokens")
    expect(table.get_by_role("row").nth(5)).to_be_visible(timeout=LONG)
    total = page.get_by_text(re.compile("^Total ="))
    expect(total).to_contain_text("Not known yet: SSCL")
    page.get_by_role("button", name="Compare the sentences").click()
    expect(total).to_contain_text("(SSCL)")
    expect(page.get_by_role("img", name=re.compile("How one sentence finds"))).to_be_visible()

    # The sliders ask no model: the numbers change at once.
    before = total.inner_text()
    tau = page.get_by_role("spinbutton", name=re.compile("Temperature τ"))
    tau.fill("1")
    tau.press("Tab")
    expect(page.get_by_text(re.compile(r"nats at τ = 1:"))).to_be_visible()
    expect(total).not_to_have_text(before)
    weight = page.get_by_role("spinbutton", name=re.compile("λ₂"))
    weight.fill("0")
    weight.press("Tab")
    expect(total).to_contain_text("+ 0 · ")

    # Another draw: what was said of the last one is gone.
    page.get_by_role("button", name="Draw spans and hidden tokens again").click()
    expect(table).to_have_text("Nothing yet.")
    expect(total).to_contain_text("Not known yet: MNTP and MSG")


def test_the_views_have_pictures_for_those_who_look(visit):
    page = visit("objectives")
    expect(view(page).first).to_be_visible()
    page.get_by_role("button", name="The views as pictures, and their masks").click()
    expect(page.get_by_role("img", name=re.compile("Mask of x"))).to_have_count(3)


def test_hostile_text_is_walked_through_as_typed(visit):
    page = visit("objectives")
    text_box(page, "Text").fill(HOSTILE)
    tokens = page.get_by_role("list", name="View x", exact=True).locator(".read")
    expect(tokens.filter(has_text="$")).to_have_count(2)
    assert HOSTILE in "".join(tokens.all_text_contents())
    expect(page.locator(".token-strip img, .token-strip s")).to_have_count(0)
    text_box(page, "Text").fill("word " * 200)
    expect(page.get_by_role("alert")).to_have_text(re.compile("at most 64 fit here"))


def test_a_beginning_is_gone_on_with_by_each(visit, theme):
    page = visit("generate", theme)
    page.get_by_role("checkbox", name=re.compile("Mask filling")).check()
    page.get_by_role("button", name="Write on").click()
    for name in ("base model", "MAGNET", "Mask filling"):
        section = page.get_by_role("region", name=name)
        expect(section).to_contain_text(re.compile("Of its \\d+ runs of four words"))
    again = page.get_by_role("region", name="MAGNET").locator("mark.span")
    expect(again.first).to_contain_text("again:")  # tiny says things twice
    page.get_by_role("button", name="The continuations as text").click()
    expect(page.locator(".twin textarea").first).to_have_value(re.compile(r"Rep-4 0\.\d{3}, Rep-Sen"))
    expect(page.get_by_role("heading", name="Figure 5")).to_be_visible()


def test_stop_frees_the_model(visit, app_address):
    page = visit("generate")
    page.get_by_text("Options").click()
    tokens = page.get_by_role("spinbutton", name=re.compile("Tokens at most"))
    tokens.fill("256")
    tokens.press("Tab")
    page.get_by_role("button", name="Write on").click()
    expect(page.get_by_role("region", name="base model")).to_contain_text("Rep-4")
    page.get_by_role("button", name="Stop", exact=True).click()
    Client(app_address, verbose=False, analytics_enabled=False).predict(
        prefix="Tom ran", chosen=["base"], tokens=8, temperature=0, seed=0, api_name="/generate"
    )
    expect(page.get_by_role("region", name="MAGNET")).to_contain_text("Waiting for its turn.")


@pytest.mark.parametrize(
    ("path", "last"), [("objectives", "The total (Equation 5)"), ("generate", "Measured on many beginnings")]
)
def test_the_pages_fit_a_phone(visit, path, last):
    page = visit(path, width=390)
    expect(page.get_by_role("heading", name=last)).to_be_visible()
    if path == "objectives":
        expect(view(page).first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
