"""A class at work: many people who click on all pages of the app at once, on this machine's loopback.

Each person does one thing after the other, at random: opens a page, has something drawn, asks the model, judges a
story. Then the model is left in the middle of an answer, as by a tab that is closed; and it fills blanks for as long as
it takes to see whether memory grows.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import re
import secrets
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from magnet_lab.bench._report import hardware
from magnet_lab.evaluation.experiment import Result, Row

# What is asked, by the names of the API, with what differs from the inputs as they stand on the page.
DRAWING = {
    "masks": {"token": 3},
    "masks_picture": {"token": 3},
    "masks_leak": {"cell": "3, 8"},
    "objectives": {},
    "objectives_total": {},
    "prefix_masks": {},
    "results_table": {"model": "small", "table": "table4"},
    "start": {},
    "unilmv2_step": {},
}
ASKING = {
    "infill": {"story": "Tom went to the park. [blank:8] He was sad.", "candidates": 1},
    "generate": {"prefix": "Once upon a time", "chosen": ["base"], "tokens": 16},
    "score_infill": {},
    "compare_words": {},
    "objectives_predict": {},
}
SHARES = {"opening": 1, "drawing": 5, "asking": 3, "judging": 2}  # of all clicks
PAUSE = 1.0  # seconds before a person's next click, on average
PATIENCE = 600  # seconds; somebody who waits longer counts as an error
REFUSAL = re.compile(r'role="alert"><p[^>]*>([^<]*)')  # what a page says in place of an answer


@dataclass
class Found:
    """What all people together saw; threads add to it under `lock`."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in SHARES})
    errors: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # in the queue, as they were shown
    confirmed: dict[tuple[str, int], bool] = field(default_factory=dict)  # code name and story: the last answer
    lock: threading.Lock = field(default_factory=threading.Lock)


