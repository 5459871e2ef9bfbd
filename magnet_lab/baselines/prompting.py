"""Asking the base model for the missing sentence in words: the prompts of Appendix B.

What stands to the right of the blank is put before the place where the model goes on, so that it can be seen without
any change to the model. The four prompts of B.1 are used as they are printed ("zero-shot"), or behind five solved ones
("five-shot", B.2). What the model then writes is more than the sentence, and `answer` finds the sentence in it.
"""

import itertools
import re
import warnings
from collections.abc import Callable
from dataclasses import replace

from magnet_lab.baselines.unidirectional import write_on
from magnet_lab.blanks import parse
from magnet_lab.decoder import start_ids, text_ids
from magnet_lab.infilling import Candidate, Infill, Span
from magnet_lab.model import Magnet
from magnet_lab.spans import Sampling

ANSWER_TOKENS = 60  # written at most; the longest answer that Table 9 shows has about 45

COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

# A sentence of a line, or what is left of it. A mark after a title ends none, nor does one before a small letter.
SENTENCE = re.compile(
    r"""\S.*?(?:(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bMrs)[.!?…]["'”’)\]]*(?=\s+[^\sa-z]|\s*$)|$)""",
)
_MARK = re.compile(r"[.!?…][\"'”’)\]]*$")
_LABEL = re.compile(r"\s*(?:Line \d+:\s*)?")
_QUOTED = re.compile(r'"([^"\n]+[.!?…])"(?!\s+[a-z])')  # not what somebody says, as in "Help!" he cried.


def blank_infilling(past: str, future: str) -> str:
    """The missing line as `_` in the text."""
    text = f"{past} _ {future}".strip()
    return (
        f"Generate the missing line represented by _ in the given text: {_stopped(text)}\n"
        "Generate a single sentence.\n"
        "The missing line is:"
    )


def contextual(past: str, future: str) -> str:
    """What stands before the missing sentence, and what after it, in quotation marks."""
    return (
        f'Fill in the missing sentence between "{past}" and "{future}". Generate only one sentence. '
        "The missing sentence is:"
    )


def prefix_suffix(past: str, future: str) -> str:
    """The same under names; the full stop at the end is printed so."""
    return (
        "Given the prefix and the suffix, generate the middle sentence.\n"
        f"Prefix: {_stopped(past)}\n"
        f"Suffix: {_stopped(future)}\n"
        "Generate only one sentence.\n"
        "Middle: ."
    )


def line_by_line(past: str, future: str) -> str:
    """Every line by its number. Printed for the second of five lines; counts and numbers follow the story here."""
    before, after = SENTENCE.findall(past), SENTENCE.findall(future)
    lines = [*before, "[Missing Line]", *after]
    missing, count = len(before) + 1, len(lines)
    story = "\n".join(f"Line {number}: {line}" for number, line in enumerate(lines, start=1))
    return (
        f"You have a {COUNTS[count] if count < len(COUNTS) else count}-sentence story with some missing text.\n"
        "Here is the context for each line, with the missing line indicated:\n"
        f"{story}\n"
        "\n"
        "Please generate the missing line of the story. Please generate only the missing line and nothing else.\n"
        f"The missing line is: Line {missing}:"
    )


PROMPTS: dict[str, Callable[[str, str], str]] = {
    "blank infilling": blank_infilling,
    "contextual": contextual,
    "prefix-suffix": prefix_suffix,
    "line-by-line": line_by_line,
}
DEFAULT_PROMPT = "line-by-line"  # which the paper found best with examples (B.2)

# The paper prints none of its solved examples. These are stories that the project's models are trained on.
EXAMPLES = (
    (
        "Priya was making rice pudding for the school bake sale. [blank] One taste told her that something was "
        "terribly wrong. There was no time to cook another batch. She bought cookies at the store and put them on a "
        "nice plate.",
        "She reached for the sugar and grabbed the salt jar instead.",
    ),
    (
        "On Career Day, nobody stopped at the plumber's table. They all stood around the pilot and the nurse. [blank] "
        "The plumber rolled up his sleeves and climbed on a chair. By the end there was a long line for his autograph.",
        "Then a pipe burst over the stage in the hall.",
    ),
    (
        "In the middle of the horror film the lights went out. Someone screamed, and then half the theater did. The "
        "manager came in with a candle to calm them. [blank] They all ran out and left their coats.",
        "His long shadow rose up on the screen behind him.",
    ),
    (
        "Shreya had been dreaming of the lead role for months. On the day of the tryouts, she woke up with laryngitis. "
        "[blank] The director looked up from his papers for the first time. He gave her the part of the witch.",
        "She croaked her lines like a frog in a pipe.",
    ),
    (
        "Hildy's friends wanted to toast marshmallows at her backyard party. [blank] Her brother came out with the gas "
        "camping stove. They sat around it in a circle as if it were a fire. He even told a ghost story over the hiss "
        "of the gas.",
        "It had rained all week, and the wood would not burn.",
    ),
)


