"""The pages in a real browser: in both themes, with a mouse, with the keys alone, with hostile text."""

import re

import pytest
from chromium import HOSTILE, LONG, expect, pytestmark, refusal, text_box  # noqa: F401 - the marks
from gradio_client import Client

from magnet_lab.app.build import PAGES

TOKENS = [
    "Tom",
    " went",
    " to",
    " the",
    " park",
    ".",
    " He",
    " lost",
    " his",
    " ball",
    ".",
    " He",
    " was",
    " very",
    " sad",
    ".",
]


def strip(page):
    return page.get_by_role("list", name=re.compile("Tokens of the text")).get_by_role("button")


@pytest.mark.parametrize("path", ["", *(page.PATH for page in PAGES)])
def test_pages_fit_a_phone(visit, path):
    page = visit(path, width=390)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("contentinfo")).to_be_visible()  # the foot of the page: all above it is there
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


# --- masks


def test_masks_explain_a_token_that_is_clicked(visit, theme):
    page = visit("masks", theme)
    expect(strip(page)).to_have_text(TOKENS)
    strip(page).nth(1).click()
    expect(page.get_by_text("Token 1, “went” (context): a context token sees all context and no span.")).to_be_visible()
    expect(page.get_by_text("It sees 0–5, 11–15 (11 of 16).")).to_be_visible()
    expect(strip(page).nth(1)).to_have_attribute("aria-pressed", "true")


def test_masks_change_with_the_mode(visit):
    page = visit("masks")
    strip(page).nth(3).click()
    for mode, seen in [("causal", "It sees 0–3 (4 of 16)."), ("bidirectional", "It sees 0–15 (16 of 16).")]:
        page.get_by_role("radio", name=mode, exact=True).check()
        expect(page.get_by_text(seen)).to_be_visible()
    page.get_by_role("radio", name="prefix", exact=True).check()
    expect(page.get_by_text("It sees 0–4 (5 of 16).")).to_be_visible()
    expect(text_box(page, "Spans, from token to token")).to_be_hidden()


def test_spans_are_marked_by_clicks(visit):
    page = visit("masks")
    spans = text_box(page, "Spans, from token to token")
    page.get_by_role("radio", name=re.compile("begins or ends a span")).check()
    strip(page).nth(8).click()
    expect(spans).to_have_value("")
    strip(page).nth(4).click()
    expect(spans).to_have_value("4-")
    strip(page).nth(2).click()
    expect(spans).to_have_value("2-4")
    expect(strip(page).nth(3)).to_have_attribute("title", "3 · span 1 · sees 0–3, 5–15")
    expect(page.locator(".token-strip .span")).to_have_count(3)


def test_masks_are_used_with_the_keys_alone(visit):
    page = visit("masks")
    strip(page).nth(8).focus()
    for key, index in [
        ("ArrowRight", 9),
        ("ArrowLeft", 8),
        ("ArrowLeft", 7),
        ("Home", 0),
        ("End", 15),
        ("ArrowLeft", 14),
    ]:
        page.keyboard.press(key)
        expect(strip(page).nth(index)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Token 14, “sad”")).to_be_visible()
    expect(strip(page).nth(14)).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(page.get_by_text("Token 15, “.”")).to_be_visible()
    # One stop for the tab key, not one for every token.
    assert page.locator(".token-strip button[tabindex='0']").count() == 1

    mark = page.get_by_role("button", name="Begin or end a span at the token looked at")
    mark.focus()
    page.keyboard.press("Enter")
    expect(text_box(page, "Spans, from token to token")).to_have_value("6-10, 15-")
    page.get_by_role("button", name="Remove all spans").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".token-strip .span")).to_have_count(0)


def test_a_broken_rule_leaks_after_two_layers(visit):
    page = visit("masks")
    strip(page).nth(7).click()
    page.get_by_role("checkbox", name=re.compile("Break the rule")).check()
    layers = page.get_by_role("spinbutton", name=re.compile("After how many layers"))
    layers.fill("2")
    layers.press("Tab")
    expect(page.get_by_text("A leak: 8–10 is what it is still to predict.")).to_be_visible()
    page.get_by_role("checkbox", name=re.compile("Break the rule")).uncheck()
    expect(page.get_by_text("After 2 layers still the same")).to_be_visible()


