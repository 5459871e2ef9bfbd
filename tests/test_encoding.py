"""Vectors against transformers called by hand, one text at a time."""

import math

import pytest
import torch
from decoders import random_decoder, sentencepiece_tokenizer

from magnet_lab import encoding

TEXTS = [
    "A man plays a guitar.",
    "Someone plays.",
    "The little dog ran into the big garden and barked at a bird.",
    "Hi",
]


def bidirectional_states(lab, ids: list[int]) -> torch.Tensor:
    """`(length, hidden)` by transformers' own forward under an all-True mask."""
    mask = torch.ones(1, 1, len(ids), len(ids), dtype=torch.bool)
    with torch.no_grad():
        return lab.model.model(input_ids=torch.tensor([ids]), attention_mask=mask).last_hidden_state[0]


def test_last_token_is_the_end_of_text_after_instruction_and_text(tiny_lab):
    tokenizer = tiny_lab.tokenizer
    for instruction, opening in [
        (None, "Given the sentence, find its representation: "),
        ("Retrieve semantically similar text", "Retrieve semantically similar text: "),
        ("", ""),
    ]:
        vectors = tiny_lab.encode(TEXTS, instruction=instruction)
        for text, vector in zip(TEXTS, vectors, strict=True):
            ids = tokenizer(opening + text)["input_ids"] + [tokenizer.eos_token_id]
            assert (vector - bidirectional_states(tiny_lab, ids)[-1]).abs().max() < 1e-5


def test_mean_leaves_the_instruction_out(tiny_lab):
    tokenizer = tiny_lab.tokenizer
    vectors = tiny_lab.encode(TEXTS, instruction="Find it", pooling="mean")
    opening = len(tokenizer("Find it:")["input_ids"])
    for text, vector in zip(TEXTS, vectors, strict=True):
        states = bidirectional_states(tiny_lab, tokenizer(f"Find it: {text}")["input_ids"])
        assert (vector - states[opening:].mean(dim=0)).abs().max() < 1e-5


def test_echo_is_the_second_copy_under_the_causal_mask(tiny_lab):
    tokenizer = tiny_lab.tokenizer
    vectors = tiny_lab.encode(TEXTS, pooling="echo")
    for text, vector in zip(TEXTS, vectors, strict=True):
        ids = tokenizer(f"Rewrite the sentence: {text}\nThe rewritten sentence: {text}", return_tensors="pt")[
            "input_ids"
        ]
        with torch.no_grad():
            states = tiny_lab.model.model(input_ids=ids).last_hidden_state[0]  # its own mask is causal
        copy = len(tokenizer(f" {text}", add_special_tokens=False)["input_ids"])
        assert (vector - states[-copy:].mean(dim=0)).abs().max() < 1e-5


def test_a_vector_does_not_depend_on_its_batch(tiny_lab):
    many = TEXTS * 40 + ["word " * 300]
    together = tiny_lab.encode(many)
    for index in (0, 1, 2, 3, 100, 160):
        assert (together[index] - tiny_lab.encode([many[index]])[0]).abs().max() < 1e-5


def test_words_are_the_states_before_their_tokens(tiny_lab):
    tokenizer = tiny_lab.tokenizer
    sentences = [["John", "lives", "in", "Constantinople", "."], ["Hi"]]
    for words, vectors in zip(sentences, tiny_lab.encode_words(sentences), strict=True):
        ids, tokens_of_words = [tokenizer.bos_token_id], []
        for position, word in enumerate(words):
            piece = tokenizer(word if position == 0 else " " + word, add_special_tokens=False)["input_ids"]
            tokens_of_words.append(range(len(ids), len(ids) + len(piece)))
            ids += piece
        states = bidirectional_states(tiny_lab, ids)
        assert len(vectors) == len(words)
        for vector, tokens in zip(vectors, tokens_of_words, strict=True):
            mean = sum(states[token - 1] for token in tokens) / len(tokens)
            assert (vector - mean).abs().max() < 1e-5


