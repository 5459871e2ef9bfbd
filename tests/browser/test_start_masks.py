"""The first page, and what the masks' page shows beside its own mask: side by side, and the leak finder."""

import re

import pytest
from chromium import HOSTILE, LONG, expect, pytestmark, refusal, text_box  # noqa: F401 - the marks


def strips(page):
    return page.get_by_role("list", name="Tokens: arrow keys walk, Enter picks")


# --- start


def test_start_shows_an_example_and_leads_on(visit, theme):
    page = visit("", theme)
    expect(page.get_by_text("An example, worked out beforehand by tiny.")).to_be_visible()
    expect(strips(page)).to_have_count(3)
    expect(page.get_by_role("img", name=re.compile("The mask to"))).to_have_count(3)
    page.get_by_role("main").get_by_role("link", name="Infill", exact=True).click()
    expect(page).to_have_url(re.compile("/infill$"))
    expect(page.get_by_role("heading", name="Infill", exact=True)).to_be_visible()


def test_a_token_says_what_it_sees_and_why(visit):
    page = visit("")
    strips(page).nth(0).get_by_role("button").nth(2).click()
    expect(page.get_by_text("Token 2, “sat” (token): it sees itself and the tokens before it.")).to_be_visible()
    strips(page).nth(1).get_by_role("button").nth(2).click()
    expect(page.get_by_text("Token 2, “sat” (token): it sees every token.")).to_be_visible()
    # With the keys alone.
    strips(page).nth(2).get_by_role("button").first.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.get_by_text("(context): a context token sees all context and no span.")).to_be_visible()
    expect(strips(page).nth(2).locator("[aria-pressed=true]")).to_have_count(1)


def test_a_sentence_of_ones_own_is_tried_in_all_three_modes(visit, theme):
    page = visit("", theme)
    text_box(page, "Your sentence").fill(f"Lily saw {HOSTILE} and ran home.")
    text_box(page, "Words to take out, for infilling").fill("and ran")
    page.get_by_role("button", name="Generate, encode and infill").click()
    expect(page.get_by_text("“and ran” was taken out. The model wrote")).to_be_visible()
    expect(page.locator("mark.generated")).to_have_count(2)
    expect(page.get_by_role("region", name="Other sentences, nearest first").get_by_role("row")).to_have_count(5)
    expect(page.get_by_role("img", name=re.compile("The mask to"))).to_have_count(3)
    expect(page.locator(".filled-text img, .filled-text s, .token-strip img")).to_have_count(0)
    text_box(page, "Words to take out, for infilling").fill("elephant")
    page.get_by_role("button", name="Generate, encode and infill").click()
    expect(refusal(page, "“elephant” is not in the sentence")).to_be_visible()


def test_the_tour_opens_the_pages(visit):
    page = visit("")
    tour = page.get_by_role("list", name="Guided tour")
    expect(tour.get_by_role("listitem")).to_have_count(11)
    tour.get_by_role("link", name="One wrong cell").click()
    expect(page.get_by_role("heading", name="Leak finder")).to_be_visible()


# --- masks


def cell(page, row, column):
    return page.get_by_role("button", name=re.compile(f"^row {row} .*, column {column} .*: closed"))


def test_a_cell_made_visible_leaks(visit, theme):
    page = visit("masks", theme)
    cell(page, 4, 7).click()
    expect(text_box(page, "Cell to make visible")).to_have_value("4, 7")
    expect(
        page.get_by_text("A leak after 2 layers: 6 “He” is to predict 7 “lost”, and can read it off.")
    ).to_be_visible()
    table = page.get_by_role("region", name="What leaks where")
    expect(table.get_by_role("row").nth(1)).to_have_text("1 layer1none")
    expect(page.locator(".mask-grid td .cell.answer")).to_have_count(1)
    page.get_by_role("button", name="Close the cell again").click()
    expect(page.locator(".mask-grid td .cell.answer")).to_have_count(0)


def test_a_cell_is_opened_with_the_keys_alone(visit):
    page = visit("masks")
    cell(page, 0, 6).focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    expect(cell(page, 1, 7)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Now row 1 “went” may look at column 7 “lost”.")).to_be_visible()
    field = text_box(page, "Cell to make visible")
    field.fill("1, 1")
    expect(page.get_by_role("alert")).to_have_text(re.compile("row 1 may look at column 1 already"))
    field.fill("<b>x</b>")
    expect(page.get_by_role("alert")).to_have_text(re.compile("the cell '<b>x</b>' cannot be read"))


def test_masks_of_the_relatives_stand_side_by_side(visit):
    page = visit("masks")
    page.get_by_role("button", name="Side by side").click()
    expect(page.get_by_role("img", name=re.compile("^The mask of"))).to_have_count(3)
    expect(page.get_by_role("img", name="The mask of Prefix LM, prefix of 6")).to_be_visible()
    page.get_by_role("radio", name="UniLMv2", exact=True).check()
    tokens = page.get_by_role("list", name=re.compile("Tokens of the text")).get_by_role("button")
    expect(tokens).to_have_count(16 + 2 * 5)
    tokens.nth(16).click()
    expect(page.get_by_text("Token 16, “[P]” (pseudo mask for “He”, step 1)")).to_be_visible()


@pytest.mark.parametrize("path", ["", "masks"])
def test_the_pages_fit_a_phone(visit, path):
    page = visit(path, width=390)
    expect(strips(page).first if not path else page.locator(".mask-grid table")).to_be_visible()
    expect(page.get_by_role("img").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