def test_masks_have_a_text_twin(visit):
    page = visit("masks")
    page.get_by_role("button", name="The mask as text").click()
    expect(page.locator(".twin textarea").first).to_have_value(re.compile(r"rows: query \(who looks\)"))


def test_hostile_text_is_drawn_as_typed(visit, theme):
    page = visit("masks", theme)
    text_box(page, "Text").fill(HOSTILE)
    expect(page.get_by_role("list", name=re.compile("Tokens"))).to_have_text(HOSTILE, use_inner_text=False)
    expect(page.locator(".token-strip img, .token-strip s")).to_have_count(0)


def test_texts_that_cannot_be_drawn_get_a_sentence_beside_them(visit):
    page = visit("masks")
    problem = page.get_by_role("alert")
    for text, sentence in [("", "the text is empty"), ("word " * 10_000, "49,999 characters|50,000 characters")]:
        text_box(page, "Text").fill(text)
        expect(problem).to_have_text(re.compile(sentence))
    text_box(page, "Text").fill("All is well again, here and there and all around.")
    expect(problem).to_be_hidden()


# --- infill


def fill_story(page, story):
    page.get_by_role("textbox", name=re.compile("^Story")).fill(story)
    page.get_by_role("button", name="Fill the blanks", exact=True).click()


def both_sides(page):
    return page.get_by_role("region", name="With both sides in view")


def left_only(page):
    return page.get_by_role("region", name="With the left side only in view")


def test_a_story_is_filled_in_two_ways(visit, theme):
    page = visit("infill", theme)
    fill_story(page, "Tom went to the park. [blank:5] He was very sad.")
    for answer in (both_sides(page), left_only(page)):
        expect(answer.locator("mark.generated")).to_have_count(1, timeout=LONG)
        expect(answer).to_contain_text("He was very sad.")
    expect(page.get_by_role("row").filter(has=page.get_by_role("gridcell", name="1", exact=True)).first).to_be_visible()


def test_an_example_works_at_once(visit):
    page = visit("infill")
    page.get_by_role("button", name=re.compile("She ate")).click()
    expect(both_sides(page).locator("mark.generated")).to_have_count(2, timeout=LONG)
    expect(left_only(page).locator("mark.generated")).to_have_count(2, timeout=LONG)


def test_stop_stops(visit, app_address):
    page = visit("infill")
    fill_story(page, "Tom went to the park. [blank:64] Then [blank:64]. Then [blank:64]. Then [blank:64]. He was sad.")
    expect(both_sides(page).locator("mark.generated")).to_have_count(4, timeout=LONG)
    page.get_by_role("button", name="Stop", exact=True).click()
    # The model is free for the next visitor, who would else have waited for all of the first one's answer.
    Client(app_address, verbose=False, analytics_enabled=False).predict(
        story="She ate [blank:1] for lunch.", api_name="/infill"
    )
    expect(left_only(page)).to_contain_text("Nothing yet.")


def test_hostile_stories_are_shown_as_typed(visit):
    page = visit("infill")
    fill_story(page, f"{HOSTILE} [blank:2]. {HOSTILE}")
    for answer in (both_sides(page), left_only(page)):
        expect(answer.locator("mark.generated")).to_have_count(1, timeout=LONG)
        expect(answer).to_contain_text(f"{HOSTILE} [")
        expect(answer.locator("img, s")).to_have_count(0)


@pytest.mark.parametrize(
    ("story", "sentence"),
    [
        ("", "the story is empty"),
        ("no blank", "the text has no blank"),
        ("word " * 10_000 + "[blank]", "50,007 characters"),
        ("a [blank:<img src=x onerror=alert(1)>] b", "[blank:<img src=x onerror=alert(1)>]: a length is written"),
        ("a " * 1_100 + "[blank]", "the model can read 1,024"),
    ],
    ids=["empty", "no blank", "10,000 words", "hostile", "too long"],
)
def test_stories_that_cannot_be_filled_get_a_sentence_beside_them(visit, story, sentence):
    page = visit("infill")
    expect(page.get_by_text("Model: tiny")).to_be_visible(timeout=LONG)
    fill_story(page, story)
    expect(page.get_by_text(sentence)).to_be_visible()
    expect(both_sides(page)).to_contain_text("Nothing yet.")


