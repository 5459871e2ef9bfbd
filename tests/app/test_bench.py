"""What the load test counts: an answer that is none is an error, and a rating has to be on the disk as it was given."""

import pytest

from magnet_lab.app.components import notice
from magnet_lab.app.ratings import Ratings
from magnet_lab.bench import app as bench


def completed(*data, success=True):
    output = {"data": list(data)} if success else {"error": data[0]}
    return {"msg": "process_completed", "success": success, "output": output}


def test_places_in_the_queue_are_noted():
    found = bench.Found()
    messages = [{"msg": "estimation", "rank": 3}, {"msg": "estimation", "rank": 0}, completed(1, "two")]
    assert bench._completed(iter(messages), found) == [1, "two"] and found.places == [3, 0]


@pytest.mark.parametrize(
    "messages",
    [
        [completed("the queue is full", success=False)],
        [completed("picture", notice.render("the queue is full", problem=True))],
    ],
)
def test_what_a_page_refuses_is_an_error(messages):
    with pytest.raises(OSError, match="the queue is full"):
        bench._completed(iter(messages), bench.Found())
    fine = completed(notice.render("", problem=True), notice.render("an answer"))
    assert bench._completed(iter([fine]), bench.Found())


def test_an_answer_that_breaks_off_is_an_error():
    with pytest.raises(OSError, match="broke off"):
        bench._completed(iter([{"msg": "process_generating"}]), bench.Found())


def test_a_rating_that_is_not_on_the_disk_as_given_is_lost(tmp_path):
    ratings = Ratings(tmp_path)
    rater = ratings.rater(ratings.join("anna"))
    first, second = ratings.item_ids([("table", "base", "one"), ("table", "MAGNET", "one")])
    ratings.rate(rater, first, True)
    confirmed = {("anna", first): True}
    assert bench.lost(bench.Found(confirmed=confirmed), tmp_path) == 0
    assert bench.lost(bench.Found(confirmed={("anna", first): False}), tmp_path) == 1
    assert bench.lost(bench.Found(confirmed=confirmed | {("anna", second): True, ("ben", first): True}), tmp_path) == 2
