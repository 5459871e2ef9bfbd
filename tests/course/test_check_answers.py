"""Every check catches and names the wrong answers of its suite, and lets the right ones pass; examples by hand."""

import inspect
import re

import pytest
import torch

from magnet_lab.course import __main__ as command
from magnet_lab.course import check
from magnet_lab.course.answers import Answers, all_answers

SUITES = all_answers()
NAMES = [name for name in check.__all__ if name != "Verdict"]


def test_every_check_has_a_suite():
    assert set(SUITES) == set(NAMES) and len(NAMES) >= 20
    for name, answers in SUITES.items():
        assert len(answers.wrong) >= 5 and len(answers.right) >= 2, name


@pytest.mark.parametrize("name", NAMES)
def test_wrong_answers_are_caught_and_named_and_right_ones_pass(name):
    caught, named, passed, complaints = command.measure(name, SUITES[name])
    assert not complaints, "\n\n".join(complaints)
    assert caught == named == len(SUITES[name].wrong) and passed == len(SUITES[name].right)


@pytest.mark.parametrize("name", NAMES)
def test_a_check_says_how_the_function_is_called(name):
    """The docstring has the call; every answer of the suite has these parameters."""
    call = re.search(rf"`{name}\(([^)]*)\)`", inspect.getdoc(getattr(check, name)))
    assert call, f"check.{name} does not say how the function is called"
    parameters = call[1].split(", ")
    for function in [*SUITES[name].right, *(function for function, _ in SUITES[name].wrong)]:
        assert list(inspect.signature(function).parameters) == parameters, function.__name__


@pytest.mark.parametrize("name", NAMES)
def test_a_message_is_for_its_reader(name):
    """What was called, no traceback, no path, and the same words for the same answer."""
    for function, _ in SUITES[name].wrong:
        message = getattr(check, name)(function).message
        assert message.startswith(f"{name}: not yet. ") and f"called    {name}(" in message
        assert "Traceback" not in message and "/site-packages/" not in message
        first = message.splitlines()[0]
        assert first.endswith(".") and not first.endswith("..")


def test_the_command_counts_what_is_missed(monkeypatch, capsys):
    """A suite with a right answer among the wrong ones, a wrong name, and a wrong answer among the right ones."""
    answers = Answers(
        right=[lambda length, prefix_length: torch.zeros(length, length).bool()],
        wrong=[
            (SUITES["prefix_mask"].right[0], "anything"),
            (SUITES["prefix_mask"].wrong[0][0], "words that are nowhere"),
            SUITES["prefix_mask"].wrong[1],
        ],
    )
    assert command.measure("prefix_mask", answers)[:3] == (2, 1, 0)
    monkeypatch.setattr(command, "all_answers", lambda: {"prefix_mask": answers})
    with pytest.raises(SystemExit):
        command.main([])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("prefix_mask")]
    assert line.split() == ["prefix_mask", "2", "1", "3", "0", "1"]


NO = -100
EXAMPLES = {  # worked by hand, as in the docstrings
    "mask": [((torch.tensor([[0, 1, 1, 0]]),), [[1, 0, 0, 1], [1, 1, 0, 1], [1, 1, 1, 1], [1, 0, 0, 1]])],
    "span_ids": [((torch.tensor([[True, True, False]]), "causal"), [[1, 1, -1]])],
    "reach": [((torch.tensor([[1, 0, 0], [1, 1, 0], [0, 1, 1]]).bool(), 2), [[1, 0, 0], [1, 1, 0], [1, 1, 1]])],
    "prefix_mask": [((4, 2), [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]])],
    "mntp_labels": [
        (
            (torch.tensor([[10, 11, 12, 13]]), torch.tensor([[10, 11, 3, 13]]), torch.tensor([[0, 0, 1, 0]]).bool()),
            [[NO, 12, NO, NO]],
        )
    ],
    "msg_labels": [((torch.tensor([[10, 11, 12, 13]]), torch.tensor([[0, 1, 1, 0]])), [[11, 12, NO, NO]])],
    "prefix_labels": [((torch.tensor([[10, 11, 12, 13]]), torch.tensor([2])), [[NO, 12, 13, NO]])],
    "info_nce": [((torch.eye(2), torch.eye(2), 1.0), 0.3133)],
    "perplexity": [(([torch.tensor([0.5, 0.5, 0.125]).log()],), 3.1748)],
    "word_vectors": [((torch.tensor([[1.0], [2.0], [4.0], [8.0]]), [[1], [2, 3]]), [[1.0], [3.0]])],
    "sentence_vector": [
        ((torch.tensor([[[1.0], [2.0], [9.0]]]), torch.tensor([[True, True, False]]), "last"), [[2.0]]),
        ((torch.tensor([[[1.0], [2.0], [9.0]]]), torch.tensor([[True, True, False]]), "mean"), [[1.5]]),
    ],
    "alignment_uniformity": [((torch.eye(2), torch.tensor([[1.0, 0.0], [1.0, 0.0]])), (1.0, -4.0))],
    "infill_step": [((5, 1, 3, 1), ([0, 1, 5, 6, 7], 2, 6))],
    "rank_candidates": [
        (([torch.tensor([-1.0, -1.0]), torch.tensor([-0.5, -0.7, -0.6]), torch.tensor([-3.0])],), [1, 0, 2])
    ],
    "rep_n": [(("the cat saw the cat", 2), 0.25), (("too short", 4), 0.0)],
    "rep_sen": [(("He ran. He ran. He fell.",), 1 / 3)],
    "copy_rate": [((["He saw a cat. It ran."], ["Then he saw a dog."], 3), 1.0)],
    "lora": [
        (
            (torch.tensor([[1.0, 2.0]]), torch.eye(2), torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0], [0.0]]), 2.0),
            [[7.0, 2.0]],  # W x = (1, 2); A x = 3, B A x = (3, 0), times 2 / 1
        )
    ],
    "pseudo_mask": [
        (
            (torch.tensor([[0, 1, 1]]), torch.tensor([[False, True, False]])),
            [[1, 0, 0], [1, 1, 0], [1, 0, 1]],
        )
    ],
    "running_sum": [((torch.tensor([[[1.0], [1.0], [4.0]]]),), [[[1.0], [2 / 2**0.5], [6 / 3**0.5]]])],
    "gating": [
        (
            # q̄ = 2; W₂ [2; 3] = (2 + 3, 2 - 3) = (5, -1); relu(5) · -1 · 3 = -15; times 2
            (
                torch.tensor([[[1.0]]]),
                torch.tensor([[3.0]]),
                torch.tensor([[2.0]]),
                torch.tensor([[1.0, 1.0], [1.0, -1.0]]),
                torch.tensor([[2.0]]),
            ),
            [[[-30.0]]],
        )
    ],
}


def numbers(value):
    if isinstance(value, torch.Tensor):
        return value.detach().double().flatten().tolist()
    if isinstance(value, list | tuple):
        return [number for part in value for number in numbers(part)]
    return [float(value)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_right_answers_give_what_was_worked_by_hand(name):
    """So the answers that have to pass are right by something other than the check."""
    for arguments, expected in EXAMPLES[name]:
        for function in SUITES[name].right:
            assert numbers(function(*arguments)) == pytest.approx(numbers(expected), abs=1e-4), function.__name__