class App:
    """A served app, called as its own pages call it."""

    def __init__(self, port: int):
        self.port = port
        config = json.loads(self._send("GET", "/config"))
        self.pages = [path for path, *_ in config["pages"]]
        self._functions = {each["api_name"]: each for each in config["dependencies"] if each["api_name"]}
        described = json.loads(self._send("GET", "/gradio_api/info"))["named_endpoints"]
        self._inputs = {
            name.lstrip("/"): {each["parameter_name"]: each.get("parameter_default") for each in endpoint["parameters"]}
            for name, endpoint in described.items()
        }

    def open(self, page: str) -> None:
        self._send("GET", f"/{page}")

    def events(self, name: str, changed: dict, session: str) -> Iterator[dict]:
        """All messages of one event, as they come; closing the iterator closes the connection, as a tab does."""
        endpoint = self._functions[name]
        data = [changed.get(key, value) for key, value in self._inputs[name].items()]
        body = {"data": data, "fn_index": endpoint["id"], "session_hash": session}
        if endpoint["queue"] is False:
            yield {"msg": "process_completed", "success": True, "output": self._post("/gradio_api/run/predict", body)}
            return
        self._post("/gradio_api/queue/join", body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", f"/gradio_api/queue/data?session_hash={session}")
            for line in connection.getresponse():
                if line.startswith(b"data: "):
                    message = json.loads(line.removeprefix(b"data: "))
                    yield message
                    if message["msg"] in ("process_completed", "close_stream"):
                        return
        finally:
            with contextlib.suppress(OSError):
                if connection.sock is not None:
                    connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _post(self, path: str, body: dict) -> dict:
        return json.loads(self._send("POST", path, json.dumps(body).encode()))

    def _send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise OSError(f"{method} {path}: {answer.status} {content[:200].decode(errors='replace')}")
        return content


@contextlib.contextmanager
def served(model: str, folder: Path) -> Iterator[tuple[App, int]]:
    """The app in a process of its own, its model loaded, stories to judge in `folder`; and that process's number."""
    stories = {f"Story {number} begins. [blank] It ends.": "Something happens." for number in range(20)}
    rows = {system: Row({}, stories) for system in ("base", "MAGNET")}
    Result("table5", model, "made up", False, 0, "", {}, None, rows).save(folder / "table5.json")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "MODEL": model, "PORT": str(port), "HOST": "127.0.0.1"}
    environment |= {"MAGNET_LAB_RATINGS": str(folder), "MAGNET_LAB_LIMIT_RATINGS_AN_HOUR": "1000000"}
    process = subprocess.Popen(
        [sys.executable, "-m", "magnet_lab.app"], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        if "magnet_lab is at" not in process.stdout.readline():
            raise SystemExit("The app did not start; `magnet-lab app` says why.")
        app = App(port)
        for name, changed in (*ASKING.items(), *DRAWING.items()):  # the first of each is slower
            list(app.events(name, changed, secrets.token_hex(6)))
        yield app, process.pid
    finally:
        process.terminate()
        process.wait()


def person(app: App, number: int, until: float, found: Found) -> None:
    """Click until the time is over."""
    chance, session, name = random.Random(number), secrets.token_hex(6), f"rater {number}"
    key = item = None
    while time.monotonic() < until:
        (kind,) = chance.choices(list(SHARES), list(SHARES.values()))
        begun = time.monotonic()
        try:
            if kind == "judging":
                if key is None:
                    key = _completed(app.events("judge_begin", {"name": name, "consents": True}, session), found)[0]
                    item = _completed(app.events("judge_next", {"key": key}, session), found)[0]["item"]
                if item is None:  # all are judged; once more the first
                    item = 1
                answer = {"key": key, "item": item, "fits": chance.random() < 0.5}
                question = _completed(app.events("judge_answer", answer, session), found)[0]
                with found.lock:
                    found.confirmed[name, item] = answer["fits"]
                item = question["item"]
            elif kind == "opening":
                app.open(chance.choice(app.pages))
            else:
                names = DRAWING if kind == "drawing" else ASKING
                asked = chance.choice(list(names))
                _completed(app.events(asked, names[asked], session), found)
            with found.lock:
                found.seconds[kind].append(time.monotonic() - begun)
        except Exception as problem:  # whatever it is, it is what a person would have seen
            with found.lock:
                found.errors.append(f"{kind}: {problem}")
        time.sleep(chance.expovariate(1 / PAUSE))


def _completed(messages: Iterator[dict], found: Found) -> list:
    """The last message's data; the places in the queue that were shown on the way are noted.

    Raises:
        OSError: if it is no answer, or one that says why there is none.
    """
    for message in messages:
        if message["msg"] == "estimation" and message.get("rank") is not None:
            with found.lock:
                found.places.append(message["rank"])
        if message["msg"] == "process_completed":
            if not message["success"]:
                raise OSError(message["output"].get("error"))
            data = message["output"]["data"]
            for refusal in (REFUSAL.search(part) for part in data if isinstance(part, str)):
                if refusal:
                    raise OSError(refusal[1])
            return data
    raise OSError("the answer broke off")


def class_at_work(app: App, people: int, minutes: float) -> Found:
    found, until = Found(), time.monotonic() + 60 * minutes
    threads = [threading.Thread(target=person, args=[app, number, until, found]) for number in range(people)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def lost(found: Found, folder: Path) -> int:
    """How many answers were confirmed to a rater and are not on the disk, or another one is."""
    with contextlib.closing(sqlite3.connect(folder / "ratings.sqlite")) as ratings:
        rows = ratings.execute("SELECT name, item, fits FROM ratings JOIN raters ON raters.id = rater").fetchall()
    kept = {(name, item): bool(fits) for name, item, fits in rows}
    return sum(kept.get(rated) != fits for rated, fits in found.confirmed.items())


def seconds_to_free(app: App) -> float:
    """From the moment that somebody leaves in the middle of a long answer until the next one's begins."""
    long = {"prefix": "Once upon a time", "chosen": ["base", "magnet"], "tokens": 256}
    leaving = app.events("generate", long, secrets.token_hex(6))
    shown = 0
    for message in leaving:
        shown += message["msg"] == "process_generating"
        if shown == 3:
            break
    leaving.close()
    begun = time.monotonic()
    for message in app.events("generate", {**long, "chosen": ["base"], "tokens": 8}, secrets.token_hex(6)):
        if message["msg"] == "process_generating":
            return time.monotonic() - begun
    raise SystemExit("Nobody was answered after a tab was closed.")


def memory(pid: int) -> float:
    """What a process keeps in memory, in MB; of Linux alone."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def infills(app: App, pid: int, count: int) -> list[float]:
    """Memory after each tenth of so many infills, in MB."""
    found, tenth = [], max(1, count // 10)
    for number in range(1, count + 1):
        story = f"Tom went to the park on day {number}. [blank:2] He was sad."
        asked = {"story": story, "candidates": 1, "seed": number}
        _completed(app.events("infill", asked, secrets.token_hex(6)), Found())
        if number % tenth == 0:
            found.append(memory(pid))
    return found


def _percentile(seconds: list[float]) -> float:
    return float(np.percentile(seconds, 95)) if seconds else float("nan")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="small")
    options.add_argument("--people", type=int, default=30)
    options.add_argument("--minutes", type=float, default=3)
    options.add_argument("--infills", type=int, default=1000, help="to see whether memory grows; 0 leaves that out")
    options.add_argument("--json", type=Path, help="write the result to this file as well")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with served(options.model, folder) as (app, pid):
            found = class_at_work(app, options.people, options.minutes)
            freed = seconds_to_free(app)
            kept = infills(app, pid, options.infills)
        figures = {
            "people": options.people,
            "minutes": options.minutes,
            "errors": len(found.errors),
            "ratings confirmed": len(found.confirmed),
            "ratings lost": lost(found, folder),
            "times a place in the queue was shown": len(found.places),
            "last place in the queue": max(found.places, default=0) + 1 if found.places else 0,
            **{f"{kind}, clicks": len(seconds) for kind, seconds in found.seconds.items()},
            **{f"{kind}, s (95th percentile)": _percentile(found.seconds[kind]) for kind in SHARES},
            "model free after a tab is closed, s": freed,
        }
        if options.infills:
            figures["infills"] = options.infills
            figures["memory after a tenth of them, MB"] = kept[0]
            figures["memory after all, MB"] = kept[-1]
            figures["furthest from the first (%)"] = max((100 * (each / kept[0] - 1) for each in kept), key=abs)
    result = {"measurement": "app", "model": options.model, "hardware": hardware(), **figures}
    for key, value in result.items():
        print(f"{key:>40}: {value:.3g}" if isinstance(value, float) else f"{key:>40}: {value}")
    for error in sorted(set(found.errors))[:10]:
        print(f"error: {error}", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
