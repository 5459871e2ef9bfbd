"""Paraphrases by rule, by example; and pairs."""

import pytest
import torch

from magnet_lab.data import pairs
from magnet_lab.data.rows import Corpus
from magnet_lab.paraphrase import paraphrase, sentences


@pytest.mark.parametrize(
    "text, others",
    [
        ("One day, Tom went to the park.", {"Tom went to the park one day."}),
        ("Lily and Ben ran home.", {"Ben and Lily ran home."}),
        ("It was not there.", {"It wasn't there."}),
        ("It wasn't there.", {"It was not there."}),
        ("She saw a big dog.", {"She noticed a large dog.", "She spotted a large dog."}),
        ("He was a sad boy.", {"He was an unhappy boy."}),
        ("He was an unhappy boy.", {"He was a sad boy."}),
        ("It was very cold.", {"It was cold."}),
        ("Rain fell.", {"Rain fell."}),
    ],
)
def test_rules(text, others):
    found = {paraphrase(text, torch.Generator().manual_seed(seed)) for seed in range(20)}
    assert found == others


def test_sentences_of_a_text():
    text = 'Tom had a red ball today. "Go!" It was lost in the big park. Yes. He found it under the tree.'
    assert sentences(text) == [
        "Tom had a red ball today.",
        "It was lost in the big park.",
        "He found it under the tree.",
    ]


def test_pairs_from_files(tmp_path):
    (tmp_path / "pairs.tsv").write_text("1\tA man runs.\tA man is running.\n0\tHi.\tHello.\n")
    assert pairs.read("pairs", Corpus([str(tmp_path / "pairs.tsv")])) == [
        ("A man runs.", "A man is running."),
        ("Hi.", "Hello."),
    ]
    (tmp_path / "text.txt").write_text("Lily and Ben ran home. It was not there at all.\n")
    path = Corpus([str(tmp_path / "text.txt")])
    assert pairs.read("dropout", path)[0] == ("Lily and Ben ran home.",) * 2
    assert pairs.read("rules", path)[0] == ("Lily and Ben ran home.", "Ben and Lily ran home.")
    (tmp_path / "three.tsv").write_text("A man runs.\tA man is running.\tA man is sleeping.\n")
    assert pairs.read("triplets", Corpus([str(tmp_path / "three.tsv")])) == [
        ("A man runs.", "A man is running.", "A man is sleeping.")
    ]
    assert pairs.read("pairs", Corpus([str(tmp_path / "three.tsv")])) == [("A man runs.", "A man is running.")]
    both = Corpus([str(tmp_path / "text.txt"), str(tmp_path / "three.tsv")])
    assert [pair[0] for pair in pairs.read("dropout", both)] == [
        "A man runs.",
        "Lily and Ben ran home.",
        "It was not there at all.",
    ]
    assert len(pairs.read("dropout", both, most=2)) == 2
    (tmp_path / "bad.tsv").write_text("one column\n")
    (tmp_path / "short.tsv").write_text("4.5\tA score and one sentence.\n")
    for bad in ("bad", "short"):
        with pytest.raises(ValueError, match=rf"{bad}\.tsv, line 1: 2 sentences with tabs"):
            pairs.read("pairs", Corpus([str(tmp_path / f"{bad}.tsv")]))
    with pytest.raises(ValueError, match=r"no file .*gone\.tsv"):
        pairs.read("pairs", Corpus([str(tmp_path / "gone.tsv")]))


def test_every_pair_comes_once_before_any_comes_twice():
    found = [(str(number), str(number)) for number in range(10)]
    for seed in (0, 1):
        drawn = [pair for step in range(5) for pair in pairs.batch(found, step, 4, seed)]
        assert sorted(drawn[:10]) == sorted(found) and sorted(drawn[10:]) == sorted(found)
        assert drawn[:10] != drawn[10:]
