"""A corpus's folder of vectors against one text at a time; what a kill leaves; what is refused."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from decoders import random_decoder

from magnet_lab import Magnet, corpus, zoo
from magnet_lab.corpus import encode_corpus, load
from magnet_lab.data.rows import Corpus

SENTENCE = "Tom had a red ball and lost it in the park under one big tree"
TEXTS = [f"Text {number}: {SENTENCE[: 3 + number * 17 % len(SENTENCE)]}." for number in range(23)]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS))
    return path


@pytest.fixture(scope="module")
def one_by_one(tiny_lab):
    """`(23, width)`: the slow way."""
    return torch.stack([tiny_lab.encode([text])[0] for text in TEXTS]).numpy()


@pytest.fixture(scope="module")
def short_lab():
    """Reads 48 tokens at most."""
    tokenizer = zoo.load_tokenizer(zoo.resolve("tiny"))
    return Magnet(random_decoder(vocab_size=len(tokenizer), max_position_embeddings=48), tokenizer)


@pytest.fixture
def encoded(tiny_lab, monkeypatch):
    """The texts that the model has been given, in a list; vectors of no meaning, in no time."""
    given = []

    def encode(texts, **_):
        given.extend(texts)
        return torch.tensor([[float(len(given))] * 2]).expand(len(texts), 2)

    monkeypatch.setattr(tiny_lab, "encode", encode)
    return given


def files(folder: Path) -> dict[str, tuple]:
    """What is in a folder, with what would change if a file were written again."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def test_every_text_has_its_vector(tiny_lab, path, one_by_one, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "TEXTS_PER_CALL", 3)
    manifest = encode_corpus(tiny_lab, Corpus([str(path)]), tmp_path / "v", texts_per_shard=7)
    ids, vectors = load(tmp_path / "v")
    assert ids.tolist() == list(range(23))
    assert vectors.shape == one_by_one.shape and vectors.dtype == np.float32
    assert np.abs(vectors[:] - one_by_one).max() < 1e-5
    assert manifest == json.loads((tmp_path / "v" / "manifest.json").read_text())
    assert manifest == manifest | {
        "model": "tiny",
        "adapter": None,
        "pooling": "last",
        "instruction": "Given the sentence, find its representation",
        "dtype": "float32",
        "width": one_by_one.shape[1],
        "shards": [7, 7, 7, 2],
        "texts": 23,
    }


def test_instruction_and_pooling_are_passed_on(tiny_lab, path, tmp_path):
    encode_corpus(tiny_lab, Corpus([str(path)]), tmp_path / "v", instruction="Find it", pooling="mean")
    expected = tiny_lab.encode([TEXTS[5]], instruction="Find it", pooling="mean")[0].numpy()
    assert np.abs(load(tmp_path / "v")[1][5] - expected).max() < 1e-5


def test_kinds_of_files(tiny_lab, encoded, tmp_path):
    (tmp_path / "a.txt").write_text("One.\n\n  \nTwo.\n")
    (tmp_path / "b.jsonl").write_text('{"t": "Three."}\n{"t": "Four."}\n')
    with pytest.raises(ValueError, match="no column 'text'; it has t"):
        encode_corpus(tiny_lab, Corpus([str(tmp_path / "b.jsonl")]), tmp_path / "v")
    (tmp_path / "b.jsonl").write_text('{"text": "Three."}\n{"text": ""}\n{"text": "Four."}\n')
    both = Corpus([str(tmp_path / "a.txt"), str(tmp_path / "b.jsonl")])
    with pytest.warns(UserWarning, match="^of 5 texts: 1 without a word, left out$"):
        encode_corpus(tiny_lab, both, tmp_path / "v")
    assert set(encoded) - {"a"} == {"One.", "Two.", "Three.", "Four."}
    assert load(tmp_path / "v")[0].tolist() == [0, 1, 2, 4]


