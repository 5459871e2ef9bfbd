"""Vectors of a corpus that fits into no memory: read as a stream, encoded shard by shard, read back by place.

A shard is the vectors of one stretch of the corpus, in a folder of its own. The folder is written under another name
and renamed when all of it is on the disk: a shard that is there is whole and is never made again, and a run that was
killed has lost no more than the shards it was at work on.

Where a stretch begins and ends follows from the texts alone. So several processes share a corpus without a word: each
reads all of it, which is cheap, and encodes every n-th shard, which is not.

    folder/manifest.json                how the vectors were made; at the end also how many there are
    folder/shard-000000/vectors.npy     (n, width) float32
                        ids.npy         (n,) int64: which text a vector is of, counted from 0 through the corpus
                        counts.json     how many texts there were, and how many of them are cut or without a vector
"""

import datetime
import itertools
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from accelerate import PartialState
from tqdm import tqdm

from magnet_lab import encoding
from magnet_lab.data import rows
from magnet_lab.data.rows import Corpus
from magnet_lab.model import Magnet, best_device
from magnet_lab.training.checkpoint import check_writable

# A shard ends at whichever comes first. It is what memory holds at a time, and what a kill can cost.
TEXTS_PER_SHARD = 4096
CHARACTERS_PER_SHARD = 2**20

TEXTS_PER_CALL = 256  # between two movements of the progress bar

MANIFEST = "manifest.json"


def process() -> PartialState:
    """This process among those that were started together (`accelerate launch`); its `.device` is its model's place."""
    return PartialState(
        cpu=best_device().type == "cpu",  # processes on CPUs find each other only if it is said
        timeout=datetime.timedelta(days=7),  # for the slowest, when the others are done
    )


def encode_corpus(
    lab: Magnet,
    corpus: Corpus,
    folder: Path | str,
    *,
    instruction: str | None = None,
    pooling: str = "last",
    truncate: bool = False,
    texts_per_shard: int = TEXTS_PER_SHARD,
    progress: bool = False,
) -> dict:
    """Write one vector for each text of a corpus into a folder, for `load` to read; memory does not grow with it.

    A folder that an earlier call with the same settings has begun is finished. Texts without a word have no vector.
    At the end one warning says how many those are, and how many were too long.

    Args:
        lab: the model; where there are several processes, on the device of `process()`.
        corpus: its texts, as `rows.texts` reads them, are numbered from 0.
        instruction, pooling: as in `encoding.encode`.
        truncate: cut a text that is too long; otherwise it has no vector.
        texts_per_shard: at most so many texts in a shard.
        progress: show a progress bar, with texts a second of all processes together.

    Returns:
        What is in manifest.json: "model", "adapter", "pooling", "instruction", "truncate", "dtype" (in which the model
        computed; vectors are float32), "width", "corpus", "texts_per_shard", "characters_per_shard", and the counts
        "shards" (vectors in each), "texts", "cut", "too_long" and "empty".

    Raises:
        ValueError: if the folder holds vectors that were made in another way, the corpus has no text, or a vector is
            not finite; and as `rows.texts` and `encoding.encode` do.
        OSError: if a shard cannot be written; those that are there stay.
    """
    folder, here = Path(folder), process()
    shards = _shards(rows.texts(corpus), texts_per_shard)
    first = next(shards, None)  # a file that is missing shows before anything is written
    if first is None:
        raise ValueError(f"there is no text in {', '.join(corpus.paths)}")
    how = {"instruction": instruction, "pooling": pooling, "truncate": True}  # what is not to be cut is not passed on
    settings = {
        "model": lab.name,
        "adapter": lab.adapter,
        "pooling": pooling,
        "instruction": encoding.DEFAULT_INSTRUCTION if instruction is None else instruction,
        "truncate": truncate,
        "dtype": str(lab.dtype).removeprefix("torch."),
        "width": lab.encode(["a"], **how).shape[1],  # a pooling that is not known shows as well
        "corpus": _name(corpus),
        "texts_per_shard": texts_per_shard,
        "characters_per_shard": CHARACTERS_PER_SHARD,
    }
    main = here.is_main_process
    check_writable(folder)
    _check_settings(folder, settings)  # by every process: all end with the same sentence
    if main:
        _begin(folder, settings)
    here.wait_for_everyone()
    if "shards" in _manifest(folder):
        return _manifest(folder)

    too_long = _length_test(lab, settings["instruction"], pooling)
    there, number = set(folder.glob("shard-*")), 0
    earlier = sum(_counts(place)["texts"] for place in there)  # a part of the way, and not of the speed
    with tqdm(unit=" texts", initial=earlier, disable=not (progress and main), smoothing=0) as bar:
        for shard, texts in enumerate(itertools.chain([first], shards)):
            place = _place(folder, shard)
            if place not in there and shard % here.num_processes == here.process_index:
                ids, kept, counts = _choose(texts, number, too_long, truncate)
                bar.update(len(texts) - len(kept))
                vectors = _encode(lab, kept, how, settings["width"], bar)
                _check_finite(vectors, ids)
                _write(place, vectors, ids, counts)
            elif place not in there:
                bar.update(len(texts))  # another process is at it
            number += len(texts)

    here.wait_for_everyone()
    if main:
        _finish(folder, settings, shard + 1)
        _tell(_manifest(folder), lab.max_length)
    here.wait_for_everyone()
    return _manifest(folder)


