"""The measures behind single tables, against hand-made cases and other libraries."""

import math

import numpy as np
import pytest
import torch

from magnet_lab.evaluation import appendix_f, table1, table3
from magnet_lab.evaluation.data import Data, read_conll


def test_names_in_tags_by_hand():
    """IOB2, IOB1 with and without a B- between neighbours, and a kind that changes within."""
    assert table1.entities(["B-PER", "I-PER", "O", "B-LOC"]) == {(0, 2, "PER"), (3, 4, "LOC")}
    assert table1.entities(["I-PER", "I-PER", "O", "I-LOC"]) == {(0, 2, "PER"), (3, 4, "LOC")}
    assert table1.entities(["I-PER", "B-PER", "O"]) == {(0, 1, "PER"), (1, 2, "PER")}
    assert table1.entities(["I-PER", "I-LOC"]) == {(0, 1, "PER"), (1, 2, "LOC")}
    assert table1.entities(["O", "O"]) == set()


def test_names_count_where_words_and_kind_are_right():
    true = ["B-PER", "I-PER", "O", "B-LOC", "O", "B-ORG"]
    found = ["B-PER", "I-PER", "O", "B-ORG", "O", "O"]
    # 3 names, 2 found, 1 right: precision 1/2, recall 1/3
    assert table1.entity_f1([(true, found)]) == pytest.approx(100 * 2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3))
    assert table1.accuracy([(true, found)]) == pytest.approx(100 * 4 / 6)
    assert table1.entity_f1([(["O"], ["O"])]) == 0


def test_a_probe_finds_what_a_line_can_tell():
    """Two classes on either side of a plane are told apart; random tags are not."""
    generator = torch.Generator().manual_seed(0)
    sentences = [torch.randn(6, 8, generator=generator) * 30 for _ in range(40)]
    tagged = [(vectors, (vectors[:, 2] > 0).long().tolist()) for vectors in sentences]
    found = table1.probe(tagged[:30], tagged[30:], 2)
    right = [
        one == other
        for (_, tags), row in zip(tagged[30:], found, strict=True)
        for one, other in zip(tags, row, strict=True)
    ]
    assert sum(right) / len(right) > 0.9
    chance = [(vectors, torch.randint(2, (6,), generator=generator).tolist()) for vectors in sentences]
    found = table1.probe(chance[:30], chance[30:], 2, steps=300)
    right = [
        one == other
        for (_, tags), row in zip(chance[30:], found, strict=True)
        for one, other in zip(tags, row, strict=True)
    ]
    assert 0.2 < sum(right) / len(right) < 0.8


def test_tagged_sentences_are_read_and_mistakes_named(tmp_path):
    path = tmp_path / "eng.train"
    path.write_text("-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n\nPeter NNP I-NP I-PER\n")
    first, second = read_conll(path)
    assert first.words == ["EU", "rejects"] and second.words == ["Peter"]
    assert first.tags == {"chunking": ["I-NP", "I-VP"], "NER": ["I-ORG", "O"], "POS": ["NNP", "VBZ"]}
    path.write_text("EU NNP I-NP I-ORG\nrejects VBZ\n")
    with pytest.raises(ValueError, match=r"eng\.train, line 2: a word and its three tags"):
        read_conll(path)


def test_clusters_that_are_topics_and_clusters_that_are_not():
    generator = np.random.default_rng(0)
    labels = ["a", "b", "c"] * 30
    centres = np.eye(3)[[0, 1, 2] * 30]
    apart = table3.v_measures(centres + 0.01 * generator.normal(size=(90, 3)), labels, range(3))
    mixed = table3.v_measures(generator.normal(size=(90, 3)), labels, range(3))
    assert apart == pytest.approx([100] * 3) and max(mixed) < 30


def test_the_projects_samples_are_whole():
    data = Data("samples")
    train, test = data.tagged()
    assert len(train) == 200 and len(test) >= 50
    assert all(len(s.words) == len(tags) for s in (*train, *test) for tags in s.tags.values())
    (labels, texts), *none = data.topics(10_000).values()
    assert not none and len(labels) == len(texts) == 360 and len(set(labels)) == 12
    assert len(set(data.topics(40)["topics"][0])) == 12  # spread over the file, which is sorted
    assert all(len(q["choices"]) == 4 and 0 <= q["answer"] < 4 for q in data.questions())
    scores, first, second = data.similarity()["graded pairs"]
    assert min(scores) == 0 and max(scores) == 5 and len(first) == len(second) == len(scores)
    assert len(data.passages(1000)) == 160 and len(data.stories(1000)) == 250


def test_perplexity_from_left_to_right_is_transformers(tiny_lab):
    text = "Tom had a red ball. He lost it in the park."
    found = appendix_f.log_probs(tiny_lab, text)
    ids = torch.tensor([tiny_lab.tokenizer(text)["input_ids"]])
    with torch.no_grad():
        loss = tiny_lab.model(input_ids=ids, labels=ids).loss
    assert math.exp(-found.mean()) == pytest.approx(math.exp(loss), rel=1e-4)
