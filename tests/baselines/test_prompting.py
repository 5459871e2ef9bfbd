"""The prompts against the appendix as it is printed, and the answers against cuts made by hand."""

import pytest
from decoders import random_decoder

from magnet_lab import Magnet
from magnet_lab.baselines import FiveShot, ZeroShot, prompting
from magnet_lab.data.rows import TEXTS
from magnet_lab.infilling import Span

# Appendix B.1, character for character, but for what sets it: italics' stars, and the spaces and backslashes that
# Markdown wants.
BLANK_INFILLING = """\
Generate the missing line represented by _ in the given text: <text>.
Generate a single sentence.
The missing line is:"""
CONTEXTUAL = """\
Fill in the missing sentence between "<past-context>" and "<future-context>". Generate only one sentence. The missing \
sentence is:"""
PREFIX_SUFFIX = """\
Given the prefix and the suffix, generate the middle sentence.
Prefix: <past-context>.
Suffix: <future-context>.
Generate only one sentence.
Middle: ."""
LINE_BY_LINE = """\
You have a five-sentence story with some missing text.
Here is the context for each line, with the missing line indicated:
Line 1: <line-1>
Line 2: [Missing Line]
Line 3: <line-3>
Line 4: <line-4>
Line 5: <line-5>

Please generate the missing line of the story. Please generate only the missing line and nothing else.
The missing line is: Line 2:"""

LINES = [
    "John was at the gym.",
    "He was doing bench presses.",
    "He couldn't get the barbell off his chest.",
    "He was too embarrassed to call for help.",
    "John suffocated as the weights crushed his chest.",
]
STORY = " ".join([LINES[0], "[blank]", *LINES[2:]])
PAST, FUTURE = LINES[0], " ".join(LINES[2:])


def printed(template: str, values: dict[str, str]) -> str:
    """A template with its placeholders replaced. A full stop printed after one is the sentence's own."""
    for placeholder, value in values.items():
        template = template.replace(f"{placeholder}.", value).replace(placeholder, value)
    return template


EXPECTED = {
    "blank infilling": printed(BLANK_INFILLING, {"<text>": f"{PAST} _ {FUTURE}"}),
    "contextual": printed(CONTEXTUAL, {"<past-context>": PAST, "<future-context>": FUTURE}),
    "prefix-suffix": printed(PREFIX_SUFFIX, {"<past-context>": PAST, "<future-context>": FUTURE}),
    "line-by-line": printed(LINE_BY_LINE, {f"<line-{number}>": line for number, line in enumerate(LINES, start=1)}),
}


@pytest.fixture(scope="module")
def long_lab(tiny_lab):
    """A random model with the tiny one's tokenizer, long enough for five solved examples."""
    model = random_decoder(vocab_size=len(tiny_lab.tokenizer), max_position_embeddings=4096)
    return Magnet(model, tiny_lab.tokenizer)


@pytest.mark.parametrize("prompt", EXPECTED)
def test_the_prompts_are_those_of_the_appendix(tiny_lab, prompt):
    assert ZeroShot(tiny_lab, prompt).prompt(STORY) == EXPECTED[prompt]


def test_every_prompt_of_the_appendix_is_there():
    assert prompting.PROMPTS.keys() == EXPECTED.keys()


@pytest.mark.parametrize("missing, count", [(1, 5), (4, 5), (5, 5), (2, 3), (7, 12)])
def test_line_by_line_counts_the_storys_own_lines(tiny_lab, missing, count):
    lines = [f"Sentence {number} is here." for number in range(1, count + 1)]
    text = " ".join("[blank]" if number == missing else line for number, line in enumerate(lines, start=1))
    prompt = ZeroShot(tiny_lab).prompt(text).splitlines()
    word = {3: "three", 5: "five", 12: "12"}[count]
    assert prompt[0] == f"You have a {word}-sentence story with some missing text."
    lines[missing - 1] = "[Missing Line]"
    assert prompt[2 : 2 + count] == [f"Line {number}: {line}" for number, line in enumerate(lines, start=1)]
    assert prompt[-1] == f"The missing line is: Line {missing}:"


