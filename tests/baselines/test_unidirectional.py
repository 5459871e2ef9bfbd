"""Writing on from the left against a slow loop of whole causal passes, and vectors against transformers' own."""

import itertools
import re

import pytest
import torch
from decoders import BACKENDS, FAMILIES, random_decoder

from magnet_lab import Magnet
from magnet_lab.baselines import Unidirectional

STORY = "Tom had a red ball. [blank:6] He was very [blank:2] that day."
SENTENCE = "Tom had a red ball. [blank:3-30] He was very sad."


def words_begin(tokenizer) -> list[bool]:
    """For every token whether it begins a word after a space; special tokens do not."""
    size = len(tokenizer)
    texts = [tokenizer.decode([token]) for token in range(size)]
    special = set(tokenizer.all_special_ids)
    return [token not in special and text[:1] == " " and len(text) > 1 for token, text in enumerate(texts)]


def slow_loop(model, tokenizer, text: str | list[int], length: int) -> tuple[list[int], list[float]]:
    """Greedy tokens after a text or ids, the first one beginning a word: all of it anew for each, no mask given."""
    ids = tokenizer(text)["input_ids"] if isinstance(text, str) else text
    allowed_first = torch.tensor(words_begin(tokenizer))
    allowed = torch.ones(len(tokenizer), dtype=torch.bool)
    allowed[tokenizer.all_special_ids] = False
    written, log_probs = [], []
    for step in range(length):
        with torch.no_grad():
            scores = model(input_ids=torch.tensor([ids + written])).logits[0, -1].log_softmax(dim=-1)
        token = int(scores.masked_fill(~(allowed if step else allowed_first), -torch.inf).argmax())
        written.append(token)
        log_probs.append(float(scores[token]))
    return written, log_probs