def load(folder: Path | str) -> tuple[np.ndarray, "Vectors"]:
    """The vectors of a folder that `encode_corpus` has written.

    Returns:
        ids: `(n,)` int64, which text of the corpus each vector is of, counted from 0; rising.
        vectors: the matrix `(n, width)`, left on the disk: see `Vectors`.

    Raises:
        ValueError: if the folder is no such folder, or is not finished.
    """
    folder = Path(folder)
    manifest = _manifest(folder)
    if manifest is None:
        raise ValueError(f"{folder} holds no {MANIFEST}: give a folder that encode_corpus has written")
    if "shards" not in manifest:
        raise ValueError(f"{folder} is not finished: start the command that writes it again, and it goes on")
    vectors = Vectors(folder, manifest["shards"], manifest["width"])
    places = (_place(folder, shard) / "ids.npy" for shard in range(len(manifest["shards"])))
    return np.concatenate([np.load(place, allow_pickle=False) for place in places]), vectors


class Vectors:
    """A matrix `(n, width)` of float32 on the disk, in several files; only what is asked for is read.

    `vectors[3]` is a row, `vectors[10:20]` and `vectors[[5, 2, 9]]` are rows, `vectors[mask]` those where a mask
    `(n,)` is True, each as an array in memory. `for part in vectors.parts()` goes through all of it.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, folder: Path, counts: list[int], width: int):
        """`counts`: vectors in each shard of the folder."""
        self.folder = folder
        self.shape = (sum(counts), width)
        self._ends = np.cumsum(counts)
        self._rows = np.arange(len(self))

    def __len__(self) -> int:
        return self.shape[0]

    def parts(self) -> Iterator[np.memmap]:
        """The matrix in order, `(n, width)` memory-mapped parts of it."""
        return (self._part(shard) for shard in range(len(self._ends)))

    def __getitem__(self, index) -> np.ndarray:
        wanted = self._rows[index]  # by the rules of numpy, and with its errors
        found = np.empty((*wanted.shape, self.shape[1]), dtype=self.dtype)
        shards = np.searchsorted(self._ends, wanted, side="right")
        for shard in np.unique(shards):
            part, here = self._part(shard), shards == shard
            found[here] = part[wanted[here] - (self._ends[shard] - len(part))]
        return found

    def _part(self, shard: int) -> np.memmap:
        # Opened each time: a folder may have more shards than a process may have files open.
        return np.load(_place(self.folder, shard) / "vectors.npy", mmap_mode="r", allow_pickle=False)


def _shards(texts: Iterable[str], most: int) -> Iterator[list[str]]:
    """The texts in stretches, each of at most so many texts and of CHARACTERS_PER_SHARD, or of one text."""
    shard, characters = [], 0
    for text in texts:
        if shard and (len(shard) == most or characters + len(text) > CHARACTERS_PER_SHARD):
            yield shard
            shard, characters = [], 0
        shard.append(text)
        characters += len(text)
    if shard:
        yield shard


def _length_test(lab: Magnet, instruction: str, pooling: str) -> Callable[[str], bool]:
    """Whether a text is longer than the model can read."""

    def length(text: str) -> int:
        return len(encoding.sentence_ids(lab.tokenizer, text, instruction, pooling)[0])

    around, copies = length("a"), 2 if pooling == "echo" else 1

    def too_long(text: str) -> bool:
        # A token stands for a byte at least: so most texts are known to fit without being tokenized once more.
        surely_fits = around + copies * len(text.encode()) <= lab.max_length
        return not surely_fits and length(text) > lab.max_length

    return too_long


def _choose(
    texts: list[str], number: int, too_long: Callable[[str], bool], truncate: bool
) -> tuple[np.ndarray, list[str], dict]:
    """The numbers and texts of those that get a vector, the first of all being text `number`; and the counts."""
    ids, kept = [], []
    counts = {"texts": len(texts), "cut": 0, "too_long": 0, "empty": 0}
    for index, text in enumerate(texts, start=number):
        if not text.strip():
            counts["empty"] += 1
            continue
        if too_long(text):
            counts["cut" if truncate else "too_long"] += 1
            if not truncate:
                continue
        ids.append(index)
        kept.append(text)
    return np.array(ids, dtype=np.int64), kept, counts | {"vectors": len(kept)}


def _encode(lab: Magnet, texts: list[str], how: dict, width: int, bar: tqdm) -> np.ndarray:
    """The vectors of a shard's texts, `(len(texts), width)`, in some calls of `encode`, so that the bar moves."""
    vectors = np.empty((len(texts), width), dtype=np.float32)
    longest_first = np.argsort([-len(text) for text in texts], kind="stable")  # a call's texts are of like length
    for start in range(0, len(texts), TEXTS_PER_CALL):
        part = longest_first[start : start + TEXTS_PER_CALL]
        vectors[part] = lab.encode([texts[index] for index in part], **how).numpy()
        bar.update(len(part))
    return vectors


