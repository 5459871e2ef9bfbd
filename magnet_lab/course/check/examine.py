"""How a check goes: ask the student's function, judge what it says, find the idea behind what is wrong.

An answer is right or wrong by comparison with the project's own function. *Why* it is wrong is found in two ways. A
`Mistake` is a misconception together with what comes of it: if that is what the student's function says in every case,
the misconception is named. Where several errors meet, `explain` looks at the first difference itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from magnet_lab.course.check.calling import NoAnswer, Seed, Student
from magnet_lab.course.check.comparing import first_difference, misformed, same
from magnet_lab.course.check.verdict import Verdict


@dataclass(frozen=True)
class Mistake:
    """A misconception, and what somebody who has it would answer to the same arguments."""

    says: str
    answer: Callable


@dataclass(frozen=True)
class Wrong:
    """What is wrong with an answer.

    Attributes:
        why: the misconception, or what the answer does; one sentence.
        details: lines under it, such as expected and got.
        draw: makes a picture of it.
        arguments: of the call it was found in; None for the last one.
    """

    why: str
    details: str = ""
    draw: Callable | None = None
    arguments: tuple | None = None


def examine(function, call: str, judge: Callable[[Student], Wrong | None], praise: str) -> Verdict:
    """A verdict on a student's function.

    Args:
        function: what was handed in.
        call: how it is called, such as `"mask(span_ids)"`.
        judge: asks the function, and returns what is wrong with its answers or None.
        praise: what was tested, in one line.
    """
    name, student = call.split("(")[0], None
    try:
        # What a student's code draws without a generator, or seeds, is nobody else's business.
        with torch.random.fork_rng(devices=[]):
            student = Student(function, call)
            wrong = judge(student)
    except NoAnswer as problem:
        wrong = Wrong(str(problem))
    if wrong is None:
        return Verdict(True, f"{name}: right. {praise}")
    lines = [f"{name}: not yet. {wrong.why[0].upper()}{wrong.why[1:]}."]
    if student is not None and (arguments := wrong.arguments or student.arguments):
        lines += ["", f"called    {call}", *_shown(student.parameters, arguments)]
    if wrong.details:
        lines += ["", wrong.details]
    if student is not None and student.printed.strip():
        lines += ["", "printed   " + student.printed.strip()[:500]]
    return Verdict(False, "\n".join(lines), wrong.draw)


def compare(
    cases: Sequence[tuple],
    reference: Callable,
    *,
    mistakes: Sequence[Mistake] = (),
    explain: Callable[..., str | None] | None = None,
    details: Callable[..., str] | None = None,
    draw: Callable | None = None,
    alike: Callable[..., bool] | None = None,
    tidy: Callable = lambda got: got,
) -> Callable[[Student], Wrong | None]:
    """A judge that compares with a reference.

    Args:
        cases: arguments, from the smallest case to the largest.
        reference: the right function of them.
        mistakes: misconceptions, the likeliest first.
        explain: `(arguments, expected, got)` -> the idea behind a difference that is no known mistake, or None.
        details: `(arguments, expected, got)` -> expected and got as text; by default the values themselves.
        draw: `(arguments, expected, got)` -> a figure of both.
        alike: `(arguments, expected, got)` -> whether the answer is right; by default whether the two are equal.
        tidy: what is done to an answer before anything else, to let several forms of it pass.
    """
    details = details or _values
    alike = alike or (lambda arguments, expected, got: same(expected, got))

    def judge(ask: Student) -> Wrong | None:
        answers, first, problem = [], None, None
        for arguments in cases:
            try:
                got = tidy(ask(*arguments))
            except NoAnswer:
                if first is None:
                    raise
                break  # the first wrong answer is told, not what a larger case does
            expected = reference(*arguments)
            answers.append((arguments, got))
            if first is None:
                problem = misformed(expected, got)
                if problem or not alike(arguments, expected, got):
                    first = (arguments, expected, got)
        if first is None:
            return None
        why = next((m.says for m in mistakes if all(_is_answer(m, alike, *answer) for answer in answers)), problem)
        if not why and explain:
            why = explain(*first)
        shown = _values if problem else details
        picture = None if problem or draw is None else lambda: draw(*first)
        why = why or "the answer differs from what is right, in a way that this check has no name for"
        return Wrong(why, shown(*first), picture, first[0])

    return judge


def show(value, width: int = 400) -> str:
    """A value as a student would write it: nested lists, floats with four digits."""
    if isinstance(value, Tensor):
        if value.numel() > 200:
            return f"a tensor of shape {tuple(value.shape)}"
        value = value.detach().tolist()
    text = _rounded(value)
    return text if len(text) <= width else text[:width] + " …"


def _is_answer(mistake: Mistake, alike: Callable[..., bool], arguments: tuple, got) -> bool:
    try:
        return alike(arguments, mistake.answer(*arguments), got)
    except (ValueError, IndexError, RuntimeError, ZeroDivisionError):
        return False  # the mistaken idea itself fails in this case


def _shown(parameters: list[str], arguments: tuple) -> list[str]:
    with_names = zip(parameters, arguments, strict=True)
    return [
        f"          {name} = " + (f"a generator with seed {int(value)}" if isinstance(value, Seed) else show(value))
        for name, value in with_names
    ]


def _values(arguments: tuple, expected, got) -> str:
    lines = [f"expected  {show(expected)}", f"got       {show(got)}"]
    if isinstance(expected, Tensor) and isinstance(got, Tensor) and expected.shape == got.shape and expected.ndim:
        if same(expected, got) or expected.dtype.is_floating_point != got.dtype.is_floating_point:
            return "\n".join(lines)
        place = first_difference(expected, got)
        one, other = _rounded(expected[place].item()), _rounded(got[place].item())
        lines.append(f"first difference at {list(place)}: {one} expected, {other} got")
    return "\n".join(lines)


def _rounded(value) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_rounded, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_rounded, value)) + ")"
    if isinstance(value, Tensor):
        return _rounded(value.detach().tolist())
    return f"{value:.4g}" if isinstance(value, float) else repr(value)
