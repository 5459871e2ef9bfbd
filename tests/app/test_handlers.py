"""What the pages do, without pages: on good input the right thing, on bad input a sentence."""

import math

import numpy as np
import pytest

from magnet_lab.app import limits
from magnet_lab.app.handlers import embeddings, infill, masks
from magnet_lab.baselines import Unidirectional

TOKENS = ["The", " cat", " sat", " on", " it", "."]
STORY = "Tom went to the park. [blank] He was very sad."

HOSTILE = [
    "<s></s><img src=x onerror=alert(1)>",
    "${alert(1)} {{x}} `${1}` \\u0041",
    "\x07\x1b[31m\x0b",
    "\u202eright to left עברית",
    "😀👩‍🔬 e\u0301",
    "../../etc/passwd",
]


def picture_of(figure) -> np.ndarray:
    return np.asarray(figure.axes[0].images[0].get_array())


# --- masks


@pytest.mark.parametrize(
    ("mode", "spans", "prefix", "expected"),
    [
        ("causal", "", 0, ["■.....", "■■....", "■■■...", "■■■■..", "■■■■■.", "■■■■■■"]),
        ("bidirectional", "", 0, ["■■■■■■"] * 6),
        ("prefix", "", 2, ["■■....", "■■....", "■■■...", "■■■■..", "■■■■■.", "■■■■■■"]),
        ("magnet", "1-2, 4", 0, ["■..■.■", "■■.■.■", "■■■■.■", "■..■.■", "■..■■■", "■..■.■"]),
    ],
)
def test_each_mode_draws_its_mask(mode, spans, prefix, expected):
    view = masks.draw_mask(TOKENS, mode, spans, prefix)
    assert ["".join("■" if cell else "." for cell in row) for row in picture_of(view.figure)] == expected


def test_the_strip_says_what_each_token_is_and_sees():
    strip = masks.draw_mask(TOKENS, "magnet", "1-2", token=2).strip
    assert [token.kind for token in strip] == ["context", "span", "span", "context", "context", "context"]
    assert strip[2].words == "2 · span 1 · sees 0–5"
    assert strip[0].words == "0 · context · sees 0, 3–5"
    assert [token.picked for token in strip] == [False, False, True, False, False, False]


def test_a_span_token_is_explained():
    sentences = masks.draw_mask(TOKENS, "magnet", "1-3", token=2).sentences
    sees = "a span token sees all context, itself and the earlier tokens of its span"
    assert sentences[0] == f"Token 2, “sat” (span 1): {sees}."
    assert sentences[1] == "It sees 0–2, 4–5 (5 of 6)."
    assert sentences[2] == "It is seen by 2–3 (2 of 6)."


def test_the_rule_leaks_nothing_through_any_number_of_layers():
    for layers in (2, limits.MASK_LAYERS):
        view = masks.draw_mask(TOKENS, "magnet", "1-3", token=2, layers=layers)
        assert "No leak" in view.sentences[-1]
        assert 2 not in picture_of(view.figure)


def test_a_context_that_sees_spans_leaks_a_spans_own_future_in_two_layers():
    one = masks.draw_mask(TOKENS, "magnet", "1-3", leak=True, token=2, layers=1)
    assert not any("A leak" in sentence for sentence in one.sentences)
    two = masks.draw_mask(TOKENS, "magnet", "1-3", leak=True, token=2, layers=2)
    assert "A leak: 3 is what it is still to predict." in two.sentences
    assert picture_of(two.figure)[2, 3] == 2


def test_clicks_begin_end_and_remove_spans():
    spans = masks.mark("", 3, 6)
    assert masks.parse_spans(spans, 6) == [(3, 3)]
    spans = masks.mark(spans, 1, 6)
    assert spans == "1-3"
    spans = masks.mark(masks.mark(spans, 5, 6), 5, 6)
    assert spans == "1-3, 5-5"
    assert masks.mark(spans, 2, 6) == "5-5"


def test_a_span_drawn_over_others_swallows_them():
    assert masks.mark("1-2, 4-4, 0-", 5, 6) == "0-5"


@pytest.mark.parametrize("spans", ["x", "1-99", "3-1", "1-2, 2-3", "-1", "1--2", "9" * 30, "1 2"])
def test_spans_that_make_no_sense_get_a_sentence(spans):
    with pytest.raises(ValueError, match=r"span"):
        masks.draw_mask(TOKENS, "magnet", spans)


@pytest.mark.parametrize("text", ["", "   ", "word " * 10_000, "a b " * 150])
def test_a_text_to_draw_that_is_empty_or_too_long_gets_a_sentence(tiny_lab, text):
    with pytest.raises(ValueError, match="the text"):
        masks.split(tiny_lab.tokenizer, text)


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_can_be_drawn(tiny_lab, text):
    tokens = masks.split(tiny_lab.tokenizer, text)
    assert "".join(token.text for token in masks.draw_mask(tokens, "magnet", "1").strip) == text


@pytest.mark.parametrize("layers", [0, 99, 1.5, math.nan, math.inf, None])
def test_a_number_of_layers_that_makes_no_sense_gets_a_sentence(layers):
    with pytest.raises(ValueError, match="layers"):
        masks.draw_mask(TOKENS, "causal", layers=layers)