def test_lines_are_sentences():
    text = 'Dr. Lee met Mr. Fox... and Mrs. Fox. "Who are you?" he asked. She paid 3.50 for it! (It was late.) "No."'
    assert prompting.SENTENCE.findall(text) == [
        "Dr. Lee met Mr. Fox... and Mrs. Fox.",
        '"Who are you?" he asked.',
        "She paid 3.50 for it!",
        "(It was late.)",
        '"No."',
    ]


def test_five_solved_examples_stand_before_the_question(long_lab):
    """Section B.2: five solved ones in the same format, then the sixth."""
    prompt = FiveShot(long_lab).prompt(STORY)
    opening = "You have a five-sentence story with some missing text."
    stories = [opening + part for part in prompt.split(opening)[1:]]
    assert len(stories) == 6
    assert stories[5] == EXPECTED["line-by-line"]
    for story, (text, sentence) in zip(stories, prompting.EXAMPLES, strict=False):
        before = text.split("[blank]")[0]
        number = before.count(". ") + 1
        assert story.endswith(f"The missing line is: Line {number}: {sentence}\n\n")
        assert f"Line {number}: [Missing Line]\n" in story
        assert story.count("Line ") == 6  # five lines, and the one asked for
    contextual = FiveShot(long_lab, "contextual").prompt(STORY)
    assert contextual.count("The missing sentence is:") == 6 and contextual.endswith(EXPECTED["contextual"])


def test_examples_are_stories_of_training_and_of_one_middle_sentence_each():
    trained_on = (TEXTS / "stories.txt").read_text(encoding="utf-8").splitlines()
    for text, sentence in prompting.EXAMPLES:
        assert text.replace("[blank]", sentence) in trained_on
        assert not text.startswith("[blank]") and not text.endswith("[blank]")
    assert len(prompting.EXAMPLES) == 5


def test_a_model_too_short_for_the_examples_gets_the_last_ones(tiny_lab):
    with pytest.warns(UserWarning, match="1,024 tokens: only 4 of the 5 solved examples"):
        prompt = FiveShot(tiny_lab).prompt(STORY)
    assert "Priya" not in prompt and "On Career Day" in prompt and "Hildy" in prompt
    assert prompt.endswith(EXPECTED["line-by-line"])
    with pytest.raises(ValueError, match=r"the zero-shot prompt for this text and its answer have [\d,]+ tokens"):
        ZeroShot(tiny_lab).prompt("Tom ran. " * 400 + "[blank] He was sad.")


@pytest.mark.parametrize(
    "written, expected",
    [
        (" He was doing bench presses.\nLine 3: He couldn't", "He was doing bench presses."),
        (" He was doing bench presses. He fell. He", "He was doing bench presses."),
        ("\n\nHe fell", "He fell"),
        (" He fell\nand got up.", "He fell"),
        (" Line 2: He fell.", "He fell."),
        ("\nLine 12:  He fell!\n", "He fell!"),
        (' "He fell."\n\nThe next', "He fell."),
        # As Table 9 prints it:
        ('" She watched as it soared."t = 0 while t < 10: t += 0.', "She watched as it soared."),
        (' "Help!" he cried. Nobody came.', '"Help!" he cried.'),
        (' He said, "Go." Then he went.', 'He said, "Go."'),
        (" He met Mr. Fox. They talked.", "He met Mr. Fox."),
        (" He waited... and waited. Then", "He waited... and waited."),
        (" It cost 3.50 there. He", "It cost 3.50 there."),
        ("Line 2 was missing.", "Line 2 was missing."),
        (" \n \n", ""),
        ("", ""),
    ],
)
def test_the_answer_is_the_first_sentence(written, expected):
    start, stop = prompting.answer(written)
    assert written[start:stop].strip() == expected


