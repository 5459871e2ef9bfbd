"""Students' code may do anything: what is said of it, in time, and that nothing of it gets out."""

import contextlib
import sys
import threading
import time

import numpy as np
import pytest
import torch

from magnet_lab.course import check
from magnet_lab.course.check import calling


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(calling, "TIME_LIMIT", 0.4)


def right(length, prefix_length):
    place = torch.arange(length)
    return (place[None] < prefix_length) | (place[None] <= place[:, None])


def said(function) -> str:
    verdict = check.prefix_mask(function)
    assert not verdict and not verdict.passed
    return verdict.message


def test_code_that_is_right_passes():
    assert check.prefix_mask(right).passed


def test_an_unwritten_answer():
    def stub(length, prefix_length):
        raise NotImplementedError

    assert "not written yet" in said(stub).lower()


def test_an_error_is_told_with_the_students_own_line():
    def helper(length):
        return torch.zeros(length, length) @ torch.zeros(length + 1)

    def wrong(length, prefix_length):
        return helper(length)

    message = said(wrong)
    assert "its line `return torch.zeros(length, length) @ torch.zeros(length + 1)`" in message
    assert "RuntimeError" in message and "File" not in message


def test_an_error_in_a_library_is_told_with_the_line_that_called_it():
    def wrong(length, prefix_length):
        return np.zeros(3).reshape(length, 17)

    assert "its line `return np.zeros(3).reshape(length, 17)`: ValueError" in said(wrong)


def test_an_error_without_source_has_its_line_number():
    space = {}
    exec(compile("def wrong(length, prefix_length):\n    return 1 / 0\n", "<cell>", "exec"), space)
    assert "line 2 of its cell or file: ZeroDivisionError" in said(space["wrong"])


def test_an_endless_loop_is_ended(short):
    ticks = []

    def endless(length, prefix_length):
        while True:
            ticks.append(0)

    started = time.monotonic()
    assert "no answer after" in said(endless).lower()
    assert time.monotonic() - started < 3
    count = len(ticks)
    time.sleep(0.1)
    assert len(ticks) == count, "the loop still runs"


def test_an_endless_loop_that_catches_everything_does_not_hold_up_the_check(short):
    stop = threading.Event()

    def endless(length, prefix_length):
        while not stop.is_set():
            with contextlib.suppress(BaseException):
                time.sleep(0.001)

    started = time.monotonic()
    message = said(endless)
    stop.set()
    assert "no answer after" in message.lower() and time.monotonic() - started < 3


def test_code_that_sleeps_does_not_hold_up_the_check(short):
    started = time.monotonic()
    assert "no answer after" in said(lambda length, prefix_length: time.sleep(8)).lower()
    assert time.monotonic() - started < 3


def test_the_limit_is_five_seconds_with_all_that_comes_after():
    assert calling.TIME_LIMIT + 0.5 < 5


def test_nothing_returned():
    def forgot(length, prefix_length):
        right(length, prefix_length)

    assert "returns nothing (None)" in said(forgot)


def test_printed_in_place_of_returned(capsys):
    def prints(length, prefix_length):
        print("my mask", length)

    message = said(prints)
    assert "prints its answer and returns nothing" in message and "printed   my mask 3" in message
    assert capsys.readouterr().out == ""


def test_what_a_wrong_answer_prints_is_told_and_other_threads_are_heard(capsys):
    def prints(length, prefix_length):
        print("inside")
        other = threading.Thread(target=print, args=("elsewhere",))
        other.start()
        other.join()
        return ~right(length, prefix_length)

    message = said(prints)
    assert "printed   inside" in message and "elsewhere" not in message
    assert set(capsys.readouterr().out.split()) == {"elsewhere"}
    assert sys.stdout is not None and "inside" not in capsys.readouterr().out


def test_inputs_that_are_written_over():
    def in_place(input_ids, corrupted, selected):
        input_ids[~selected] = -100
        labels = input_ids.roll(-1, dims=1)
        labels[:, -1] = -100
        return labels

    message = check.mntp_labels(in_place).message
    assert "changes its input input_ids in place" in message and "input_ids.clone()" in message
    assert "[[10, 11, 12, 13]]" in message, "the arguments are shown as they were"


def test_lists_that_are_written_over():
    def in_place(log_probs):
        log_probs.sort(key=lambda one: -float(one.mean()))
        return list(range(len(log_probs)))

    assert "changes its input log_probs in place" in check.rank_candidates(in_place).message


def test_a_result_in_place_of_a_function():
    assert "no function; hand in the function itself" in said(right(3, 1))
    assert "a tensor" in said(right(3, 1))


def test_other_parameters():
    assert "cannot be called as prefix_mask(length, prefix_length)" in said(lambda length: right(length, 1))


def test_parameters_of_other_names_will_do():
    assert check.prefix_mask(lambda n, k, more=0: right(n, k))


def test_exit_is_told_and_ends_nothing():
    assert "calls exit()" in said(lambda length, prefix_length: sys.exit(1))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([[True]], "must be a tensor of booleans, of shape (3, 3); it is a list"),
        (np.ones((3, 3)), "it is a NumPy array"),
        ("yes", "it is a str"),
        (torch.ones(2, 3).bool(), "has shape (2, 3); (3, 3) is wanted"),
        (torch.ones(3, 3).int(), "holds torch.int32; booleans are wanted"),
    ],
)
def test_answers_of_another_form(answer, words):
    assert words in said(lambda length, prefix_length: answer)


def test_not_a_number():
    def wrong(anchors, candidates, temperature):
        return torch.zeros(()) / 0

    message = check.info_nce(wrong).message
    assert "is nan" in message and "0 is divided by 0" in message
    assert "is nan at [0, 0, 0]" in check.running_sum(lambda queries: queries * float("nan")).message


def test_a_tensor_of_one_number_and_a_number_are_the_same():
    def loss(anchors, candidates, temperature):
        cosines = torch.cosine_similarity(anchors[:, None], candidates[None], dim=2) / temperature
        return torch.nn.functional.cross_entropy(cosines, torch.arange(len(anchors)))

    assert check.info_nce(loss)
    assert check.info_nce(lambda *arguments: loss(*arguments).item())
    assert check.info_nce(lambda *arguments: loss(*arguments).requires_grad_())


def test_the_global_generator_is_left_as_it_was():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    assert check.prefix_mask(right)
    for name in ("lora", "infill_step", "gating"):
        from magnet_lab.course.answers import all_answers

        assert getattr(check, name)(all_answers()[name].right[0])
    assert torch.equal(before, torch.get_rng_state())


def test_a_misspelled_check():
    with pytest.raises(AttributeError, match="there is no check 'masks_'; there are mask, span_ids"):
        _ = check.masks_