def test_parquet(tiny_lab, encoded, tmp_path):
    pytest.importorskip("datasets")
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"text": ["One.", "Two."], "more": [1, 2]}), tmp_path / "c.parquet")
    encode_corpus(tiny_lab, Corpus([str(tmp_path / "c.parquet")]), tmp_path / "v")
    assert set(encoded) - {"a"} == {"One.", "Two."}


def text_of(lab, tokens: int, word: str = " Tom") -> str:
    """A text that comes to so many tokens with what is put around it; it has many more bytes."""
    around = len(lab.tokenizer("Given the sentence, find its representation:")["input_ids"]) + 1
    text = word.strip() + word * (tokens - around - 1)
    assert len(lab.tokenizer(" " + text, add_special_tokens=False)["input_ids"]) == tokens - around
    return text


@pytest.mark.parametrize("truncate", [False, True])
def test_long_texts_are_left_out_or_cut_and_told(short_lab, tmp_path, truncate):
    fits, over, far = text_of(short_lab, 48), text_of(short_lab, 49), text_of(short_lab, 90)
    assert len(fits) > 48
    (tmp_path / "t.txt").write_text("\n".join([over, "Hi", fits, far, far, "Tom"]))
    note = "cut$" if truncate else r"left out \(truncate=True, or --truncate, cuts instead\)$"
    with pytest.warns(UserWarning, match=f"^of 6 texts: 3 longer than the model's 48 tokens, {note}") as told:
        manifest = encode_corpus(
            short_lab, Corpus([str(tmp_path / "t.txt")]), tmp_path / "v", truncate=truncate, texts_per_shard=2
        )
    assert len(told) == 1
    assert [manifest["cut"], manifest["too_long"], manifest["empty"]] == ([3, 0, 0] if truncate else [0, 3, 0])
    ids, vectors = load(tmp_path / "v")
    assert ids.tolist() == (list(range(6)) if truncate else [1, 2, 5])
    expected = [over, "Hi", fits, far, far, "Tom"] if truncate else ["Hi", fits, "Tom"]
    for vector, text in zip(vectors[:], expected, strict=True):
        assert np.abs(vector - short_lab.encode([text], truncate=truncate)[0].numpy()).max() < 1e-5


def test_a_character_may_be_several_tokens(short_lab, tmp_path):
    assert len(short_lab.tokenizer("𓀀" * 12)["input_ids"]) > 48
    (tmp_path / "t.txt").write_text("𓀀" * 12 + "\nTom", encoding="utf-8")
    with pytest.warns(UserWarning, match="of 2 texts: 1 longer"):
        encode_corpus(short_lab, Corpus([str(tmp_path / "t.txt")]), tmp_path / "v")
    assert load(tmp_path / "v")[0].tolist() == [1]


def test_echo_reads_a_text_twice(short_lab, tmp_path):
    """One that fits alone, at 36 tokens with the instruction, and not twice."""
    (tmp_path / "t.txt").write_text("Tom had a ball\n" + "𓀀" * 5, encoding="utf-8")
    with pytest.warns(UserWarning, match="of 2 texts: 1 longer"):
        encode_corpus(short_lab, Corpus([str(tmp_path / "t.txt")]), tmp_path / "v", pooling="echo")
    assert load(tmp_path / "v")[0].tolist() == [0]


def test_a_shard_holds_no_more_than_its_characters(tiny_lab, encoded, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "CHARACTERS_PER_SHARD", 10)
    (tmp_path / "t.txt").write_text("\n".join(["aaaa", "bbbb", "cccc", "dddddddddddd", "eeeeeeeee", "f", "g"]))
    manifest = encode_corpus(tiny_lab, Corpus([str(tmp_path / "t.txt")]), tmp_path / "v")
    assert manifest["shards"] == [2, 1, 1, 2, 1]