def _check_finite(vectors: np.ndarray, ids: np.ndarray) -> None:
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise ValueError(f"the vector of text {ids[~finite][0]:,} is not finite: load the model with dtype float32")


def _place(folder: Path, shard: int) -> Path:
    return folder / f"shard-{shard:06d}"


def _counts(place: Path) -> dict:
    return json.loads((place / "counts.json").read_text(encoding="utf-8"))


def _write(place: Path, vectors: np.ndarray, ids: np.ndarray, counts: dict) -> None:
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        part.mkdir()
        np.save(part / "vectors.npy", vectors, allow_pickle=False)
        np.save(part / "ids.npy", ids, allow_pickle=False)
        (part / "counts.json").write_text(json.dumps(counts), encoding="utf-8")
        for path in part.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        if not place.is_dir():  # a process that outlived the run before this one may have been quicker
            part.rename(place)
    except OSError as error:
        raise OSError(
            f"{place} could not be written: {error}; make room and start the same command again: it goes on from here"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _check_settings(folder: Path, settings: dict) -> None:
    """That a folder which holds vectors holds such as these.

    Raises:
        ValueError: if they were made in another way.
    """
    manifest = _manifest(folder) or settings
    for name, value in settings.items():
        if manifest.get(name) != value:
            raise ValueError(
                f"{folder} holds vectors made with {name} {manifest.get(name)!r}, and this call has {value!r}: choose "
                "another folder, or delete it to start anew"
            )


def _begin(folder: Path, settings: dict) -> None:
    if _manifest(folder) is None:
        _write_manifest(folder, settings)
    for left_by_a_kill in folder.glob(".shard-*.part"):
        shutil.rmtree(left_by_a_kill, ignore_errors=True)


def _finish(folder: Path, settings: dict, shards: int) -> None:
    counts = [_counts(_place(folder, shard)) for shard in range(shards)]
    totals = {name: sum(count[name] for count in counts) for name in ("texts", "cut", "too_long", "empty")}
    _write_manifest(folder, settings | {"shards": [count["vectors"] for count in counts]} | totals)


def _manifest(folder: Path) -> dict | None:
    path = folder / MANIFEST
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _write_manifest(folder: Path, manifest: dict) -> None:
    part = folder / f".{MANIFEST}.part"
    with part.open("w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, folder / MANIFEST)


def _name(corpus: Corpus) -> str:
    """What tells a corpus from others and from itself with a text more, wherever the files may lie now."""
    files = [(name, rows.local_file(name)) for name in corpus.paths]
    names = [f"{path.name} of {path.stat().st_size} bytes" if path else name for name, path in files]
    return "; ".join([*names, *filter(None, [corpus.config, corpus.split, corpus.column])])


def _tell(manifest: dict, limit: int) -> None:
    """One warning about the texts whose vectors are not what one might think."""
    long = f"longer than the model's {limit:,} tokens"
    notes = {
        "cut": f"{long}, cut",
        "too_long": f"{long}, left out (truncate=True, or --truncate, cuts instead)",
        "empty": "without a word, left out",
    }
    told = [f"{manifest[name]:,} {note}" for name, note in notes.items() if manifest[name]]
    if told:
        warnings.warn(f"of {manifest['texts']:,} texts: {'; '.join(told)}", stacklevel=3)
