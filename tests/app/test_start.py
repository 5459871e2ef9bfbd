"""The first page: one sentence in three modes, its tour, and the answers that are there before the model is."""

import json
import re

import numpy as np
import pytest

from magnet_lab.app import limits, precomputed
from magnet_lab.app.build import PAGES
from magnet_lab.app.handlers import embeddings, infill, start


@pytest.mark.parametrize(
    ("sentence", "missing", "parts"),
    [
        ("The cat sat on the mat.", "sat on", ("The cat ", "sat on", " the mat.")),
        ("The cat  sat\non the mat.", " sat  on ", ("The cat ", "sat on", " the mat.")),
        ("A cat is at sea.", "at", ("A cat is ", "at", " sea.")),  # a word, not a part of one
        ("One two three four five six.", "", ("One two ", "three four", " five six.")),
        ("Dogs bark.", "", ("", "Dogs", " bark.")),
    ],
)
def test_the_words_are_taken_out(sentence, missing, parts):
    assert start.check(sentence, missing) == parts


@pytest.mark.parametrize(
    ("sentence", "missing", "what"),
    [
        ("", "", "the sentence is empty"),
        ("x" * 201, "", "201 characters; at most 200"),
        ("Hello", "", "one word"),
        ("The cat sat.", "dog", "“dog” is not in the sentence"),
        ("The cat sat.", "a", "“a” is not in the sentence"),
        ("The cat sat", "The cat sat", "the whole sentence"),
    ],
)
def test_what_cannot_be_tried_gets_a_sentence(sentence, missing, what):
    with pytest.raises(ValueError, match=re.escape(what)):
        start.check(sentence, missing)


def test_one_sentence_is_generated_encoded_and_infilled(tiny_lab):
    sentence = "Tom went to the park."
    views = list(start.answer(tiny_lab, sentence, "went to"))
    assert [len(outcomes) for outcomes in views] == [1] * (len(views) - 2) + [2, 3] and len(views) > 4
    generated, encoded, infilled = views[-1]

    written = tiny_lab.generate(sentence, max_new_tokens=limits.START_TOKENS)
    assert generated.pieces == [[sentence, "context"], [written, "generated"]]
    assert "".join(generated.tokens) == sentence + written and generated.mode == "causal"

    vectors = tiny_lab.encode([sentence, *start.OTHERS]).numpy()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = dict(zip(start.OTHERS, unit[1:] @ unit[0], strict=True))
    assert [other for other, _ in encoded.nearest] == sorted(alike, key=alike.get, reverse=True)
    assert all(value == pytest.approx(alike[other], abs=1e-3) for other, value in encoded.nearest)

    story = "Tom [blank:2] the park."
    result = tiny_lab.infill(story)
    assert "".join(text for text, _ in infilled.pieces) == result.text == "".join(infilled.tokens)
    assert infilled.spans == "1-2" and infilled.tokens[0] == "Tom"
    assert f"have {tiny_lab.score_infill(story, ['went to']).perplexity:.3g}." in infilled.sentence


def test_a_blank_that_a_visitor_types_is_text(tiny_lab):
    *_, outcomes = start.answer(tiny_lab, "The [blank:9] sat [blank] down.", "sat")
    assert outcomes[2].pieces[0] == ["The [blank:9]", "context"]
    assert outcomes[2].pieces[2] == [" [blank] down.", "context"]


@pytest.mark.parametrize("sentence", ["<s></s><img src=x> ${alert(1)}", "\u202eright to left עברית", "😀 👩‍🔬 e\u0301"])
def test_any_sentence_can_be_tried(tiny_lab, sentence):
    *_, outcomes = start.answer(tiny_lab, sentence)
    figures, twin = start.three_masks([outcome.masked for outcome in outcomes])
    assert len(figures) == 3 and twin.count("query (who looks)") == 3


def test_the_masks_are_those_of_the_modes(tiny_lab):
    figures, _ = start.three_masks([(["a", "b", "c"], "causal", ""), (["a", "b"], "bidirectional", ""),
                                    (["a", "b", "c"], "magnet", "1-1")])  # fmt: skip
    causal, both, magnet = (np.asarray(figure.axes[0].images[0].get_array()).astype(bool) for figure in figures)
    assert (causal == np.tril(np.ones((3, 3)))).all() and both.all()
    assert magnet.tolist() == [[True, False, True], [True, True, True], [True, False, True]]


def test_the_tour_leads_to_pages_that_there_are():
    steps = start.tour()
    assert {step.page for step in steps} - {""} <= {page.PATH for page in PAGES}
    assert steps[0].page == "" and len({step.page for step in steps}) >= 6
    assert all(step.title and step.do and step.look for step in steps)


# --- before the model is there


@pytest.mark.parametrize("model", ["tiny", "small"])
def test_kept_answers_are_those_to_the_pages_examples(model):
    name, outcomes = precomputed.outcomes(model)
    assert name == model and [outcome.mode for outcome in outcomes] == ["causal", "bidirectional", "magnet"]
    assert outcomes[0].pieces[0][0] == start.SENTENCE and f"“{start.MISSING}” was taken out" in outcomes[2].sentence
    fillings = precomputed.fillings(model).fillings
    assert [one.system for one in fillings] == infill.systems(model) and all(one.done for one in fillings)
    for one in fillings:
        given = [text for text, probability in one.shades if probability is None]
        assert given in (["Tom went to the park.", " He was very sad."], []) and (given or "Not by" in one.sentence)
    alike = precomputed.similarities(model).similarities
    assert list(alike) == embeddings.systems(model)
    assert all(np.array(values).shape == (len(embeddings.SENTENCES),) * 2 for values in alike.values())


@pytest.mark.parametrize("model", ["llama-2-7b", "../../etc/passwd", "somebody/a-model"])
def test_other_models_show_the_answers_of_small(model):
    assert precomputed.outcomes(model)[0] == "small"


@pytest.mark.slow
def test_kept_answers_are_what_the_model_says(tiny_lab):
    made = precomputed.compute(tiny_lab.use("magnet"))
    kept = json.loads((precomputed.FOLDER / "tiny.json").read_text(encoding="utf-8"))
    for now, then in zip(made["start"], kept["start"], strict=True):
        assert now["pieces"] == then["pieces"] and now["sentence"] == then["sentence"]
    for now, then in zip(made["infill"], kept["infill"], strict=True):
        assert [text for text, _ in now["shades"]] == [text for text, _ in then["shades"]]
    for system, values in made["embeddings"].items():
        assert np.allclose(values, kept["embeddings"][system], atol=1e-3)


def test_kept_similarities_make_the_same_pictures():
    vectors = np.random.default_rng(0).normal(size=(5, 40))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    sentences = list("abcde")
    made = embeddings.vectors_of((unit @ unit.T).tolist())
    assert np.allclose(made @ made.T, unit @ unit.T, atol=1e-8)
    again = embeddings.compare_vectors("base", made, sentences)
    import torch

    first = embeddings.compare_vectors("base", torch.tensor(vectors), sentences)
    assert again.text == first.text and [other for other, _ in again.nearest] == [other for other, _ in first.nearest]
