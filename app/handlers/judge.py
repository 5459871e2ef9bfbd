"""People judge sentences that systems wrote into stories, without knowing which system it was (Table 5).

What is asked is what the paper's raters were asked (Section 4.3): is the sentence appropriate in its context, and does
it contribute to a coherent story? A rater is known by a key that lies in their browser alone, so that nobody can look
at, or change, the answers of somebody else whose code name they know.
"""

import collections
import csv
import functools
import hmac
import io
import itertools
import math
import os
import random
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .. import limits, ratings
from ..ratings import Rater, Ratings
from .infill import Piece

if TYPE_CHECKING:
    from magnet_lab.evaluation.judgement import Item

QUESTION = "Does the marked sentence fit where it stands, and help to make a coherent story?"
PASSWORD = "MAGNET_LAB_PASSWORD"  # in the environment
GIVEN = "table5.json"  # in the folder of the ratings: what an instructor wants judged

_CODE_NAME = re.compile(r"\w[\w .-]*")  # nothing that a spreadsheet program would take for a formula


@dataclass(frozen=True)
class Round:
    """What is judged, by number, and where the answers are kept."""

    store: Ratings
    items: dict[int, "Item"]
    source: str


@dataclass(frozen=True)
class Question:
    """One story as a rater sees it: nothing in it tells who wrote the sentence.

    Attributes:
        item: the story's number, None when all are judged.
        pieces: the story, its sentence "generated".
        done, total: how many this rater has judged, of how many.
        said: what they said of this one before.
        is_first: whether none comes before it in this rater's order.
    """

    name: str
    item: int | None
    pieces: list[Piece]
    done: int
    total: int
    said: bool | None = None
    is_first: bool = True


@dataclass(frozen=True)
class Figures:
    """What the instructor sees: rows of SYSTEM_COLUMNS and PAIR_COLUMNS, sentences, and two files of CSV."""

    systems: list[list[str]]
    pairs: list[list[str]]
    sentences: list[str]
    ratings_csv: bytes
    key_csv: bytes


SYSTEM_COLUMNS = ["system", "sentences judged", "found fitting (%)", "95 % interval (Wilson)", "the paper's (%)"]
PAIR_COLUMNS = ["two raters", "stories both judged", "Cohen's kappa", "95 % interval"]


def opened(model: str) -> Round:
    """What is there to judge with this model.

    Raises:
        ValueError: saying how sentences are made, if there are none.
    """
    folder = ratings.folder()
    path = _find_sentences(model, folder)
    if path is None:
        raise ValueError(
            f"there are no sentences to judge yet; make some with `magnet-lab reproduce table5 --model {model}` and "
            f"start the app in the same folder, or put a table5.json into {folder}"
        )
    return _round(path, path.stat().st_mtime_ns, folder)


def _find_sentences(model: str, folder: Path) -> Path | None:
    """What the instructor put there, else this model's from the user's own results or the package, else any model's."""
    from magnet_lab.evaluation.experiment import SHIPPED

    from .results import own_folder

    name = Path(model).name
    places = [
        folder / GIVEN,
        own_folder() / name / GIVEN,
        *(SHIPPED / each / GIVEN for each in (name, "small", "tiny")),
    ]
    return next((place for place in places if place.is_file()), None)


@functools.lru_cache(maxsize=4)
def _round(path: Path, changed: int, folder: Path) -> Round:
    """The first stories of a result's sheet, each as every system completed it; a file that changes is read again."""
    from magnet_lab.evaluation import table5
    from magnet_lab.evaluation.experiment import Result

    result = Result.load(path)
    sheet = table5.sheet(result)
    if not sheet:
        raise ValueError(f"{path} holds no sentences to judge; measure it again with magnet-lab reproduce table5")
    stories = list(dict.fromkeys(item.text for item in sheet))[: limits.JUDGED_STORIES]
    sheet = [item for item in sheet if item.text in stories]
    store = ratings.store(folder)
    ids = store.item_ids([(item.system, item.text, item.sentence) for item in sheet])
    items = {id: replace(item, id=str(id)) for id, item in zip(ids, sheet, strict=True)}
    return Round(store, items, f"sentences by the model {result.model}")


def check_code_name(name: str) -> str:
    """A code name without spaces around it; raises a ValueError if it is none."""
    limits.check_text("the code name", name, limits.CODE_NAME_CHARACTERS)
    name = " ".join(name.split())
    if not _CODE_NAME.fullmatch(name):
        raise ValueError("the code name has a sign that no name here can have; use letters, figures, spaces, . and -")
    return name


