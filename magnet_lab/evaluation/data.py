"""What is measured on: samples that come with the project, local files, or the hub's datasets."""

import json
from dataclasses import dataclass
from pathlib import Path

from magnet_lab.data.rows import TEXTS
from magnet_lab.evaluation.similarity import read_pairs

HUB = {
    "STS12": "mteb/sts12-sts",
    "STS13": "mteb/sts13-sts",
    "STS14": "mteb/sts14-sts",
    "STS15": "mteb/sts15-sts",
    "STS16": "mteb/sts16-sts",
    "STS-B": "mteb/stsbenchmark-sts",
    "SICK-R": "mteb/sickr-sts",
}

# Names of the same in a folder of local files.
FILES = {
    "STS12": "sts/sts12.all.tsv",
    "STS13": "sts/sts13.all.tsv",
    "STS14": "sts/sts14.all.tsv",
    "STS-B": "sts/stsb.dev.tsv",
    "SICK-R": "sts/sickr.trial.tsv",
}
TOPIC_FILES = {
    "TwentyNewsgroups": "clustering/newsgroups20_subjects.tsv",
    "StackOverflow": "clustering/stackoverflow_titles.tsv",
}
TOPIC_HUB = {
    "BiorxivClustering": "mteb/biorxiv-clustering-s2s",
    "TwentyNewsgroups": "mteb/twentynewsgroups-clustering",
    "MedrxivClustering": "mteb/medrxiv-clustering-s2s",
}
STORY_FILES = "rocstories/roc_winter2017.storyendgen_val.detok.tsv"
PASSAGE_FILES = "wikitext/wikitext2.valid.tokens.txt"

Pairs = tuple[list[float], list[str], list[str]]  # scores, and the two sentences of each pair


@dataclass(frozen=True)
class Tagged:
    """A sentence's words, and for each task a tag a word."""

    words: list[str]
    tags: dict[str, list[str]]


