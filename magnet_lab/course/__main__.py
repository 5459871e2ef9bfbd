"""How many wrong answers does each check catch and name, and do right ones pass? `python -m magnet_lab.course`

Caught: the verdict is "not yet". Named: the message says what the misconception is.
"""

import argparse
import time

from magnet_lab.course import check
from magnet_lab.course.answers import Answers, all_answers


def measure(name: str, answers: Answers) -> tuple[int, int, int, list[str]]:
    """How many wrong answers were caught, how many of these named, how many right ones passed, and what went wrong."""
    ask, complaints, caught, named = getattr(check, name), [], 0, 0
    for function, names in answers.wrong:
        verdict = ask(function)
        is_named = not verdict and names.lower() in verdict.message.lower()
        caught += not verdict
        named += is_named
        if not is_named:
            complaints.append(f"{function.__name__}: {names!r} is not in\n{verdict.message}")
    passed = 0
    for function in answers.right:
        verdict = ask(function)
        passed += bool(verdict)
        if not verdict:
            complaints.append(f"{function.__name__} is right and did not pass:\n{verdict.message}")
    return caught, named, passed, complaints


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m magnet_lab.course", description=__doc__)
    parser.add_argument("checks", nargs="*", metavar="CHECK", help="only these; all by default")
    options = parser.parse_args(arguments)
    suites = all_answers()
    if unknown := set(options.checks) - set(suites):
        parser.error(f"there is no check {min(unknown)!r}; there are {', '.join(suites)}")
    started, all_complaints, totals = time.perf_counter(), [], [0] * 5
    width = max(map(len, suites))
    print(f"{'check':{width}}  wrong answers: caught  named  of   right answers: passed  of")
    for name in options.checks or suites:
        answers = suites[name]
        caught, named, passed, complaints = measure(name, answers)
        row = [caught, named, len(answers.wrong), passed, len(answers.right)]
        print(_line(name, row, width))
        all_complaints += complaints
        totals = [total + number for total, number in zip(totals, row, strict=True)]
    print(_line("all", totals, width))
    print(f"{time.perf_counter() - started:.1f} seconds, {time.process_time():.1f} of them computing")
    if all_complaints:
        raise SystemExit("\n" + "\n\n".join(all_complaints))


def _line(name: str, row: list[int], width: int) -> str:
    caught, named, wrong, passed, right = row
    return f"{name:{width}}  {caught:>21}  {named:>5}  {wrong:>2}   {passed:>21}  {right:>2}"


if __name__ == "__main__":
    main()