@pytest.mark.parametrize("opens_with_bos", [True, False])
def test_words_of_a_sentencepiece_tokenizer(opens_with_bos):
    """Also where the tokenizer puts no BOS of its own: the first word needs a token before it."""
    tokenizer = sentencepiece_tokenizer(["John lives in Paris with a very big dog"] * 3)
    if not opens_with_bos:
        tokenizer._tokenizer.post_processor = None
    model = random_decoder(vocab_size=len(tokenizer))
    (vectors,) = encoding.encode_words(model, tokenizer, [["John", "lives", "in", "Zürich"]])
    ids = [tokenizer.bos_token_id] + tokenizer("John lives in Zürich", add_special_tokens=False)["input_ids"]
    mask = torch.ones(1, 1, len(ids), len(ids), dtype=torch.bool)
    with torch.no_grad():
        states = model.model(input_ids=torch.tensor([ids]), attention_mask=mask).last_hidden_state[0]
    pieces = tokenizer.convert_ids_to_tokens(ids)
    starts = [position for position, piece in enumerate(pieces) if piece.startswith("▁")] + [len(ids)]
    assert len(starts) == 5
    for vector, start, stop in zip(vectors, starts, starts[1:], strict=False):
        assert (vector - states[start - 1 : stop - 1].mean(dim=0)).abs().max() < 1e-5


def test_similarity_is_the_cosine(tiny_lab):
    a, b = tiny_lab.encode(TEXTS[:3]), tiny_lab.encode(TEXTS[2:])
    for i in range(3):
        for j in range(2):
            cosine = (a[i] @ b[j]) / (a[i].norm() * b[j].norm())
            assert tiny_lab.similarity(a, b)[i, j].item() == pytest.approx(cosine.item(), abs=1e-5)
    assert torch.equal(tiny_lab.similarity(TEXTS[:3], TEXTS[2:]), tiny_lab.similarity(a, b))


def test_truncation_keeps_what_fits(tiny_lab):
    text = "word " * 3000
    for pooling in encoding.POOLINGS:
        with pytest.raises(ValueError, match="text 1 has .* tokens.* more than the 1,024"):
            tiny_lab.encode(["fine", text], pooling=pooling)
        assert tiny_lab.encode([text], pooling=pooling, truncate=True).isfinite().all()
    tokenizer = tiny_lab.tokenizer
    ids = tokenizer(text)["input_ids"][:1023] + [tokenizer.eos_token_id]
    cut = tiny_lab.encode([text], instruction="", truncate=True)[0]
    assert (cut - bidirectional_states(tiny_lab, ids)[-1]).abs().max() < 1e-4


def test_nothing_in_nothing_out(tiny_lab):
    assert tiny_lab.encode([]).shape == (0, 256)
    assert tiny_lab.encode_words([]) == []
    assert tiny_lab.encode_words([[]])[0].shape == (0, 256)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda lab: lab.encode("one text"), "list of texts"),
        (lambda lab: lab.encode(["a", " "]), "text 1 is empty"),
        (lambda lab: lab.encode(["a"], pooling="max"), "pooling 'max' is not known; choose one of last, mean, echo"),
        (lambda lab: lab.encode_words(["John lives"]), "sentence 0 is a string"),
        (lambda lab: lab.encode_words([["John", ""]]), "word 1 of sentence 0 is empty"),
        (lambda lab: lab.encode_words([["word"] * 3000]), "sentence 0 has .* tokens"),
    ],
)
def test_bad_input_is_named(tiny_lab, call, message):
    with pytest.raises(ValueError, match=message):
        call(tiny_lab)


def test_an_instruction_that_leaves_no_room_is_named(tiny_lab):
    for pooling in ("last", "mean"):
        for words in (1020, 3000):
            with pytest.raises(ValueError, match="the instruction leaves text 0 no room"):
                tiny_lab.encode(["hi there"], instruction="x " * words, truncate=True, pooling=pooling)


def test_alignment_and_uniformity_are_their_definitions():
    """Wang & Isola 2020, Section 4.1.2, as loops."""
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(5, 3, generator=generator), torch.randn(5, 3, generator=generator)
    unit = [[value / math.hypot(*row) for value in row] for row in a.tolist()]
    other = [[value / math.hypot(*row) for value in row] for row in b.tolist()]
    aligned = sum(math.dist(x, y) ** 2 for x, y in zip(unit, other, strict=True)) / 5
    pairs = [math.exp(-2 * math.dist(unit[i], unit[j]) ** 2) for i in range(5) for j in range(i)]
    assert encoding.alignment(a, b) == pytest.approx(aligned, rel=1e-5)
    assert encoding.uniformity(a) == pytest.approx(math.log(sum(pairs) / len(pairs)), rel=1e-5)
    assert encoding.alignment(a, 3 * a) == pytest.approx(0, abs=1e-10)