@dataclass(frozen=True)
class Data:
    """Where texts come from.

    Attributes:
        source: "samples" (of the project), "hub", or a folder of local files.
    """

    source: str = "samples"

    def stories(self, most: int) -> list[str]:
        """Stories of five sentences that nothing was trained on. ROCStories, which the paper takes, are handed out on
        request alone, so in place of the hub the project's own serve."""
        if self.source in ("samples", "hub"):
            return (TEXTS / "stories-held-out.txt").read_text(encoding="utf-8").splitlines()[:most]
        lines = self._file(STORY_FILES).read_text(encoding="utf-8").splitlines()[1:]
        return [" ".join(line.split("\t")[-5:]) for line in lines][:most]

    def passages(self, most: int) -> list[str]:
        """Paragraphs of an encyclopedia, 40 words at least."""
        if self.source == "samples":
            return (TEXTS / "passages.txt").read_text(encoding="utf-8").splitlines()[:most]
        if self.source == "hub":
            lines = (row["text"] for row in _hub("Salesforce/wikitext", "test", None, "wikitext-103-raw-v1"))
        else:
            lines = iter(self._file(PASSAGE_FILES).read_text(encoding="utf-8").splitlines())
        found = []
        for line in lines:
            if len(line.split()) >= 40 and "<unk>" not in line:
                found.append(_as_written(line))
            if len(found) == most:
                break
        return found

    def similarity(self) -> dict[str, Pairs]:
        """Scored pairs of sentences by task; only those tasks that are there."""
        if self.source == "samples":
            return {"graded pairs": read_pairs(TEXTS / "graded.tsv")}
        if self.source == "hub":
            made = {}
            for task, name in HUB.items():
                rows = list(_hub(name, "test", None))
                made[task] = tuple([row[key] for row in rows] for key in ("score", "sentence1", "sentence2"))
            return made
        there = {task: Path(self.source) / name for task, name in FILES.items()}
        made = {task: read_pairs(path) for task, path in there.items() if path.is_file()}
        if not made:
            raise ValueError(f"{self.source} has none of {', '.join(FILES.values())}")
        return made

    def tagged(self) -> tuple[list[Tagged], list[Tagged]]:
        """Sentences with a chunk, a name and a part of speech for every word: to train a probe on, and to test it."""
        if self.source == "samples":
            found = read_conll(TEXTS / "words.conll")
            return found[:200], found[200:]
        if self.source == "hub":
            raise ValueError(
                "CoNLL-2003 is on the hub only as a program, which is never run here: give --data a folder"
            )
        return tuple(read_conll(self._file(f"conll2003/{name}")) for name in ("eng.train", "eng.testa"))

    def topics(self, most: int) -> dict[str, tuple[list[str], list[str]]]:
        """Labels and texts by task, spread evenly over each task's file."""
        made = {}
        if self.source == "hub":
            for task, name in TOPIC_HUB.items():
                row = next(iter(_hub(name, "test", None)))  # a row is a whole set of texts
                made[task] = _spread(list(zip(row["labels"], row["sentences"], strict=True)), most)
            return made
        files = {task: Path(self.source) / name for task, name in TOPIC_FILES.items()}
        if self.source == "samples":
            files = {"topics": TEXTS / "topics.tsv"}
        for task, path in files.items():
            if path.is_file():
                lines = path.read_text(encoding="utf-8").splitlines()
                made[task] = _spread([line.split("\t", 1) for line in lines if "\t" in line], most)
        if not made:
            raise ValueError(f"{self.source} has none of {', '.join(TOPIC_FILES.values())}")
        return made

    def questions(self) -> list[dict]:
        """Questions of general knowledge: `question`, four `choices`, the index of the `answer`, a `subject`."""
        lines = (TEXTS / "questions.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def _file(self, name: str) -> Path:
        path = Path(self.source) / name
        if not path.is_file():
            raise ValueError(f"there is no file {str(path)!r}; --data takes a folder with it, hub, or samples")
        return path


def read_conll(path: Path) -> list[Tagged]:
    """Sentences from lines of word, part of speech, chunk and entity, an empty line between two sentences.

    Raises:
        ValueError: for a line of another form, with its number.
    """
    found: list[Tagged] = []
    rows: list[list[str]] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate([*lines, ""], start=1):
        if line.strip() and not line.startswith("-DOCSTART-"):
            if len(columns := line.split()) != 4:
                raise ValueError(f"{path}, line {number}: a word and its three tags are wanted here")
            rows.append(columns)
        elif rows:
            words, speech, chunks, entities = (list(column) for column in zip(*rows, strict=True))
            found.append(Tagged(words, {"chunking": chunks, "NER": entities, "POS": speech}))
            rows = []
    return found


def _spread(rows: list, most: int) -> tuple[list[str], list[str]]:
    """Labels and texts of at most so many rows, spread evenly: files are often sorted by label."""
    step = max(1, -(-len(rows) // most))
    labels, texts = zip(*rows[::step], strict=True)
    return list(map(str, labels)), list(texts)


def _hub(name: str, split: str, most: int | None, config: str | None = None):
    try:
        from datasets import load_dataset
    except ImportError:
        raise ValueError(
            f"{name} is read from the hub with the package datasets (pip install 'magnet-lab[data]'); without it, give "
            "--data samples or a folder"
        ) from None
    rows = load_dataset(name, config, split=split, streaming=True)
    return rows if most is None else rows.take(most)


def _as_written(line: str) -> str:
    """Wikitext's tokens put back together: ` @-@ ` is a hyphen, and marks stand at their words."""
    for token, text in ((" @-@ ", "-"), (" @,@ ", ","), (" @.@ ", "."), (" 's", "'s"), (" n't", "n't"), ("( ", "(")):
        line = line.replace(token, text)
    for mark in ".,;:!?)":
        line = line.replace(f" {mark}", mark)
    parts = line.split('"')  # the first mark of a pair stands before a word, the second after one
    quoted = (f' "{part.strip()}" ' if number % 2 else part.strip() for number, part in enumerate(parts))
    return " ".join("".join(quoted).split()).replace('" .', '".').replace('" ,', '",')