def test_an_answer_of_ones_own_is_scored(visit, theme):
    page = visit("infill", theme)
    text_box(page, "Your answer").fill("He lost <b>his</b> ball.")
    page.get_by_role("button", name="Score my answer").click()
    expect(page.get_by_text("times likelier on average")).to_be_visible(timeout=LONG)
    text_box(page, "Your answer").fill("one\ntwo")
    page.get_by_role("button", name="Score my answer").click()
    expect(page.get_by_text("the story has 1 blank(s) and your answer 2 line(s)")).to_be_visible()


def test_a_story_is_filled_by_every_system(visit, theme):
    page = visit("infill", theme)
    # Before anybody was asked: an example, filled beforehand.
    expect(page.get_by_text("filled beforehand by tiny")).to_be_visible(timeout=LONG)
    expect(page.get_by_role("region", name="Five-shot").locator("mark.shade").first).to_be_visible()
    page.get_by_role("textbox", name=re.compile("^Story")).fill(f"{HOSTILE} [blank:3] She ate [blank:2].")
    page.get_by_role("checkbox", name="Five-shot").uncheck()
    page.get_by_role("button", name="Fill by each", exact=True).click()
    refused = page.get_by_role("region", name="Zero-shot, line-by-line")
    expect(refused).to_contain_text("the text has 2 blanks", timeout=LONG)
    filled = page.get_by_role("region", name="MAGNET", exact=True)  # and not another system under its mask
    expect(filled.locator("mark.shade")).to_have_count(5, timeout=LONG)
    expect(filled).to_contain_text(HOSTILE)
    expect(filled.locator("img, s")).to_have_count(0)
    page.get_by_role("button", name="All of them as text").click()
    expect(page.locator(".twin textarea").last).to_have_value(re.compile(r"MAGNET: 5 tokens, perplexity"))


# --- embeddings


def test_sentences_are_compared_by_each_system(visit, theme):
    page = visit("embeddings", theme)
    expect(page.get_by_text("compared beforehand by tiny")).to_be_visible(timeout=LONG)
    text_box(page, "Sentences, one a line").fill(f"A dog ran.\n{HOSTILE}\nA cat slept.")
    page.get_by_role("button", name="Compare the sentences").click()
    expect(page.get_by_text("compared beforehand")).to_be_hidden(timeout=LONG)
    expect(page.get_by_role("img", name=re.compile("similarity of each two sentences"))).to_have_count(3, timeout=LONG)
    expect(page.get_by_role("img", name=re.compile("^MAGNET: sentences on a plane"))).to_be_visible()
    nearest = page.get_by_role("region", name=re.compile("The nearest other sentence"))
    expect(nearest.get_by_role("row").nth(2)).to_contain_text(HOSTILE)
    page.get_by_role("button", name="The pictures as text").first.click()
    expect(page.locator(".twin textarea").first).to_have_value(re.compile(r"nearest: .*A cat slept\."))


def test_sentences_come_from_a_file(visit, tmp_path):
    page = visit("embeddings")
    file = tmp_path / "mine.csv"
    file.write_text(f'id,sentence\n1,"{HOSTILE}"\n2,A cat slept.\n')
    chooser = page.locator("input[type=file]").first
    chooser.set_input_files(file)
    expect(text_box(page, "Sentences, one a line")).to_have_value(f"{HOSTILE}\nA cat slept.", timeout=LONG)
    other = tmp_path / "other.txt"
    other.write_bytes("Grüße\nan alle".encode("latin-1"))
    page.locator("input[type=file]").first.set_input_files(other)
    expect(page.get_by_role("alert")).to_have_text(re.compile("no text in UTF-8"), timeout=LONG)


def test_one_sentence_alone_gets_a_sentence(visit):
    page = visit("embeddings")
    expect(page.get_by_text("Model: tiny")).to_be_visible(timeout=LONG)
    text_box(page, "Sentences, one a line").fill("alone")
    page.get_by_role("button", name="Compare the sentences").click()
    expect(refusal(page, "give 2 to 24 to compare")).to_be_visible()


def test_words_are_compared_in_two_sentences(visit, theme):
    page = visit("embeddings", theme)
    page.get_by_role("tab", name="Words").click()
    text_box(page, "Second sentence").fill("The <b>bank</b> lent money to the river.")
    page.get_by_role("button", name="Compare the words").click()
    expect(page.get_by_text(re.compile("^MAGNET: most alike.*In both sentences:"))).to_be_visible(timeout=LONG)
    expect(page.get_by_text(re.compile("^Base model: most alike.*“river” is"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("similarity of each two words"))).to_have_count(3)
