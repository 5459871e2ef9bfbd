"""Ratings kept in SQLite: what was confirmed to a rater is on the disk, whatever becomes of the process.

Several people, threads and processes may write at once: WAL lets them read meanwhile, every write is one transaction,
and `synchronous=FULL` waits for the disk at each commit (WAL's usual setting may lose the last ones when power fails).
WAL needs a disk of this machine: a folder on a network will not do.
"""

import contextlib
import functools
import hashlib
import os
import secrets
import sqlite3
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = "ratings.sqlite"
FOLDER = "MAGNET_LAB_RATINGS"  # in the environment

_TABLES = """
CREATE TABLE IF NOT EXISTS raters (
    id INTEGER PRIMARY KEY,
    key_hash TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL COLLATE NOCASE UNIQUE,
    consented TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS items (
    id INTEGER PRIMARY KEY,
    system TEXT NOT NULL,
    text TEXT NOT NULL,
    sentence TEXT NOT NULL,
    UNIQUE (system, text, sentence)
);
CREATE TABLE IF NOT EXISTS ratings (
    rater INTEGER NOT NULL REFERENCES raters ON DELETE CASCADE,
    item INTEGER NOT NULL REFERENCES items,
    fits INTEGER NOT NULL CHECK (fits IN (0, 1)),
    at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    UNIQUE (rater, item)
);
"""


@dataclass(frozen=True)
class Rater:
    """Somebody who consented, under a name of their own choosing; `id` also seeds the order in which they read."""

    id: int
    name: str


@dataclass(frozen=True)
class Rating:
    """One judgement; `at` is in UTC."""

    rater: str
    item: int
    fits: bool
    at: str


def folder() -> Path:
    """Where ratings are kept: `MAGNET_LAB_RATINGS`, else the platform's place for a user's data."""
    if chosen := os.environ.get(FOLDER):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "magnet_lab" / "Ratings"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "magnet_lab" / "ratings"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "magnet_lab" / "ratings"


@functools.cache
def store(folder: Path) -> "Ratings":
    """The ratings of a folder: the same object for all who ask."""
    return Ratings(folder)


class Ratings:
    """Raters, what they judge, and their judgements, in `FOLDER/ratings.sqlite`.

    Every method raises a ValueError, and has changed nothing, where the file cannot be read or written.
    """

    def __init__(self, folder: Path):
        self.path = folder / FILE
        self._own = threading.local()  # a connection serves the thread that opened it
        self._opening = threading.Lock()  # two that turn a new file to WAL at once get in each other's way

    def join(self, name: str) -> str:
        """Take a rater in.

        Returns:
            The key that they are known by from now on; only its hash is kept, so that it cannot be looked up.

        Raises:
            ValueError: if somebody has that name already.
        """
        key = secrets.token_urlsafe(24)
        with self._transaction() as connection:
            if connection.execute("SELECT 1 FROM raters WHERE name = ?", [name]).fetchone():
                raise ValueError(
                    f"the code name {name!r} is taken; choose another, or if it is yours, go on in the browser that "
                    "you began with"
                )
            connection.execute("INSERT INTO raters (key_hash, name) VALUES (?, ?)", [_hash(key), name])
        return key

    def rater(self, key: str) -> Rater | None:
        """Whose key it is."""
        with self._transaction("DEFERRED") as connection:
            row = connection.execute("SELECT id, name FROM raters WHERE key_hash = ?", [_hash(key)]).fetchone()
        return Rater(*row) if row else None

    def count_raters(self) -> int:
        with self._transaction("DEFERRED") as connection:
            return connection.execute("SELECT COUNT(*) FROM raters").fetchone()[0]

    def leave(self, rater: Rater) -> None:
        """Forget a rater and all that they said."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM raters WHERE id = ?", [rater.id])

    def item_ids(self, items: Sequence[tuple[str, str, str]]) -> list[int]:
        """A number for each (system, text, sentence), the same ever after, so that ratings outlive a new list of items.

        New ones are numbered in the order given: give them in one that tells nothing of the system.
        """
        with self._transaction() as connection:
            connection.executemany("INSERT OR IGNORE INTO items (system, text, sentence) VALUES (?, ?, ?)", items)
            same = "SELECT id FROM items WHERE system = ? AND text = ? AND sentence = ?"
            return [connection.execute(same, item).fetchone()[0] for item in items]

    def rate(self, rater: Rater, item: int, fits: bool) -> None:
        """Keep a judgement in place of an earlier one: on the disk when this returns."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO ratings (rater, item, fits) VALUES (?, ?, ?) "
                "ON CONFLICT (rater, item) DO UPDATE SET fits = excluded.fits, at = CURRENT_TIMESTAMP",
                [rater.id, item, int(fits)],
            )

    def of(self, rater: Rater) -> dict[int, bool]:
        """What one rater said: item -> whether it fits."""
        with self._transaction("DEFERRED") as connection:
            rows = connection.execute("SELECT item, fits FROM ratings WHERE rater = ?", [rater.id]).fetchall()
        return {item: bool(fits) for item, fits in rows}

    def in_the_last_hour(self, rater: Rater) -> int:
        """How many judgements of one rater are younger than an hour."""
        with self._transaction("DEFERRED") as connection:
            recent = "SELECT COUNT(*) FROM ratings WHERE rater = ? AND at > datetime('now', '-1 hour')"
            return connection.execute(recent, [rater.id]).fetchone()[0]

    def all(self) -> list[Rating]:
        """What everybody said, by rater and item: for the instructor alone."""
        with self._transaction("DEFERRED") as connection:
            rows = connection.execute(
                "SELECT name, item, fits, at FROM ratings JOIN raters ON raters.id = rater ORDER BY raters.id, item"
            ).fetchall()
        return [Rating(name, item, bool(fits), at) for name, item, fits, at in rows]

    @contextlib.contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """All that happens within happens together or not at all; what only reads is DEFERRED, and hinders nobody."""
        try:
            connection = self._connection()
            connection.execute(f"BEGIN {kind}")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except (sqlite3.Error, OSError) as problem:
            raise ValueError(
                f"the ratings in {self.path} cannot be read or written ({problem}), so nothing was kept; try again, or "
                f"start the app with another folder: magnet-lab app --ratings FOLDER"
            ) from problem

    def _connection(self) -> sqlite3.Connection:
        if not hasattr(self._own, "connection"):
            with self._opening:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                # Transactions are written out above; whoever finds the file locked waits so many seconds.
                connection = sqlite3.connect(self.path, timeout=10, isolation_level=None)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA foreign_keys = ON")
                connection.executescript(_TABLES)
            self._own.connection = connection
        return self._own.connection


def _hash(key: str) -> str:
    # A key is random and long: there is nothing to guess, so one round of a plain hash is enough.
    return hashlib.sha256(str(key).encode("utf-8", "surrogatepass")).hexdigest()