def test_memory_does_not_grow_with_the_corpus(tiny_lab, tmp_path, monkeypatch):
    """That of everything but the model: the texts, the vectors, the ids."""
    monkeypatch.setattr(tiny_lab, "encode", lambda texts, **_: torch.zeros(len(texts), 64))
    peaks = {}
    for times in (1, 20):
        path = tmp_path / f"{times}.txt"
        path.write_text("".join(f"{number:0200d}\n" for number in range(500 * times)))
        tracemalloc.start()
        encode_corpus(tiny_lab, Corpus([str(path)]), tmp_path / f"v{times}", texts_per_shard=250)
        peaks[times] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[20] < 1.3 * peaks[1]


def test_what_is_there_is_not_made_again(tiny_lab, encoded, path, tmp_path):
    folder = tmp_path / "v"
    encode_corpus(tiny_lab, Corpus([str(path)]), folder, texts_per_shard=5)
    whole = files(folder)
    encoded.clear()
    encode_corpus(tiny_lab, Corpus([str(path)]), folder, texts_per_shard=5)
    assert encoded == ["a"] and files(folder) == whole  # "a" is there to see how wide vectors are

    # As a kill leaves it: the second shard half written, the fourth not begun, and so no end of the manifest.
    (folder / "shard-000001").rename(folder / ".shard-000001.4711.part")
    (folder / ".shard-000001.4711.part" / "counts.json").unlink()
    shutil.rmtree(folder / "shard-000003")
    manifest = json.loads((folder / "manifest.json").read_text())
    begun = {key: manifest[key] for key in manifest if key not in ("shards", "texts", "cut", "too_long", "empty")}
    (folder / "manifest.json").write_text(json.dumps(begun))
    with pytest.raises(ValueError, match="v is not finished: start the command"):
        load(folder)
    encoded.clear()
    assert encode_corpus(tiny_lab, Corpus([str(path)]), folder, texts_per_shard=5) == manifest
    assert sorted(encoded) == sorted(["a", *TEXTS[5:10], *TEXTS[15:20]])
    after = files(folder)
    assert after.keys() == whole.keys()
    again = ("manifest.json", "shard-000001", "shard-000003")
    assert all((after[name] == whole[name]) != name.startswith(again) for name in whole)
    assert load(folder)[0].tolist() == list(range(23))


def test_rows_are_read_by_place(short_lab, tmp_path):
    texts = ["Tom", "a ball", *[text_of(short_lab, 60)] * 2, "one", "big tree", "red"]  # the second shard stays empty
    (tmp_path / "t.txt").write_text("\n".join(texts))
    with pytest.warns(UserWarning):
        encode_corpus(short_lab, Corpus([str(tmp_path / "t.txt")]), tmp_path / "v", texts_per_shard=2)
    ids, vectors = load(tmp_path / "v")
    parts = [np.load(tmp_path / "v" / f"shard-{shard:06d}" / "vectors.npy") for shard in range(4)]
    whole = np.concatenate(parts)
    assert [len(part) for part in parts] == [2, 0, 2, 1] and ids.tolist() == [0, 1, 4, 5, 6]
    assert len(vectors) == 5 and vectors.shape == whole.shape
    assert len(np.unique(whole[:, 0])) == 5
    for index in (0, 3, -1, np.int64(2), slice(1, 4), slice(None, None, -2), [4, 0, 0, 2], ids > 1, slice(0)):
        assert np.array_equal(vectors[index], whole[index])
    assert all(isinstance(part, np.memmap) for part in vectors.parts())
    assert np.array_equal(np.concatenate(list(vectors.parts())), whole)
    with pytest.raises(IndexError):
        vectors[5]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"pooling": "mean"}, "pooling 'last', and this call has 'mean'"),
        ({"instruction": ""}, "instruction 'Given the sentence, find its representation', and this call has ''"),
        ({"truncate": True}, "truncate False, and this call has True"),
        ({"texts_per_shard": 4}, "texts_per_shard 5, and this call has 4"),
        ({"lab.name": "small"}, "model 'tiny', and this call has 'small'"),
        ({"lab.adapter": "magnet"}, "adapter None, and this call has 'magnet'"),
        ({"text": "One more.\n"}, r"corpus 'texts.txt of \d+ bytes; train; text', and this call has 'texts.txt of"),
    ],
)
def test_a_folder_of_other_vectors_is_refused(tiny_lab, encoded, path, tmp_path, monkeypatch, changes, sentence):
    folder, call = tmp_path / "v", {"texts_per_shard": 5}
    encode_corpus(tiny_lab, Corpus([str(path)]), folder, **call)
    whole = files(folder)
    for name, value in changes.items():
        if name.startswith("lab."):
            monkeypatch.setattr(tiny_lab, name.removeprefix("lab."), value)
        elif name == "text":
            path.write_text(path.read_text() + value)
        else:
            call[name] = value
    with pytest.raises(ValueError, match=f"v holds vectors made with {sentence}.*: choose another folder, or") as error:
        encode_corpus(tiny_lab, Corpus([str(path)]), folder, **call)
    assert "\n" not in str(error.value) and files(folder) == whole


