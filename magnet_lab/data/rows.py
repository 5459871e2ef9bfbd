"""A corpus as rows of tokens, written once to a file that is then read by place: no corpus is too large for memory."""

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import LongTensor
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from magnet_lab import zoo
from magnet_lab.decoder import start_ids

TEXTS = Path(__file__).parent.parent / "texts"  # those that come with the project
PADDING = -1  # in the file, where no token of any tokenizer is negative


@dataclass
class Corpus:
    """Texts to train on.

    Attributes:
        paths: files (.txt: a text a line; .jsonl, .parquet: a column of texts), the project's own (stories.txt), or
            the id of a dataset on the hub.
        column: name of the texts' column.
        config, split: of a dataset on the hub.
        pack: join texts, an end-of-text token between them, and cut them into rows of full length; else a text a row.
    """

    paths: list[str]
    column: str = "text"
    config: str | None = None
    split: str = "train"
    pack: bool = True


def local_file(name: str) -> Path | None:
    """A file by its path, or one of the project's own texts by its name; None if there is neither."""
    return next((path for path in (Path(name), TEXTS / name) if path.is_file()), None)


def texts(corpus: Corpus) -> Iterator[str]:
    """The texts of a corpus, one after the other, read as they are needed.

    Raises:
        ValueError: if a file is missing or of a kind that is not read.
    """
    for name in corpus.paths:
        path = local_file(name)
        if path is None and Path(name).suffix in (".txt", ".jsonl", ".json", ".parquet", ".csv", ".tsv"):
            raise ValueError(f"there is no file {name!r} to train on")
        if path is not None and path.suffix == ".txt":
            with path.open(encoding="utf-8") as lines:
                yield from (line.strip() for line in lines if line.strip())
        elif path is not None and path.suffix == ".jsonl":
            with path.open(encoding="utf-8") as lines:
                yield from (_column(json.loads(line), corpus.column, path) for line in lines)
        else:
            yield from _dataset(path or Path(name), corpus)


def rows(corpus: Corpus, tokenizer: PreTrainedTokenizerBase, length: int) -> "Rows":
    """The rows of a corpus, tokenized now or taken from an earlier run's file in the cache folder."""
    files = [(str(path), path.stat().st_mtime, path.stat().st_size) for path in map(local_file, corpus.paths) if path]
    key = json.dumps([vars(corpus), files, length, tokenizer.get_vocab()], sort_keys=True)
    folder = zoo.cache_folder() / "rows"
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:20]}.npy"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _write(path, corpus, tokenizer, length)
    return Rows(np.load(path, mmap_mode="r"))


class Rows:
    """Rows of tokens, `(count, length)`, on disk; drawn in an order that depends on nothing but a seed and a step."""

    def __init__(self, array: np.ndarray):
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def batch(self, step: int, size: int, seed: int) -> tuple[LongTensor, LongTensor]:
        """The rows of a step and where their tokens are, `(size, longest)` each: no wider than their longest row.

        A run that is continued needs only the number of its step to find its place.
        """
        places = [place(step * size + offset, len(self.array), seed) for offset in range(size)]
        ids = torch.from_numpy(self.array[places].astype(np.int64))
        ids = ids[:, : int((ids != PADDING).sum(dim=1).max())]
        return ids.clamp(min=0), (ids != PADDING).long()


def place(draw: int, count: int, seed: int) -> int:
    """Which of `count` things is the `draw`-th: each once before any twice, in an order of its own each round."""
    turn, offset = divmod(draw, count)
    return int(_order(count, seed, turn)[offset])


@functools.lru_cache(maxsize=8)
def _order(count: int, seed: int, turn: int) -> np.ndarray:
    return np.random.default_rng((seed, turn)).permutation(count)


def _write(path: Path, corpus: Corpus, tokenizer: PreTrainedTokenizerBase, length: int) -> None:
    """Tokenize into a file beside the target, then rename: a file that is there is whole."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    count = 0
    try:
        with os.fdopen(handle, "wb") as out:
            for row in _tokenized(corpus, tokenizer, length):
                out.write(np.array(row + [PADDING] * (length - len(row)), dtype=np.int32).tobytes())
                count += 1
        if not count:
            raise ValueError(f"there is no text in {', '.join(corpus.paths)}")
        flat = np.memmap(temporary, dtype=np.int32, mode="r", shape=(count, length))
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as whole:
            np.save(whole, flat)
        os.replace(whole.name, path)
    finally:
        os.unlink(temporary)


def _tokenized(corpus: Corpus, tokenizer: PreTrainedTokenizerBase, length: int) -> Iterator[list[int]]:
    opening, stream = start_ids(tokenizer), []
    for ids in tqdm(_ids(tokenizer, texts(corpus)), desc="reading the corpus", unit=" texts", leave=False):
        if not corpus.pack:
            yield [*opening, *ids, tokenizer.eos_token_id][:length]
            continue
        stream += [*opening, *ids, tokenizer.eos_token_id]
        while len(stream) >= length:
            yield stream[:length]
            stream = stream[length:]


def _ids(tokenizer: PreTrainedTokenizerBase, lines: Iterable[str]) -> Iterator[list[int]]:
    batch = []
    for line in lines:
        batch.append(line)
        if len(batch) == 1000:
            yield from tokenizer(batch, add_special_tokens=False)["input_ids"]
            batch = []
    if batch:
        yield from tokenizer(batch, add_special_tokens=False)["input_ids"]


def _column(record: dict, column: str, path: Path) -> str:
    if column not in record:
        raise ValueError(f"{path} has no column {column!r}; it has {', '.join(record)}")
    return " ".join(str(record[column]).split())


def _dataset(path: Path, corpus: Corpus) -> Iterator[str]:
    """A parquet file or a dataset of the hub, through `datasets`, as a stream."""
    try:
        from datasets import load_dataset
    except ImportError:
        raise ValueError(f"reading {str(path)!r} takes the package datasets: pip install 'magnet-lab[data]'") from None
    if path.suffix == ".parquet":
        records = load_dataset("parquet", data_files=str(path), split="train", streaming=True)
    else:
        records = load_dataset(str(path), corpus.config, split=corpus.split, streaming=True)
    for record in records:
        if text := _column(record, corpus.column, path):
            yield text