def begin(round: Round, name: str, consents: bool) -> str:
    """Take part.

    Returns:
        The rater's key.
    """
    name = check_code_name(name)
    if consents is not True:
        raise ValueError("your consent is missing; tick the box above if you want to take part")
    if round.store.count_raters() >= limits.RATERS:
        raise ValueError(f"{limits.RATERS} raters take part already, and no more fit here; ask your instructor")
    return round.store.join(name)


def known(round: Round, key: str | None) -> Rater | None:
    """Whose key it is, if it is anyone's."""
    return round.store.rater(key) if key and isinstance(key, str) else None


def ask(round: Round, key: str) -> Question:
    """The first story in this rater's order that they have not judged."""
    rater = _rater(round, key)
    said = _said(round, rater)
    item = next((item for item in _order(round, rater) if item not in said), None)
    return _question(round, rater, item, said)


def answer(round: Round, key: str, item: int, fits: bool) -> Question:
    """Keep an answer, in place of an earlier one to the same story, and go on.

    When this returns, the answer is on the disk.
    """
    rater = _rater(round, key)
    _check_item(round, item)
    if not isinstance(fits, bool):
        raise ValueError(f"the answer {fits!r} is neither yes nor no; give true or false")
    if round.store.in_the_last_hour(rater) >= limits.RATINGS_AN_HOUR:
        raise ValueError(
            f"{limits.RATINGS_AN_HOUR} answers within an hour are as many as anyone can give with care; this one was "
            "not kept, so take a rest and go on later"
        )
    round.store.rate(rater, int(item), fits)
    return ask(round, key)


def before(round: Round, key: str, item: int | None) -> Question:
    """The story before this one in the rater's order, the last one if all are judged; and what they said of it."""
    rater = _rater(round, key)
    order = _order(round, rater)
    if item is None:
        place = len(order)
    else:
        _check_item(round, item)
        place = order.index(int(item))
    return _question(round, rater, order[max(0, place - 1)], _said(round, rater))


def own_sheet(round: Round, key: str) -> bytes:
    """One rater's answers as `magnet_lab.evaluation.table5` reads a sheet: number, story, yes or no."""
    said = _said(round, _rater(round, key))
    rows = [[id, round.items[id].story, _word(fits)] for id, fits in sorted(said.items())]
    return _csv(["id", "story", "fits (yes/no)"], rows)


def leave(round: Round, key: str, name: str) -> None:
    """Delete a rater's answers and name, if they typed it in."""
    rater = _rater(round, key)
    if " ".join(str(name).split()).casefold() != rater.name.casefold():
        raise ValueError("that is not your code name, so nothing was deleted; type it in as you chose it")
    round.store.leave(rater)


def _rater(round: Round, key: str) -> Rater:
    if (rater := known(round, key)) is None:
        raise ValueError("nobody with this key takes part here; reload the page and begin anew")
    return rater


def _said(round: Round, rater: Rater) -> dict[int, bool]:
    return {item: fits for item, fits in round.store.of(rater).items() if item in round.items}


def _check_item(round: Round, item: int) -> None:
    limits.check_number("the story's number", item, 1, 2**53, whole=True)
    if int(item) not in round.items:
        raise ValueError(f"story {int(item)} is none of those to judge here; reload the page")


def _order(round: Round, rater: Rater) -> list[int]:
    """An order for each rater, so that nobody's fatigue falls on the same stories; the same at every visit."""
    order = sorted(round.items)
    random.Random(rater.id).shuffle(order)
    return order


def _question(round: Round, rater: Rater, item: int | None, said: dict[int, bool]) -> Question:
    pieces: list[Piece] = []
    is_first = False
    if item is not None:
        sentence = round.items[item].sentence.strip() or "(nothing)"
        left, _, right = round.items[item].text.partition("[blank]")
        pieces = [Piece(left, "context"), Piece(sentence, "generated"), Piece(right, "context")]
        pieces = [piece for piece in pieces if piece.text]
        is_first = item == _order(round, rater)[0]
    return Question(rater.name, item, pieces, len(said), len(round.items), said.get(item), is_first)


# --- for the instructor


_wrong: collections.deque[float] = collections.deque(maxlen=limits.PASSWORD_TRIES)  # when a password was wrong
_wrong_lock = threading.Lock()


def password() -> str | None:
    """The instructor's, where one is set."""
    return os.environ.get(PASSWORD) or None


HOW_TO_SET = (
    f"No password is set, so nobody can see the figures here: start the app with {PASSWORD}=… in its environment to "
    "set one. Whoever can read the folder of the ratings has them all in the file ratings.sqlite."
)


