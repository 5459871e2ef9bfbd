"""How blanks are written and read."""

import pytest
from decoders import sentencepiece_tokenizer

from magnet_lab.blanks import WHOLE_SENTENCE, WITHIN_SENTENCE, parse, template

STORY = "John was at the gym. [blank] He couldn't get the barbell off his chest."


def test_segments_and_lengths():
    segments, blanks = parse("She ate [blank:3] for [blank:1-4], then [blank: 8 - 16 ] left.")
    assert segments == ["She ate", " for", ", then", " left."]
    assert [(blank.shortest, blank.longest) for blank in blanks] == [(3, 3), (1, 4), (8, 16)]
    assert [blank.after_space for blank in blanks] == [True, True, True]
    assert [blank.before_space for blank in blanks] == [True, False, True]
    assert [blank.before_mark for blank in blanks] == [False, True, False]


@pytest.mark.parametrize(
    "text, is_sentence",
    [
        (STORY, True),
        ("[blank] He left.", True),
        ("He left. [blank]", True),
        ('"Go!" [blank] "Where?"', True),
        ("She ate [blank] for lunch.", False),
        ("She ate [blank].", False),
        ("He left. [blank] and came back.", False),
        ("un[blank]able", False),
    ],
)
def test_a_blank_for_a_sentence_is_known_by_what_stands_around_it(text, is_sentence):
    _, (blank,) = parse(text)
    assert blank.is_sentence is is_sentence
    assert (blank.shortest, blank.longest) == (WHOLE_SENTENCE if is_sentence else WITHIN_SENTENCE)


@pytest.mark.parametrize(
    "text, fill, fits",
    [
        (STORY, " He lifted it.", True),
        (STORY, ' He said, "No!"', True),
        (STORY, " He lifted the", False),
        ("She ate [blank].", " an apple", True),
        ("She ate [blank].", " an apple.", False),
        ("She ate [blank] for lunch.", " an apple,", True),
    ],
)
def test_what_fits(text, fill, fits):
    _, (blank,) = parse(text)
    assert blank.fits(fill) is fits


def test_escaped_blank_is_a_word():
    segments, blanks = parse(r"Write \[blank] or \[blank:3] for [blank].")
    assert segments == ["Write [blank] or [blank:3] for", "."]
    assert len(blanks) == 1


@pytest.mark.parametrize(
    "text, message",
    [
        ("nothing missing", "has no blank"),
        ("", "has no blank"),
        (r"\[blank]", "has no blank"),
        ("[blank", "has no blank"),
        ("[blank]", "nothing but blanks"),
        ("one [blank] [blank] two", "blanks 1 and 2 touch"),
        ("a [blank:0]", "blank 1, .*at least 1"),
        ("a [blank] b [blank:9-3]", "blank 2, .*short to long"),
        ("a [blank:many]", r"blank 1, \[blank:many\].*is written"),
        ("a [blank:]", "is written"),
        ("a [blank:-3]", "is written"),
        ("a [blank:99999999999]", "is written"),
    ],
)
def test_errors_name_the_blank(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_tokens_are_those_of_the_whole_text(tiny_lab):
    """Around a blank between words nothing is tokenized differently from the text without the blank."""
    tokenizer = tiny_lab.tokenizer
    plan = template(tokenizer, STORY)
    assert list(plan.ids) == tokenizer(STORY.replace(" [blank]", ""))["input_ids"]
    assert tokenizer.decode(plan.ids[: plan.anchors[0] + 1]).endswith("gym.")


def test_sentencepiece_puts_no_space_into_the_middle():
    tokenizer = sentencepiece_tokenizer(["John was at the gym. He could not get the barbell off.", "un able"])
    plan = template(tokenizer, "John was at the gym. [blank] He could not[blank]get off.")
    first, _ = plan.anchors
    assert tokenizer.decode(plan.ids[: first + 1], skip_special_tokens=True) == "John was at the gym."
    assert tokenizer.convert_ids_to_tokens(plan.ids[first + 1])[0] == "▁"
    assert tokenizer.decode(plan.ids, skip_special_tokens=True) == "John was at the gym. He could notget off."


def test_a_text_that_opens_with_a_blank_gets_an_opening_token(tiny_lab):
    plan = template(tiny_lab.tokenizer, "[blank] He left.")
    assert plan.anchors == (0,)
    assert plan.ids[0] == tiny_lab.tokenizer.bos_token_id


def test_filling(tiny_lab):
    plan = template(tiny_lab.tokenizer, "She ate [blank:2] for [blank:1].")
    assert plan.fill([" an apple", " lunch"]) == "She ate an apple for lunch."
    ids = tiny_lab.tokenizer(" an apple", add_special_tokens=False)["input_ids"]
    rest = plan.with_first(" an apple", ids)
    assert rest.fill([" lunch"]) == "She ate an apple for lunch."
    assert rest == template(tiny_lab.tokenizer, "She ate an apple for [blank:1].")


def test_a_sentence_that_says_two_words_twice_fits_less():
    blank = parse("He ran. [blank] She sat.")[1][0]
    assert blank.fits("They bought a balloon and a kite.")
    assert not blank.fits("They bought a balloon, a balloon, and a balloon.")
    assert not blank.fits("She was very very glad.")
    assert not blank.fits("They bought a balloon and")
    assert parse("He ate [blank] today.")[1][0].fits("a cake, a cake")  # a few words are no sentence
