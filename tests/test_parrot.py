"""Paraphrases by T5, on a random model in the hub's format."""

import json

import pytest
import torch
from transformers import T5Config, T5ForConditionalGeneration

from magnet_lab import zoo
from magnet_lab.data import pairs, parrot
from magnet_lab.data.rows import Corpus


@pytest.fixture
def t5(tmp_path, monkeypatch):
    monkeypatch.setenv("MAGNET_LAB_CACHE", str(tmp_path / "cache"))
    tokenizer = zoo.load_tokenizer(zoo.resolve("tiny"))
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    folder = tmp_path / "t5"
    T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    monkeypatch.setattr(parrot, "PARROT", str(folder))
    monkeypatch.setattr(parrot, "BATCH", 2)
    return str(folder)


def test_one_paraphrase_a_sentence_kept_and_continued(t5, tmp_path, monkeypatch):
    sentences = ["Tom had a red ball.", "He lost it.", "A girl found it under a tree."]
    made = parrot.paraphrases(sentences, t5)
    assert len(made) == 3
    (path,) = (tmp_path / "cache" / "paraphrases").iterdir()
    lines = path.read_text().splitlines(keepends=True)
    assert [json.loads(line) for line in lines] == made
    path.write_text(lines[0] + lines[1][:3])  # a kill in the middle of the second line
    assert parrot.paraphrases(sentences, t5) == made
    monkeypatch.setattr(parrot, "_load", lambda name: pytest.fail("what is there is not made again"))
    assert parrot.paraphrases(sentences, t5) == made


def test_the_beam_that_shares_the_fewest_words():
    beams = {"the dog ran home": 1.0, "home ran a puppy": 2 / 6, "": 1.0, "a puppy hurried off": 0.0}
    for text, shared in beams.items():
        assert parrot._shared(text, "The dog ran home") == pytest.approx(shared)


def test_a_corpus_paraphrased_as_the_paper_does(t5, tmp_path):
    (tmp_path / "text.txt").write_text("Lily and Ben ran all the way home. It was not there.\n")
    found = pairs.read("parrot", Corpus([str(tmp_path / "text.txt")]), shortest=6)
    assert [pair[0] for pair in found] == ["Lily and Ben ran all the way home."]


def test_without_the_model_a_sentence_says_what_else_there_is(tmp_path, monkeypatch):
    monkeypatch.setenv("MAGNET_LAB_CACHE", str(tmp_path))
    with pytest.raises(zoo.ModelUnavailable, match="could not be loaded .* `positives: rules`"):
        parrot.paraphrases(["Tom ran."], str(tmp_path / "nowhere"))