def check_password(given: str) -> None:
    """Raise a ValueError unless it is the instructor's password; guessing is kept slow."""
    if (right := password()) is None:
        raise ValueError(HOW_TO_SET)
    with _wrong_lock:
        if len(_wrong) == limits.PASSWORD_TRIES and time.monotonic() - _wrong[0] < 60:
            raise ValueError(f"{limits.PASSWORD_TRIES} wrong passwords were given just now; try again in a minute")
        same = hmac.compare_digest(str(given).encode("utf-8", "replace"), right.encode("utf-8", "replace"))
        if not same:
            _wrong.append(time.monotonic())
            raise ValueError("that is not the instructor's password; it is the one that the app was started with")


def figures(round: Round, given: str) -> Figures:
    """What all raters said so far, and how far they agree."""
    check_password(given)
    said: dict[str, dict[str, bool]] = {}
    everything = [rating for rating in round.store.all() if rating.item in round.items]
    for rating in everything:
        said.setdefault(rating.rater, {})[str(rating.item)] = rating.fits
    finished = sum(len(own) == len(round.items) for own in said.values())
    pairs, mean = _pairs(said)
    return Figures(
        _systems(round, list(said.values())),
        pairs,
        [f"{len(everything)} answers by {len(said)} rater(s), {finished} of whom judged all {len(round.items)}.", mean],
        _csv(
            ["rater", "id", "system", "fits (yes/no)", "at (UTC)"],
            [[each.rater, each.item, round.items[each.item].system, _word(each.fits), each.at] for each in everything],
        ),
        # As table5 reads it, to put raters' own sheets and this together: python -m magnet_lab.evaluation.table5 score
        _csv(
            ["id", "system", "text", "sentence"],
            [[item.id, item.system, item.text, item.sentence] for item in round.items.values()],
        ),
    )


def _systems(round: Round, said: list[dict[str, bool]]) -> list[list[str]]:
    """A row for each system; where not all judged all, a sentence counts by the mean of those who judged it."""
    from magnet_lab.evaluation import judgement, reproduce, table5

    judged = {}
    for id in map(str, round.items):
        if answers := [own[id] for own in said if id in own]:
            judged[id] = sum(answers) / len(answers)
    found = judgement.scores([item for item in round.items.values() if item.id in judged], [judged])
    papers = reproduce.published()["table5"]["rows"]
    rows = []
    order = [*table5.EXPERIMENT.rows, *(item.system for item in round.items.values())]
    there = {item.system for item in round.items.values()}
    for system in (each for each in dict.fromkeys(order) if each in there):
        printed = f"{papers[system][0]:.1f}" if system in papers else "–"
        if system in found:
            figure = found[system]
            ours = [str(figure.n), f"{figure.value:.1f}", f"{figure.low:.1f} to {figure.high:.1f}"]
        else:
            ours = ["0", "–", "–"]
        rows.append([system, *ours, printed])
    return rows


def _pairs(said: dict[str, dict[str, bool]]) -> tuple[list[list[str]], str]:
    """Two raters a row, those who share most stories first, and a sentence about all pairs."""
    from magnet_lab.evaluation import judgement

    shared = []
    for one, other in itertools.combinations(said, 2):
        if both := [id for id in said[one] if id in said[other]]:
            shared.append((len(both), one, other, both))
    shared.sort(key=lambda pair: -pair[0])
    rows = []
    for count, one, other, both in shared[: limits.PAIRS]:
        figure = judgement.agreement([{id: said[rater][id] for id in both} for rater in (one, other)])
        told = ["undefined: all said the same", "–"]
        if figure is not None:
            told = [f"{figure.value:.2f}", f"{figure.low:.2f} to {figure.high:.2f}"]
        rows.append([f"{one} and {other}", str(count), *told])
    kappas = [judgement.kappa([(said[one][id], said[other][id]) for id in both]) for _, one, other, both in shared]
    kappas = [kappa for kappa in kappas if not math.isnan(kappa)]
    if not kappas:
        return rows, "Agreement takes two raters who judged the same stories, and not all alike."
    mean = sum(kappas) / len(kappas)
    return rows, (
        f"Cohen's kappa, mean over {len(kappas)} pair(s) of raters: {mean:.2f}. 0 is what chance would give, 1 is full "
        "agreement."
    )


def _word(fits: bool) -> str:
    return "yes" if fits else "no"


def _csv(header: Sequence[str], rows: Sequence[Sequence]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([header, *rows])
    return text.getvalue().encode("utf-8-sig")  # spreadsheet programs take a CSV for UTF-8 only where it says so