@pytest.mark.parametrize("token", [None, -1, 99, math.nan])
def test_a_token_that_is_not_there_is_none(token):
    assert not any(t.picked for t in masks.draw_mask(TOKENS, "causal", token=token).strip)


# --- infill


def test_a_story_is_filled_in_steps_and_then_from_the_left(tiny_lab):
    views = list(infill.infill(tiny_lab, STORY, candidates=2))
    last = views[-1]
    assert last.done and not any(view.done for view in views[:-1])
    for pieces in (last.filled, last.left_only):
        assert [piece.kind for piece in pieces] == ["context", "context", "generated", "context"]
        assert pieces[0].text + pieces[1].text == "Tom went to the park. "
        assert pieces[-1].text == " He was very sad."
    result = tiny_lab.infill(STORY, num_candidates=2)
    assert "".join(piece.text for piece in last.filled) == result.text
    assert [row[1] for row in last.candidates] == [c.spans[0].text.strip() for c in result.candidates]
    assert last.candidates[0][2] == pytest.approx(result.score, rel=1e-3)


def test_the_left_only_answer_sees_nothing_to_the_right(tiny_lab):
    endings = ("He was very sad.", "They all laughed.")
    stories = [f"Tom went to the park. [blank:6] {ending}" for ending in endings]
    written = [[*infill.infill(tiny_lab, story)][-1].left_only[2].text for story in stories]
    assert written[0] == written[1] == tiny_lab.generate("Tom went to the park.", max_new_tokens=6).strip()


def test_blanks_not_written_yet_are_shown_as_such():
    pieces = infill.fill("A [blank] b [blank].", ["cat"])
    assert [(piece.text, piece.kind) for piece in pieces] == [
        ("A", "context"), (" ", "context"), ("cat", "generated"), (" b", "context"),
        (" ", "context"), (" ▢ ", "masked"), (".", "context"),
    ]  # fmt: skip


def test_one_blank_after_the_other(tiny_lab):
    last = [*infill.infill(tiny_lab, "She ate [blank:2] and [blank:2].", one_after_the_other=True)][-1]
    assert sum(piece.kind == "generated" for piece in last.filled) == 2


def test_a_seed_repeats_a_draw(tiny_lab):
    story = STORY.replace("blank", "blank:6")
    draws = [[*infill.infill(tiny_lab, story, 1, 1.2, seed)][-1] for seed in (7, 7, 8)]
    assert draws[0].filled == draws[1].filled and draws[0].left_only == draws[1].left_only
    assert draws[0].filled != draws[2].filled or draws[0].left_only != draws[2].left_only


def test_closing_ends_the_work(tiny_lab, monkeypatch):
    closed = []
    stream = tiny_lab.infill(STORY, stream=True)

    def watched(*_, **__):
        try:
            yield from stream
        finally:
            closed.append(True)

    monkeypatch.setattr(tiny_lab, "infill", watched)
    views = infill.infill(tiny_lab, STORY)
    next(views)
    views.close()
    assert closed == [True]


@pytest.mark.parametrize(
    ("story", "sentence"),
    [
        ("", "the story is empty"),
        (" \n ", "the story is empty"),
        ("no blank at all", "no blank"),
        ("word " * 10_000 + "[blank]", "50,007 characters; at most 3,000"),
        ("[blank]", "nothing but blanks"),
        ("a [blank:x] b", "a length is written"),
        ("a [blank:9-3] b", "from short to long"),
        ("a [blank:99999] b", "at most 64"),
        ("a [blank] b " * 7, "7 blanks; at most 6"),
        ("a [blank][blank] b", "touch"),
        ("a \\[blank] b", "no blank"),
    ],
)
def test_a_story_that_cannot_be_filled_gets_a_sentence(tiny_lab, story, sentence):
    with pytest.raises(ValueError, match=sentence):
        next(infill.infill(tiny_lab, story))


