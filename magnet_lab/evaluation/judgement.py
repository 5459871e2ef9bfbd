"""People judge what systems wrote: a sheet that does not say who wrote what, and what the judgements come to (Table 5).

The functions in the first half know nothing of files, so that judgements may come from anywhere; those in the second
half read and write sheets as CSV, for any spreadsheet program.
"""

import csv
import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from magnet_lab.evaluation.experiment import Figure, bootstrap

ANSWERS = {"yes": True, "y": True, "1": True, "no": False, "n": False, "0": False}

Ratings = dict[str, bool]  # id -> whether the sentence fits


@dataclass(frozen=True)
class Item:
    """One sentence to be judged, and who wrote it; only `id` and `story` are for a rater's eyes."""

    id: str
    system: str
    text: str
    sentence: str

    @property
    def story(self) -> str:
        """The text with its blank filled, the sentence marked."""
        return self.text.replace("[blank]", f">>> {self.sentence.strip() or '(nothing)'} <<<", 1)


def shuffled(written: Mapping[str, Mapping[str, str]], *, seed: int = 0) -> list[Item]:
    """All that was written, in random order and numbered in it, so that neither place nor number tells the system.

    Args:
        written: system -> text with a blank -> the sentence written for it.
    """
    found = [(system, text, sentence) for system, texts in written.items() for text, sentence in texts.items()]
    random.Random(seed).shuffle(found)
    return [Item(str(number), *each) for number, each in enumerate(found, start=1)]


def scores(key: Sequence[Item], raters: Sequence[Ratings]) -> dict[str, Figure]:
    """For each system, the share of its sentences that raters found fitting (%), with its Wilson interval.

    Two judgements of one sentence do not make two sentences: the interval is that of as many trials as there are
    sentences, and a sentence that half of the raters found fitting is half a success.
    """
    found = {}
    for system in dict.fromkeys(item.system for item in key):
        mine = [item.id for item in key if item.system == system]
        found[system] = wilson(sum(rater[id] for id in mine for rater in raters) / len(raters), len(mine))
    return found


def wilson(successes: float, n: int, z: float = 1.96) -> Figure:
    """A share of n trials (%) with its 95 % Wilson score interval, which stays within 0 and 100 and is right near them.

    The interval holds every share p from which the observed one is no further than z standard errors sqrt(p(1-p)/n).
    """
    share = successes / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # Rounding must not put a share of 0 or 1 outside its own interval.
    return Figure(100 * share, 100 * max(0.0, min(share, middle - half)), 100 * min(1.0, max(share, middle + half)), n)


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float:
    """Cohen's kappa of two raters' judgements of the same things: agreement beyond chance; 1 is all there can be.

    NaN where both gave one and the same judgement throughout: chance alone would agree as well.
    """
    n = len(pairs)
    agreed = sum(one == other for one, other in pairs) / n
    yes_one, yes_other = (sum(pair[rater] for pair in pairs) / n for rater in (0, 1))
    by_chance = yes_one * yes_other + (1 - yes_one) * (1 - yes_other)
    return math.nan if by_chance == 1 else (agreed - by_chance) / (1 - by_chance)


def agreement(raters: Sequence[Ratings], *, seed: int = 0) -> Figure | None:
    """Cohen's kappa over all sentences, its mean over the pairs of raters that have one, with a bootstrapped interval.

    None where no pair has one, see `kappa`.
    """

    def mean_kappa(judged: list[tuple[bool, ...]]) -> float:
        pairs = itertools.combinations(zip(*judged, strict=True), 2)
        found = [kappa(list(zip(*pair, strict=True))) for pair in pairs]
        found = [value for value in found if not math.isnan(value)]
        return sum(found) / len(found) if found else math.nan

    judged = [tuple(rater[id] for rater in raters) for id in raters[0]]
    if math.isnan(mean_kappa(judged)):
        return None
    # Draws in which all said the same throughout leave kappa undefined; as agreement, that is perfect.
    return bootstrap(judged, lambda some: 1.0 if math.isnan(value := mean_kappa(some)) else value, seed=seed)


def write_sheet(items: Sequence[Item], path: Path) -> None:
    """What a rater fills in: id, story, and an empty column for the judgement."""
    _write(path, ("id", "story", "fits (yes/no)"), [(item.id, item.story, "") for item in items])


def write_key(items: Sequence[Item], path: Path) -> None:
    """Who wrote what: not for raters."""
    _write(path, ("id", "system", "text", "sentence"), [astuple(item) for item in items])


def read_key(path: Path) -> list[Item]:
    """What `write_key` wrote.

    Raises:
        ValueError: for a missing file, or a line that is not of its form.
    """
    return [Item(*row) for _, row in _rows(path, 4)]


def read_ratings(path: Path, key: Sequence[Item]) -> Ratings:
    """A rater's sheet, filled in; the order of its lines does not matter.

    Raises:
        ValueError: naming file and line, for a missing file, a judgement that is missing or none, an id that is
            missing, unknown or there twice.
    """
    known, found, line = {item.id for item in key}, {}, 1
    for line, (id, _, judgement) in _rows(path, 3):
        id, answer = id.strip(), judgement.strip().lower()
        if id not in known:
            raise ValueError(f"{path}, line {line}: there is no id {id!r} in the key; keep the sheet's first column")
        if id in found:
            raise ValueError(f"{path}, line {line}: id {id} is here a second time; delete one of the two lines")
        if answer not in ANSWERS:
            raise ValueError(
                f"{path}, line {line}: the judgement of id {id} is {judgement.strip()!r}; write yes or no (or 1 or 0)"
            )
        found[id] = ANSWERS[answer]
    if missing := [item.id for item in key if item.id not in found]:
        raise ValueError(
            f"{path}, after line {line}: {len(missing)} of {len(key)} ids are missing, the first is {missing[0]}; put "
            "their lines back from the sheet"
        )
    return found


def _write(path: Path, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    # Spreadsheet programs take a CSV for UTF-8 only where it says so in its first bytes.
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def _rows(path: Path, columns: int) -> list[tuple[int, list[str]]]:
    """The lines below the header, numbered as an editor numbers them, without empty ones.

    A spreadsheet program may have put semicolons for commas and another encoding for UTF-8: ids and judgements are
    plain letters in all of them.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}")
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        header = file.readline()
        file.seek(0)
        reader = csv.reader(file, delimiter=";" if header.count(";") > header.count(",") else ",")
        rows, line = [], 1
        for row in reader:
            rows.append((line, row))
            line = reader.line_num + 1  # a quoted cell may go over several lines
    for line, row in rows:
        if any(row) and len(row) != columns:
            raise ValueError(f"{path}, line {line}: {columns} columns are wanted here, not {len(row)}")
    return [(line, row) for line, row in rows[1:] if any(row)]