class ZeroShot:
    """The base model, asked for a missing sentence by one of the four prompts (Appendix B.1, Tables 5 and 9).

    The paper does not say which of them its Table 5 measures.

    Args:
        prompt: "blank infilling", "contextual", "prefix-suffix" or "line-by-line".
    """

    setup, examples = "zero-shot", ()

    def __init__(self, lab: Magnet, prompt: str = DEFAULT_PROMPT):
        if prompt not in PROMPTS:
            raise ValueError(f"prompt {prompt!r} is not known; choose one of {', '.join(PROMPTS)}")
        self.lab = lab.use(None)
        self.name = self.setup if prompt == DEFAULT_PROMPT else f"{self.setup}, {prompt}"
        self._ask = PROMPTS[prompt]

    def prompt(self, text: str) -> str:
        """What the model is given for a text with a blank, up to where it goes on; errors as `infill`.

        A model that is too short for all solved examples gets the last ones of them, and the user a warning.
        """
        question = self._ask(*_sides(text))
        solved = [f"{self._ask(*_sides(example))} {sentence}" for example, sentence in self.examples]
        for left_out in range(len(solved) + 1):
            prompt = "\n\n".join([*solved[left_out:], question])
            length = len(self._ids(prompt)) + ANSWER_TOKENS
            if length <= self.lab.max_length:
                break
        else:
            raise ValueError(
                f"the {self.name} prompt for this text and its answer have {length:,} tokens, more than the model's "
                f"{self.lab.max_length:,}; shorten the text"
            )
        if left_out:
            warnings.warn(
                f"{self.lab.name} can read {self.lab.max_length:,} tokens: only {len(solved) - left_out} of the "
                f"{len(solved)} solved examples go before the question",
                stacklevel=2,
            )
        return prompt

    def infill(self, text: str, **sampling) -> Infill:
        """Fill a text's blank with one sentence. No prompt speaks of a length, so the blank's own has no effect.

        Args:
            text: with one blank that stands for a sentence.
            **sampling: temperature, top_p, top_k, seed, as in `Magnet.infill`.

        Returns:
            An `Infill` of one candidate; its span's text is empty where the model wrote nothing but space.

        Raises:
            ValueError: for any other number or kind of blanks, settings out of range, or a text too long for the model.
        """
        sampling = Sampling(**sampling)
        ids = self._ids(self.prompt(text))
        span = cut(write_on(self.lab, ids, ANSWER_TOKENS, sampling, lambda written, _: is_whole(written)))
        (left, right), (blank,) = parse(text)
        span = replace(span, text=f" {span.text}") if blank.after_space else span
        return Infill((Candidate(left + span.text + right, (span,)),))

    def _ids(self, prompt: str) -> list[int]:
        return start_ids(self.lab.tokenizer) + text_ids(self.lab.tokenizer, prompt)


class FiveShot(ZeroShot):
    """The same with five solved examples before the question, in the same form (Appendix B.2, Tables 5 and 10)."""

    setup, examples = "five-shot", EXAMPLES


def answer(written: str) -> tuple[int, int]:
    """Start and stop of the answer in what was written after a prompt: the first sentence of the first line.

    A label that is said again ("Line 2:") is no part of it, nor are quotation marks around the whole.
    """
    start = _LABEL.match(written).end()
    if quoted := _QUOTED.match(written, start):
        return quoted.span(1)
    line_end = written.find("\n", start)
    sentence = SENTENCE.match(written, start, line_end if line_end >= 0 else len(written))
    return sentence.span() if sentence else (start, start)


def is_whole(written: str) -> bool:
    """Whether something comes after the answer already, so that it will not become any longer."""
    return answer(written)[1] < len(written.rstrip('" \n'))


def cut(span: Span) -> Span:
    """The answer in what was written, with the tokens that it stands in; all tokens where there is no answer."""
    start, stop = answer(span.text)
    ends = list(itertools.accumulate(map(len, span.tokens)))
    begins = [0, *ends[:-1]]
    inside = [
        place for place, (begin, end) in enumerate(zip(begins, ends, strict=True)) if begin < stop and end > start
    ]
    kept = slice(inside[0], inside[-1] + 1) if inside else slice(None)
    return Span(span.text[start:stop], span.ids[kept], span.tokens[kept], span.log_probs[kept])


def _sides(text: str) -> tuple[str, str]:
    """What stands before the blank of a text and what after it, each on one line."""
    segments, blanks = parse(text)
    if len(blanks) > 1:
        raise ValueError(
            f"the text has {len(blanks)} blanks; the prompts ask for one missing sentence: leave one blank"
        )
    if not blanks[0].is_sentence:
        raise ValueError("the blank stands within a sentence; the prompts ask for a whole one: blank a whole sentence")
    past, future = (" ".join(segment.split()) for segment in segments)
    return past, future


def _stopped(text: str) -> str:
    """A text with the full stop that is printed after it, unless it ends in a mark of its own."""
    return text if not text or _MARK.search(text) else f"{text}."