def test_a_story_too_long_for_this_model_is_told_before_it_queues(tiny_lab):
    with pytest.raises(ValueError, match=f"the model can read {tiny_lab.max_length:,}"):
        infill.check_story("é ß " * (tiny_lab.max_length // 4) + "[blank]", tiny_lab)


@pytest.mark.parametrize(
    "options", [(0, 0, 0), (99, 0, 0), (1.5, 0, 0), (1, -1, 0), (1, 99, 0), (1, math.nan, 0), (1, 0, -1), (1, 0, 1e300)]
)
def test_options_out_of_range_get_a_sentence(options):
    with pytest.raises(ValueError, match="; choose"):
        infill.check_options(*options)


@pytest.mark.parametrize("text", HOSTILE)
def test_any_story_can_be_filled(tiny_lab, text):
    last = [*infill.infill(tiny_lab, f"{text} [blank:2] {text}")][-1]
    assert "".join(piece.text for piece in last.filled if piece.kind == "context") == f"{text}  {text}"


def test_an_answer_is_scored_in_both_ways(tiny_lab):
    rows, sentence = infill.score_answer(tiny_lab, STORY, "He lost his ball.")
    for row, mode in zip(rows, ("infill", "causal"), strict=True):
        score = tiny_lab.score_infill(STORY, ["He lost his ball."], mode=mode)
        assert row[1] == pytest.approx(score.perplexity, rel=1e-3)
        assert row[2] == pytest.approx(-math.log(score.perplexity), rel=1e-3)
    assert "both sides" in sentence or "left side" in sentence


@pytest.mark.parametrize("answer", ["", "one\ntwo", "word " * 10_000])
def test_an_answer_that_does_not_fit_gets_a_sentence(tiny_lab, answer):
    with pytest.raises(ValueError, match="your answer"):
        infill.score_answer(tiny_lab, STORY, answer)


# --- embeddings


def test_sentences_are_compared_by_each_systems_vectors(tiny_lab):
    sentences = ["The dog ran.", "A cat slept.", "Tom is sad."]
    *_, compared = embeddings.compare_sentences(tiny_lab, "\n\n".join(sentences))
    vectors = {
        "base": Unidirectional(tiny_lab).encode(sentences, pooling="last"),
        "echo": tiny_lab.encode(sentences, pooling="echo"),
        "llm2vec": tiny_lab.use("llm2vec").encode(sentences, pooling="mean"),
        "magnet": tiny_lab.use("magnet").encode(sentences),
    }
    assert [one.system for one in compared] == list(vectors)
    for one in compared:
        unit = vectors[one.system].numpy()
        unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
        alike = unit @ unit.T
        assert np.allclose(picture_of(one.heatmap), alike, atol=1e-5)
        for place, (other, value) in enumerate(one.nearest):
            assert value == pytest.approx(max(alike[place][k] for k in range(3) if k != place), abs=1e-5)
            assert alike[place][other] == pytest.approx(value, abs=1e-5) and other != place
        assert all(sentence in one.text for sentence in sentences)
    heads, rows = embeddings.nearest_table(sentences, compared)
    assert heads == ["sentence", "Base model", "Echo", "LLM2Vec", "MAGNET"]
    other, value = compared[3].nearest[1]
    assert rows[1][0] == "2 A cat slept." and rows[1][4] == f"{other + 1} ({value:.2f})"


def test_the_mean_can_be_asked_of_all_but_echo(tiny_lab):
    sentences = ["The dog ran.", "A cat slept."]
    *_, compared = embeddings.compare_sentences(tiny_lab, "\n".join(sentences), "mean", ["magnet", "base"])
    for one, encoder in zip(compared, (Unidirectional(tiny_lab), tiny_lab.use("magnet")), strict=True):
        vectors = encoder.encode(sentences, pooling="mean")
        assert picture_of(one.heatmap)[0, 1] == pytest.approx(
            float(tiny_lab.similarity(vectors, vectors)[0, 1]), abs=1e-5
        )


@pytest.mark.parametrize(
    ("chosen", "pooling", "sentence"),
    [([], "own", "tick at least one"), (["mntp"], "own", "with tiny; choose from base"), (["base"], "x", "pooling")],
)
def test_systems_that_cannot_encode_get_a_sentence(tiny_lab, chosen, pooling, sentence):
    with pytest.raises(ValueError, match=sentence):
        next(embeddings.compare_sentences(tiny_lab, "a\nb", pooling, chosen))


@pytest.mark.parametrize("text", ["", "only one", "a\n" * 25, "word " * 10_000 + "\nb", "x" * 401 + "\nb"])
def test_lists_of_sentences_that_do_not_fit_get_a_sentence(tiny_lab, text):
    with pytest.raises(ValueError, match="sentence"):
        next(embeddings.compare_sentences(tiny_lab, text))


def test_words_are_compared_in_their_sentences(tiny_lab):
    *_, compared = embeddings.compare_words(tiny_lab, "The dog ran.", "A big dog")
    sentences = [["The", "dog", "ran."], ["A", "big", "dog"]]
    encoders = Unidirectional(tiny_lab), tiny_lab.use("llm2vec"), tiny_lab.use("magnet")
    for one, encoder in zip(compared, encoders, strict=True):
        assert np.allclose(picture_of(one.heatmap), tiny_lab.similarity(*encoder.encode_words(sentences)), atol=1e-5)
        assert f"“dog” is {picture_of(one.heatmap)[1, 2]:.2f} like itself" in one.sentence
    assert compared[2].sentence.startswith("MAGNET: most alike are")


@pytest.mark.parametrize(("first", "second"), [("", "a"), ("a", " "), ("word " * 10_000, "a"), ("a", "b " * 25)])
def test_sentences_without_words_or_with_too_many_get_a_sentence(tiny_lab, first, second):
    with pytest.raises(ValueError, match="the (first|second) sentence"):
        next(embeddings.compare_words(tiny_lab, first, second))


@pytest.mark.parametrize("text", HOSTILE)
def test_any_sentence_can_be_compared(tiny_lab, text):
    [*embeddings.compare_sentences(tiny_lab, f"{text}\nand this", chosen=["base"])]
    [*embeddings.compare_words(tiny_lab, text, text, ["base"])]
