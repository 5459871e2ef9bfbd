"""Blind ratings: who sees what, what is kept, what it comes to."""

import csv
import io
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from magnet_lab.app import limits, ratings
from magnet_lab.app.handlers import judge
from magnet_lab.evaluation import experiment, judgement, table5
from magnet_lab.evaluation.experiment import Figure, Result, Row

SYSTEMS = ["base", "zero-shot", "MAGNET", "true sentence"]
STORIES = [f"Story {number} begins. [blank] It ends <b>so</b>." for number in range(5)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Ratings and results in folders of the test's own."""
    monkeypatch.setenv(ratings.FOLDER, str(tmp_path / "ratings"))
    monkeypatch.setenv("MAGNET_LAB_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(experiment, "SHIPPED", tmp_path / "shipped")
    monkeypatch.delenv(judge.PASSWORD, raising=False)
    monkeypatch.setattr(limits, "JUDGED_STORIES", 3)
    judge._wrong.clear()
    return tmp_path / "ratings"


def save(path, stories=STORIES, mark=""):
    """A result of Table 5, whose sentences are like their systems in nothing."""
    signs = dict(zip(SYSTEMS, "wxyz", strict=True))
    rows = {
        system: Row(
            {"copies": Figure(0, 0, 0, 5)}, {story: f"{mark}{signs[system]}{n}." for n, story in enumerate(stories)}
        )
        for system in SYSTEMS
    }
    Result("table5", "tiny", "samples", False, 0, "a machine", {}, None, rows).save(path)


@pytest.fixture
def there(folder):
    save(folder / "table5.json")
    return judge.opened("tiny")


def join(there, name="anna"):
    return judge.begin(there, name, True)


def walk(there, key, fits):
    """Judge all that is left; `fits` says how, from the item's number."""
    question = judge.ask(there, key)
    while question.item is not None:
        question = judge.answer(there, key, question.item, fits(question.item))
    return question


# --- what is judged


def test_the_first_stories_are_judged_as_every_system_completed_them(there):
    assert len(there.items) == 3 * len(SYSTEMS)
    by_system = {system: {item.text for item in there.items.values() if item.system == system} for system in SYSTEMS}
    assert len(set(map(frozenset, by_system.values()))) == 1


def test_what_an_instructor_gives_comes_before_ones_own_and_that_before_the_packages(folder, tmp_path):
    for place, mark in (("shipped/small", "s"), ("results/tiny", "o"), ("ratings", "g")):
        save(tmp_path / place / "table5.json", mark=mark)
        assert {item.sentence[0] for item in judge.opened("tiny").items.values()} == {mark}


def test_without_sentences_the_page_says_how_to_make_some():
    with pytest.raises(ValueError, match="magnet-lab reproduce table5 --model tiny"):
        judge.opened("tiny")


def test_sentences_written_anew_do_not_inherit_ratings(there, folder):
    key = join(there)
    walk(there, key, lambda item: True)
    save(folder / "table5.json", mark="new ")
    assert judge.ask(judge.opened("tiny"), key).done == 0


# --- a rater


def test_a_rater_sees_no_system(there):
    key, seen = join(there), []
    question = judge.ask(there, key)
    while question.item is not None:
        seen.append(repr(question))
        question = judge.answer(there, key, question.item, True)
    seen.append(judge.own_sheet(there, key).decode())
    assert not any(re.search(rf"\b{system}\b", text) for text in seen for system in SYSTEMS)


def test_the_story_is_whole_and_its_sentence_marked(there):
    question = judge.ask(there, join(there))
    item = there.items[question.item]
    assert "".join(piece.text for piece in question.pieces) == item.text.replace("[blank]", item.sentence)
    assert [piece.text for piece in question.pieces if piece.kind == "generated"] == [item.sentence]


def test_numbers_tell_nothing_of_the_system(there):
    order = [there.items[id].system for id in sorted(there.items)]
    assert order != sorted(order, key=SYSTEMS.index)  # as they stand in the result


def orders(there, names):
    found = []
    for name in names:
        key, order = join(there, name), []
        question = judge.ask(there, key)
        while question.item is not None:
            order.append(question.item)
            question = judge.answer(there, key, question.item, False)
        found.append(order)
    return found


def test_each_rater_reads_all_stories_in_an_order_of_their_own(there):
    first, second = orders(there, ["anna", "ben"])
    assert sorted(first) == sorted(second) == sorted(there.items) and first != second


def test_a_rater_goes_on_at_the_next_visit(there):
    key = join(there)
    answered = []
    for number in range(5):
        question = judge.ask(there, key)
        assert (question.done, question.total) == (number, 12)
        answered.append(question.item)
        judge.answer(there, key, question.item, True)
    next_visit = judge.ask(judge.opened("tiny"), key)
    assert next_visit.done == 5 and next_visit.item not in answered and next_visit.said is None


def test_one_can_go_back_and_the_last_word_counts(there):
    key = join(there)
    first = judge.ask(there, key)
    assert first.is_first
    second = judge.answer(there, key, first.item, True)
    earlier = judge.before(there, key, second.item)
    assert (earlier.item, earlier.said, earlier.is_first) == (first.item, True, True)
    after = judge.answer(there, key, first.item, False)
    assert after.item == second.item and after.done == 1
    assert [rating.fits for rating in there.store.all()] == [False]
    last = walk(there, key, lambda item: True)
    assert last.item is None and judge.before(there, key, None).said is True


def test_those_who_leave_leave_nothing(there):
    key, other = join(there), join(there, "ben")
    walk(there, key, lambda item: True)
    walk(there, other, lambda item: True)
    with pytest.raises(ValueError, match="not your code name"):
        judge.leave(there, key, "ben")
    judge.leave(there, key, "Anna")
    assert {rating.rater for rating in there.store.all()} == {"ben"}
    with pytest.raises(ValueError, match="nobody with this key"):
        judge.ask(there, key)
    join(there)  # the name is free again


@pytest.mark.parametrize(
    ("name", "consents", "sentence"),
    [
        ("anna", False, "consent"),
        ("anna", "true", "consent"),
        ("", True, "is empty"),
        ("  ", True, "is empty"),
        ("a" * 41, True, "41 characters"),
        ("=1+1", True, "a sign"),
        ("<b>", True, "a sign"),
        ("a\x07b", True, "a sign"),
        ("BEN", True, "is taken"),
    ],
)
def test_who_cannot_take_part_is_told_why(there, name, consents, sentence):
    join(there, "ben")
    with pytest.raises(ValueError, match=sentence):
        judge.begin(there, name, consents)


@pytest.mark.parametrize("item", [None, -1, 0, 99, 1.5, float("nan"), 1e300, "1", True])
def test_answers_to_stories_that_are_not_there_get_a_sentence(there, item):
    with pytest.raises(ValueError, match="story"):
        judge.answer(there, join(there), item, True)


@pytest.mark.parametrize("fits", [None, 1, "yes"])
def test_answers_that_are_none_get_a_sentence(there, fits):
    with pytest.raises(ValueError, match="neither yes nor no"):
        judge.answer(there, join(there), next(iter(there.items)), fits)


@pytest.mark.parametrize("key", [None, "", "anna", 1, "\ud800", "' OR 1=1 --"])
def test_a_key_that_is_nobodys_opens_nothing(there, key):
    join(there)
    for call in (judge.ask, judge.own_sheet):
        with pytest.raises(ValueError, match="nobody with this key"):
            call(there, key)


def test_nobody_answers_faster_than_they_can_read(there, monkeypatch):
    monkeypatch.setattr(limits, "RATINGS_AN_HOUR", 3)
    key = join(there)
    for _ in range(3):
        judge.answer(there, key, judge.ask(there, key).item, True)
    with pytest.raises(ValueError, match="3 answers within an hour"):
        judge.answer(there, key, judge.ask(there, key).item, True)
    assert judge.ask(there, key).done == 3
    other = join(there, "ben")
    assert judge.answer(there, other, judge.ask(there, other).item, True).done == 1
    with sqlite3.connect(there.store.path) as file:
        file.execute("UPDATE ratings SET at = datetime('now', '-61 minutes')")
    assert judge.answer(there, key, judge.ask(there, key).item, True).done == 4


def test_there_is_room_for_so_many(there, monkeypatch):
    monkeypatch.setattr(limits, "RATERS", 1)
    join(there)
    with pytest.raises(ValueError, match="1 raters take part already"):
        join(there, "ben")


# --- what is kept


def test_a_rating_waits_for_the_disk(there):
    connection = there.store._connection()
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_keys_are_not_in_the_file(there):
    key = join(there)
    files = there.store.path.parent.glob("ratings.sqlite*")
    assert not any(key.encode() in file.read_bytes() for file in files)


def test_many_rate_at_once_and_none_is_lost(tmp_path):
    store = ratings.store(tmp_path / "many")
    problems = []

    def rate(number):
        try:
            key = store.join(f"rater {number}")
            ids = store.item_ids([("system", "text", str(item)) for item in range(20)])
            for item in ids:
                store.rate(store.rater(key), item, (item + number) % 3 == 0)
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=rate, args=[number]) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    kept = {(rating.rater, rating.item): rating.fits for rating in store.all()}
    assert kept == {(f"rater {n}", item): (item + n) % 3 == 0 for n in range(12) for item in range(1, 21)}


RATING = """
import sys, threading
from pathlib import Path
from magnet_lab.app import ratings

store, lock = ratings.store(Path(sys.argv[1])), threading.Lock()
ids = store.item_ids([("system", "text", str(item)) for item in range(1000)])

def rate(name):
    rater = store.rater(store.join(name))
    for item in ids:
        store.rate(rater, item, item % 3 == 0)
        with lock:
            print(name, item, flush=True)

for name in ("anna", "ben", "eve"):
    threading.Thread(target=rate, args=[name]).start()
"""


def test_a_process_killed_while_people_rate_loses_nothing_that_was_confirmed(tmp_path):
    rating = subprocess.Popen([sys.executable, "-c", RATING, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    confirmed = [rating.stdout.readline() for _ in range(100)]
    rating.send_signal(signal.SIGKILL)
    confirmed += rating.stdout.read().splitlines()
    assert rating.wait() == -signal.SIGKILL
    confirmed = {(name, int(item)) for name, item in map(str.split, confirmed)}
    kept = {(rating.rater, rating.item): rating.fits for rating in ratings.Ratings(tmp_path).all()}
    assert 100 <= len(confirmed) < 3000 and confirmed <= set(kept)
    assert all(fits == (item % 3 == 0) for (_, item), fits in kept.items())


def test_a_folder_that_cannot_be_written_gets_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="--ratings FOLDER"):
        ratings.Ratings(tmp_path / "file").join("anna")
    (tmp_path / "ratings.sqlite").write_text("no database at all, but long enough to be taken for something " * 20)
    with pytest.raises(ValueError, match="nothing was kept"):
        ratings.Ratings(tmp_path).join("anna")


def test_ratings_lie_where_the_environment_says(monkeypatch, tmp_path):
    assert ratings.folder() == tmp_path / "ratings"
    monkeypatch.delenv(ratings.FOLDER)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert ratings.folder() == tmp_path / "magnet_lab" / "ratings"


# --- for the instructor


@pytest.fixture
def rated(there, monkeypatch):
    """Anna judged all stories, Ben all but four, at random; and the password is set."""
    monkeypatch.setenv(judge.PASSWORD, "Geheimnis ß")
    draw = random.Random(3)
    said = {"anna": {}, "ben": {}}
    for name, own in said.items():
        key = join(there, name)
        for item in sorted(there.items)[: 12 if name == "anna" else 8]:
            own[item] = draw.random() < 0.6
            judge.answer(there, key, item, own[item])
    return there, said


def test_shares_have_wilson_intervals(rated):
    there, said = rated
    rows = {row[0]: row for row in judge.figures(there, "Geheimnis ß").systems}
    assert list(rows) == ["base", "zero-shot", "MAGNET", "true sentence"]
    for system, row in rows.items():
        items = [item for item in there.items if there.items[item].system == system]
        means = [
            sum(both) / len(both) for item in items if (both := [own[item] for own in said.values() if item in own])
        ]
        assert row[1] == str(len(means)) and row[2] == f"{100 * sum(means) / len(means):.1f}"
        if sum(means) == int(sum(means)):
            found = binomtest(int(sum(means)), len(means)).proportion_ci(method="wilson")
            assert row[3] == f"{100 * found.low:.1f} to {100 * found.high:.1f}"
    assert [rows[system][4] for system in rows] == ["53.5", "5.5", "62.0", "–"]  # as the paper prints them


def test_agreement_is_cohens_kappa_over_what_both_judged(rated):
    there, said = rated
    found = judge.figures(there, "Geheimnis ß")
    both = sorted(said["ben"])
    expected = cohen_kappa_score(*([own[item] for item in both] for own in said.values()))
    [[name, shared, kappa, _]] = found.pairs
    assert (name, shared, kappa) == ("anna and ben", "8", f"{expected:.2f}")
    assert f"mean over 1 pair(s) of raters: {expected:.2f}" in found.sentences[1]
    assert found.sentences[0].startswith("20 answers by 2 rater(s), 1 of whom judged all 12")


def test_the_files_hold_every_answer(rated):
    there, said = rated
    found = judge.figures(there, "Geheimnis ß")
    rows = list(csv.reader(io.StringIO(found.ratings_csv.decode("utf-8-sig"))))[1:]
    kept = {(row[0], int(row[1])): row[3] == "yes" for row in rows}
    assert kept == {(name, item): fits for name, own in said.items() for item, fits in own.items()}
    assert all(row[2] == there.items[int(row[1])].system for row in rows)


def test_what_is_downloaded_can_be_scored_as_sheets(there, tmp_path, monkeypatch):
    monkeypatch.setenv(judge.PASSWORD, "x")
    sheets = []
    for name, third in (("anna", 0), ("ben", 1)):
        key = join(there, name)
        walk(there, key, lambda item, third=third: item % 3 != third)
        sheets.append(tmp_path / f"{name}.csv")
        sheets[-1].write_bytes(judge.own_sheet(there, key))
    (tmp_path / "key.csv").write_bytes(judge.figures(there, "x").key_csv)
    key = judgement.read_key(tmp_path / "key.csv")
    both = [judgement.read_ratings(sheet, key) for sheet in sheets]
    assert both[0] == {str(item): item % 3 != 0 for item in there.items}
    result = Result.load(tmp_path / "ratings" / "table5.json")
    table5.score(result, key, both)
    shares = {row[0]: row[2] for row in judge.figures(there, "x").systems}
    assert shares == {system: f"{result.rows[system]['score'].value:.1f}" for system in SYSTEMS}


def test_figures_want_the_password(rated, monkeypatch):
    there, _ = rated
    for given in ("", "geheimnis ß", None, "\ud800"):
        with pytest.raises(ValueError, match="not the instructor's password"):
            judge.figures(there, given)
    monkeypatch.delenv(judge.PASSWORD)
    with pytest.raises(ValueError, match=judge.PASSWORD):
        judge.figures(there, "")


def test_passwords_cannot_be_guessed_fast(rated, monkeypatch):
    there, _ = rated
    for number in range(limits.PASSWORD_TRIES):
        with pytest.raises(ValueError, match="not the instructor's"):
            judge.figures(there, str(number))
    with pytest.raises(ValueError, match="try again in a minute"):
        judge.figures(there, "Geheimnis ß")
    minute_later = judge.time.monotonic() + 61
    monkeypatch.setattr(judge.time, "monotonic", lambda: minute_later)
    assert judge.figures(there, "Geheimnis ß").systems


def test_nobody_yet_is_no_error(there, monkeypatch):
    monkeypatch.setenv(judge.PASSWORD, "x")
    found = judge.figures(there, "x")
    assert found.pairs == [] and all(row[1:3] == ["0", "–"] for row in found.systems)


# --- by the API


@pytest.fixture(scope="module")
def client(app_address):
    return Client(app_address, verbose=False, analytics_enabled=False)


def test_programs_can_take_part(client, folder):
    save(folder / "table5.json")
    key = client.predict(name="anna", consents=True, api_name="/judge_begin")
    other = client.predict(name="ben", consents=True, api_name="/judge_begin")
    question = client.predict(key=key, api_name="/judge_next")
    assert set(question) == {"item", "before", "sentence", "after", "done", "total"}
    following = client.predict(key=key, item=question["item"], fits=True, api_name="/judge_answer")
    assert (following["done"], following["total"]) == (1, 12)
    own = list(csv.reader(io.StringIO(client.predict(key=key, api_name="/judge_answers"))))
    assert [(row[0], row[2]) for row in own[1:]] == [(str(question["item"]), "yes")]
    assert client.predict(key=other, api_name="/judge_next")["done"] == 0
    assert len(client.predict(key=other, api_name="/judge_answers").splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "inputs", "sentence"),
    [
        ("/judge_begin", {"name": "anna", "consents": False}, "consent"),
        ("/judge_next", {"key": "anna"}, "nobody with this key"),
        ("/judge_answers", {"key": "anna"}, "nobody with this key"),
        ("/judge_answer", {"key": "anna", "item": 1, "fits": True}, "nobody with this key"),
        ("/judge_figures", {"password": ""}, "No password is set"),
    ],
)
def test_a_code_name_opens_nothing_to_programs(client, folder, name, inputs, sentence):
    save(folder / "table5.json")
    judge.begin(judge.opened("tiny"), "anna", True)
    with pytest.raises(AppError, match=sentence):
        client.predict(**inputs, api_name=name)


def test_what_the_page_uses_is_closed_to_programs(client):
    names = client.view_api(return_format="dict")["named_endpoints"]
    assert {name for name in names if name.startswith("/judge")} == {
        "/judge_begin", "/judge_next", "/judge_answer", "/judge_answers", "/judge_figures",
    }  # fmt: skip
    assert os.environ[ratings.FOLDER]  # this test, like all here, is far from anybody's own ratings