@pytest.mark.parametrize("implementation", BACKENDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_blank_is_filled_as_by_whole_causal_passes(tiny_lab, family, implementation):
    model = random_decoder(family, implementation, vocab_size=len(tiny_lab.tokenizer))
    (span,) = Unidirectional(Magnet(model, tiny_lab.tokenizer)).infill("Tom had a [blank:7] ball.").candidates[0].spans
    expected, log_probs = slow_loop(model, tiny_lab.tokenizer, "Tom had a", 7)
    assert list(span.ids) == expected
    assert span.log_probs == pytest.approx(log_probs, abs=1e-4)
    assert span.text == tiny_lab.tokenizer.decode(expected) == "".join(span.tokens)


def test_a_later_blank_sees_the_earlier_fill_and_nothing_to_its_right(tiny_lab):
    model, tokenizer = random_decoder(vocab_size=len(tiny_lab.tokenizer)), tiny_lab.tokenizer
    baseline = Unidirectional(Magnet(model, tokenizer))
    first, second = baseline.infill(STORY).candidates[0].spans
    assert list(first.ids) == slow_loop(model, tokenizer, "Tom had a red ball.", 6)[0]
    after = tokenizer(" He was very", add_special_tokens=False)["input_ids"]
    left = [*tokenizer("Tom had a red ball.")["input_ids"], *first.ids, *after]
    assert list(second.ids) == slow_loop(model, tokenizer, left, 2)[0]
    other = baseline.infill(STORY.replace("that day", "until the next morning came")).candidates[0].spans
    assert other == (first, second)


def test_the_text_is_put_together_with_its_spaces(tiny_lab):
    baseline = Unidirectional(tiny_lab)
    first, second = (result := baseline.infill(STORY)).spans
    assert result.text == f"Tom had a red ball. {first} He was very {second} that day."
    inside = baseline.infill("He was un[blank:2]ed.")
    assert inside.text.startswith("He was un") and inside.text.endswith("ed.")


def preferring(tokenizer, wanted) -> Unidirectional:
    """A random model that finds some tokens, those for whose text `wanted` says so, likelier by far than all others."""
    model = random_decoder(vocab_size=len(tokenizer))
    likely = torch.tensor([1000.0 * wanted(tokenizer.decode([token])) for token in range(len(tokenizer))])
    model.get_output_embeddings().register_forward_hook(lambda head, states, scores: scores + likely)
    return Unidirectional(Magnet(model, tokenizer))


def test_a_blank_after_a_space_begins_a_word_and_one_at_the_start_no_space(tiny_lab):
    inside_words = preferring(tiny_lab.tokenizer, lambda text: text.isalpha())
    assert inside_words.infill("Tom had a [blank:2] ball.").candidates[0].spans[0].text.startswith(" ")
    assert inside_words.infill("Tom was un[blank:2]ed.").spans[0].isalpha()
    words = preferring(tiny_lab.tokenizer, lambda text: text[:1] == " " and text[1:].isalpha())
    assert words.infill("[blank:2] Tom was sad.").text[0].isalpha()
    assert words.infill("Tom was sad.\n[blank:2]").text.startswith("Tom was sad.\n ")


def test_a_blank_for_a_sentence_gets_one(tiny_lab):
    """It ends at the first sentence's end from the shortest length on, or at the longest."""
    for shortest, longest in ((1, 40), (9, 40), (16, 40), (2, 4)):
        text = SENTENCE.replace("3-30", f"{shortest}-{longest}")
        (span,) = Unidirectional(tiny_lab).infill(text).candidates[0].spans
        written, _ = slow_loop(tiny_lab.model, tiny_lab.tokenizer, "Tom had a red ball.", longest)
        ends = [
            length
            for length in range(shortest, longest + 1)
            if re.search(r"[.!?]\"?$", tiny_lab.tokenizer.decode(written[:length]).rstrip())
        ]
        assert list(span.ids) == written[: ends[0] if ends else longest]


def test_any_other_blank_gets_its_length(tiny_lab):
    baseline = Unidirectional(tiny_lab)
    fixed = baseline.infill("Tom had a red ball. [blank:17] He was very sad.")
    assert len(fixed.candidates[0].spans[0].ids) == 17
    within = baseline.infill("Tom had a [blank:2-5] ball.")
    assert len(within.candidates[0].spans[0].ids) == 5


def test_it_is_the_base_model_whatever_adapter_the_lab_has(tiny_lab):
    adapted = tiny_lab.use("magnet")
    baseline = Unidirectional(adapted)
    assert baseline.lab.adapter is None and baseline.lab.model is tiny_lab.model
    assert baseline.generate("Tom had", max_new_tokens=8) == tiny_lab.generate("Tom had", max_new_tokens=8)
    assert baseline.infill(SENTENCE) == Unidirectional(tiny_lab).infill(SENTENCE)


def test_special_tokens_are_not_written(tiny_lab):
    """Not even by a model that finds them likeliest by far; for the rest, it writes what it writes without them."""
    special = {tiny_lab.tokenizer.decode([token]) for token in tiny_lab.tokenizer.all_special_ids}
    for_all, for_special = (preferring(tiny_lab.tokenizer, wanted) for wanted in (lambda _: 0, special.__contains__))
    assert for_special.infill(STORY).text == for_all.infill(STORY).text


def test_sampling_repeats_with_its_seed(tiny_lab):
    baseline = Unidirectional(tiny_lab)
    options = {"temperature": 1.5, "top_p": 0.95, "top_k": 50}
    first = baseline.infill(STORY, seed=1, **options)
    assert baseline.infill(STORY, seed=1, **options) == first
    assert baseline.infill(STORY, seed=2, **options) != first
    assert baseline.infill(STORY, temperature=2.0, top_k=1, seed=0) == baseline.infill(STORY)


def test_what_cannot_be_filled_is_named(tiny_lab):
    baseline = Unidirectional(tiny_lab)
    with pytest.raises(ValueError, match="the text has no blank"):
        baseline.infill("Tom ran.")
    with pytest.raises(ValueError, match="blank 1 asks for 5,000 tokens"):
        baseline.infill("Tom had a ball. [blank:5000] He was sad.")
    with pytest.raises(ValueError, match="temperature -1"):
        baseline.infill(STORY, temperature=-1.0)


TEXTS = ["A man plays the guitar.", "Rain.", "The children ran down to the lake and swam until it got dark."]
INSTRUCTION = "Retrieve semantically similar text"


@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_sentence_vectors_are_those_of_the_causal_model(tiny_lab, pooling):
    """Each text alone through transformers, without any mask: the closing token's state, or the text's mean."""
    tokenizer = tiny_lab.tokenizer
    vectors = Unidirectional(tiny_lab).encode(TEXTS, instruction=INSTRUCTION, pooling=pooling)
    assert vectors.shape == (3, tiny_lab.model.config.hidden_size)
    for vector, text in zip(vectors, TEXTS, strict=True):
        before = tokenizer(f"{INSTRUCTION}:")["input_ids"]
        body = tokenizer(f" {text}", add_special_tokens=False)["input_ids"]
        ids = before + body + [tokenizer.eos_token_id] * (pooling == "last")
        with torch.no_grad():
            states = tiny_lab.model.model(torch.tensor([ids])).last_hidden_state[0]
        expected = states[-1] if pooling == "last" else states[len(before) :].mean(dim=0)
        assert torch.allclose(vector, expected, atol=1e-4)


def test_word_vectors_are_of_the_words_own_tokens(tiny_lab):
    """A causal state at (token - 1) has not seen the word; a change of the last word changes its own vector alone."""
    tokenizer = tiny_lab.tokenizer
    words = ["Katharina", "lives", "in", "Mississippi"]
    (vectors,) = Unidirectional(tiny_lab).encode_words([words])
    pieces = [
        tokenizer(("" if place == 0 else " ") + word, add_special_tokens=False)["input_ids"]
        for place, word in enumerate(words)
    ]
    opening = [tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id]
    with torch.no_grad():
        states = tiny_lab.model.model(torch.tensor([[*opening, *itertools.chain(*pieces)]])).last_hidden_state[0]
    start = 1
    for vector, piece in zip(vectors, pieces, strict=True):
        assert torch.allclose(vector, states[start : start + len(piece)].mean(dim=0), atol=1e-4)
        start += len(piece)
    (changed,) = Unidirectional(tiny_lab).encode_words([[*words[:3], "Paris"]])
    assert torch.allclose(vectors[:3], changed[:3], atol=1e-5)
    assert not torch.allclose(vectors[3], changed[3], atol=1e-2)


def test_what_cannot_be_encoded_is_named(tiny_lab):
    baseline = Unidirectional(tiny_lab)
    with pytest.raises(ValueError, match="text 1 is empty"):
        baseline.encode(["One.", "  "])
    with pytest.raises(ValueError, match="text 0 has .* tokens, more than the model's 1,024"):
        baseline.encode(["word " * 2000])
    with pytest.raises(ValueError, match="pooling 'echo' is not known here; choose one of last, mean"):
        baseline.encode(["One."], pooling="echo")
    with pytest.raises(ValueError, match="sentence 0 has .* tokens, more than the model's 1,024"):
        baseline.encode_words([["word"] * 2000])