@pytest.mark.parametrize(
    "written, whole",
    [
        (" He fell", False),
        (" He fell.", False),  # the sentence may go on: "3." and "50", or a closing quotation mark
        (" He fell. ", False),
        (" He fell. She", True),
        (" He fell\nShe", True),
        (' "Help!"', False),
        (' "Help!" he', False),
        (' "Help!" He', True),
        ("\n\n", False),
        (" Line 2:", False),
    ],
)
def test_an_answer_is_whole_when_something_follows(written, whole):
    assert prompting.is_whole(written) == whole


def test_the_cut_keeps_the_tokens_of_the_answer():
    tokens = (" Line", " 2", ":", " He", " fell", ".\n", "Line", " 3")
    log_probs = tuple(-float(place) for place in range(len(tokens)))
    kept = prompting.cut(Span("".join(tokens), tuple(range(len(tokens))), tokens, log_probs))
    assert kept == Span("He fell.", (3, 4, 5), (" He", " fell", ".\n"), (-3.0, -4.0, -5.0))
    nothing = Span("\n\n", (7, 7), ("\n", "\n"), (-1.0, -2.0))
    assert prompting.cut(nothing) == Span("", (7, 7), ("\n", "\n"), (-1.0, -2.0))


@pytest.mark.parametrize("setup", [ZeroShot, FiveShot])
def test_the_answer_goes_into_the_blank(long_lab, monkeypatch, setup):
    """The model is given the prompt and nothing else; of what it writes, the sentence is put in."""
    tokenizer = long_lab.tokenizer
    given = []

    def scripted(lab, ids, longest, sampling, is_enough):
        given.append(tokenizer.decode(ids, skip_special_tokens=True))
        written = tokenizer(" He fell. She ran.", add_special_tokens=False)["input_ids"]
        tokens = tuple(tokenizer.decode([token]) for token in written)
        return Span("".join(tokens), tuple(written), tokens, (-1.0,) * len(written))

    monkeypatch.setattr(prompting, "write_on", scripted)
    baseline = setup(long_lab)
    result = baseline.infill(STORY)
    assert given == [baseline.prompt(STORY)]
    assert result.text == " ".join([LINES[0], "He fell.", *LINES[2:]])
    assert result.spans == ["He fell."]
    assert result.score == -1.0
    assert baseline.infill("[blank] John was sad.").text == "He fell. John was sad."
    assert baseline.infill("John was sad.\n[blank]").text == "John was sad.\nHe fell."


def test_the_base_model_is_asked_until_its_answer_is_whole(tiny_lab):
    """Without a script: what comes back is in the text, and no more was written than shows that it ends."""
    adapted = tiny_lab.use("magnet")
    for prompt in prompting.PROMPTS:
        baseline = ZeroShot(adapted, prompt)
        assert baseline.lab.model is tiny_lab.model
        result = baseline.infill(STORY)
        (span,) = result.candidates[0].spans
        assert result.text == f"{PAST} {result.spans[0]} {FUTURE}"
        assert "".join(span.tokens).strip().startswith(result.spans[0]) or '"' in span.tokens[0]
        assert 0 < len(span.ids) == len(span.tokens) == len(span.log_probs) <= prompting.ANSWER_TOKENS


def test_what_no_prompt_can_ask_for_is_named(tiny_lab):
    baseline = ZeroShot(tiny_lab)
    with pytest.raises(ValueError, match="the text has 2 blanks; the prompts ask for one"):
        baseline.infill("Tom ran. [blank] He fell. [blank] He was sad.")
    with pytest.raises(ValueError, match="the blank stands within a sentence"):
        baseline.infill("Tom had [blank] and ran.")
    with pytest.raises(ValueError, match="the text has no blank"):
        baseline.infill("Tom ran.")
    with pytest.raises(ValueError, match="temperature -1"):
        baseline.infill(STORY, temperature=-1.0)
    with pytest.raises(ValueError, match="prompt 'two' is not known; choose one of blank infilling, contextual"):
        ZeroShot(tiny_lab, "two")