def test_mistakes_show_before_anything_is_written(tiny_lab, path, tmp_path):
    (tmp_path / "empty.txt").write_text("\n")
    for name, options, sentence in [
        (path, {"pooling": "max"}, "pooling 'max' is not known"),
        (path, {"instruction": "Find it " * 600}, "no room in the model's 1,024 tokens"),
        (tmp_path / "empty.txt", {}, "there is no text in .*empty.txt"),
        (tmp_path / "gone.jsonl", {}, "there is no file '.*gone.jsonl'"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            encode_corpus(tiny_lab, Corpus([str(name)]), tmp_path / "v", **options)
    assert not (tmp_path / "v").exists()
    with pytest.raises(ValueError, match="holds no manifest.json"):
        load(tmp_path / "v")


def test_a_full_disk_costs_one_shard(tiny_lab, encoded, path, tmp_path, monkeypatch):
    save = np.save

    def full(file, array, **options):
        if TEXTS[12] in encoded:
            Path(file).write_bytes(b"half")
            raise OSError(28, "No space left on device")
        save(file, array, **options)

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match="shard-000002 could not be written: .*No space left.*; make room and start"):
        encode_corpus(tiny_lab, Corpus([str(path)]), tmp_path / "v", texts_per_shard=5)
    assert sorted(path.name for path in (tmp_path / "v").iterdir()) == ["manifest.json", "shard-000000", "shard-000001"]


def test_a_vector_that_is_no_vector_is_named(tiny_lab, path, tmp_path, monkeypatch):
    def encode(texts, **_):
        return torch.tensor([[0.0, float("nan") if text == TEXTS[13] else 1.0] for text in texts])

    monkeypatch.setattr(tiny_lab, "encode", encode)
    with pytest.raises(ValueError, match="the vector of text 13 is not finite: load the model with dtype float32"):
        encode_corpus(tiny_lab, Corpus([str(path)]), tmp_path / "v", texts_per_shard=5)
    assert not (tmp_path / "v" / "shard-000002").exists()


def test_progress_counts_texts_a_second(tiny_lab, encoded, path, tmp_path, capsys):
    encode_corpus(tiny_lab, Corpus([str(path)]), tmp_path / "v", texts_per_shard=5)
    assert capsys.readouterr().err == ""
    shutil.rmtree(tmp_path / "v")
    encode_corpus(tiny_lab, Corpus([str(path)]), tmp_path / "v", texts_per_shard=5, progress=True)
    assert re.search(r"23 texts \[.*[\d.]+ texts/s\]", capsys.readouterr().err)


# Encodes, and kills itself at the moment that is named: "fsync 5" is the fifth call of os.fsync, "encode 5" that of
# Magnet.encode. What was encoded stands in a log.
SCRIPT = """
import os, signal, sys
import torch
from magnet_lab import Magnet, corpus
from magnet_lab.data.rows import Corpus

texts, folder, log, death, at = sys.argv[1:]
lab = Magnet.from_pretrained("tiny", adapter=None, device=corpus.process().device, dtype=torch.float32)

def mortal(name, function):
    calls = 0
    def wrapped(*arguments, **options):
        nonlocal calls
        calls += 1
        if name == death and calls == int(at):
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*arguments, **options)
        if name == "encode":
            with open(log, "a") as file:
                file.writelines(f"{os.getpid()} {text}\\n" for text in arguments[0])
        return result
    return wrapped

os.fsync, lab.encode = mortal("fsync", os.fsync), mortal("encode", lab.encode)
corpus.encode_corpus(lab, Corpus([texts]), folder, texts_per_shard=4)
"""


def run_in_a_process(tmp_path, texts, log, *death, launcher=()) -> subprocess.CompletedProcess:
    (tmp_path / "script.py").write_text(SCRIPT)
    arguments = [str(tmp_path / "script.py"), str(texts), str(tmp_path / "v"), str(log), *(death or ("never", "0"))]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run([sys.executable, *launcher, *arguments], env=environment, capture_output=True, text=True)


def log_of(path: Path) -> list[list[str]]:
    """`[process, text]` of all that was encoded, without the text that asks how wide vectors are."""
    lines = [line.split(" ", 1) for line in path.read_text().splitlines()] if path.is_file() else []
    return [[process, text] for process, text in lines if text != "a"]


@pytest.mark.slow
def test_killed_twice_and_continued(path, one_by_one, tmp_path):
    """kill -9 in the middle of a shard's files, then in the middle of a shard's texts."""
    folder = tmp_path / "v"
    # One fsync for the manifest and three for each shard: the ninth is amid the files of the third.
    assert run_in_a_process(tmp_path, path, tmp_path / "log1", "fsync", "9").returncode == -signal.SIGKILL
    first = files(folder)
    assert sorted({name.split("/")[0] for name in first if name[0] != "."}) == [
        "manifest.json",
        "shard-000000",
        "shard-000001",
    ]
    assert any(name.startswith(".shard-000002.") for name in first)
    # Three calls for a look at the width and the third and fourth shard; the fourth call is in the fifth.
    assert run_in_a_process(tmp_path, path, tmp_path / "log2", "encode", "4").returncode == -signal.SIGKILL
    second = files(folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "manifest.json",
        *(f"shard-{shard:06d}" for shard in range(4)),
    ]
    done = run_in_a_process(tmp_path, path, tmp_path / "log3")
    assert done.returncode == 0, done.stderr
    third = files(folder)
    for earlier in (first, second):  # nothing that was there was written again
        whole = [name for name in earlier if name.startswith("shard-")]
        assert all(earlier[name] == third[name] for name in whole)
    assert (
        [sorted(text for _, text in log_of(tmp_path / f"log{run}")) for run in (1, 2, 3)]
        == [
            sorted(TEXTS[:12]),  # the third shard was encoded and not yet on the disk
            sorted(TEXTS[8:16]),
            sorted(TEXTS[16:]),
        ]
    )
    ids, vectors = load(folder)
    assert ids.tolist() == list(range(23))
    assert np.abs(vectors[:] - one_by_one).max() < 1e-5


@pytest.mark.slow
def test_two_processes_share_a_corpus(path, one_by_one, tmp_path):
    """Two CPU processes over gloo: every text once, by one of the two."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = run_in_a_process(tmp_path, path, tmp_path / "log", launcher=launcher)
    assert done.returncode == 0, done.stderr
    log = log_of(tmp_path / "log")
    assert sorted(text for _, text in log) == sorted(TEXTS)
    process_of = {text: process for process, text in log}
    shards = [{process_of[text] for text in TEXTS[start : start + 4]} for start in range(0, 23, 4)]
    assert all(len(processes) == 1 for processes in shards)
    assert shards[0::2] == [shards[0]] * 3 and shards[1::2] == [shards[1]] * 3 and shards[0] != shards[1]
    ids, vectors = load(tmp_path / "v")
    assert ids.tolist() == list(range(23))
    assert np.abs(vectors[:] - one_by_one).max() < 1e-5
