"""What the page of the objectives does: views, predictions and losses against the equations in slow loops."""

import math
import re

import pytest
import torch

from magnet_lab.app import limits
from magnet_lab.app.components import predictions_table, views_strip
from magnet_lab.app.handlers import adapters, objectives
from magnet_lab.viz import token_texts

TEXT = "One day, Tom and Lily went to the big park. They saw a small dog. The dog was sad."
PAIRS = "Tom was happy.\nThe cat slept all day. | All day long the cat was asleep.\nHe did not see the bird."
HOSTILE = [
    "<s></s><img src=x onerror=alert(1)> ${alert(1)} {{x}}",
    "\x07\x1b[31m\x0b",
    "\u202eright to left עברית",
    "😀👩‍🔬 e\u0301",
]


# --- views


@pytest.mark.parametrize("seed", range(6))
def test_what_is_hidden_or_missing_is_asked_of_the_position_before_it(tiny_lab, seed):
    strip = objectives.draw_views(tiny_lab.tokenizer, TEXT, seed).masked
    true = ["<s>", *token_texts(tiny_lab.tokenizer, TEXT)]
    assert len(strip) == len(true)
    for place, here in enumerate(strip):
        after = strip[place + 1].kind if place + 1 < len(strip) else "context"
        assert here.objective == {"context": "", "span": "MSG", "masked": "MNTP"}[after]
        assert here.predicts == (true[place + 1] if here.objective else "")
        if here.kind != "masked":
            assert here.text == true[place]  # only what is hidden may be changed
    assert {"MSG", "MNTP"} <= {here.objective for here in strip}


def test_the_two_sentences_are_read_as_for_their_vector(tiny_lab):
    views = objectives.draw_views(tiny_lab.tokenizer, "Tom was happy.", 0)
    before, after = "<s>Given the sentence, find its representation: ", "</s>"
    assert "".join(token.text for token in views.text) == f"{before}Tom was happy.{after}"
    other = "".join(token.text for token in views.paraphrase).removeprefix(before).removesuffix(after)
    assert other in ("Tom was glad.", "Tom was cheerful.") and other in views.about_paraphrase
    assert views.text[-1].objective == "SSCL" and not any(token.objective for token in views.text[:-1])


def test_a_text_that_no_rule_fits_is_its_own_paraphrase(tiny_lab):
    assert "its own paraphrase" in objectives.draw_views(tiny_lab.tokenizer, "Grass grows.", 0).about_paraphrase


def test_a_seed_is_a_draw(tiny_lab):
    draws = [objectives.draw_views(tiny_lab.tokenizer, TEXT, seed).twin for seed in (3, 3, 4)]
    assert draws[0] == draws[1] != draws[2]


def test_all_three_fates_of_a_hidden_token_are_told(tiny_lab):
    fates = set()
    for seed in range(30):
        for token in objectives.draw_views(tiny_lab.tokenizer, TEXT, seed).masked:
            if token.kind == "masked":
                fate = re.search("hidden, (.*?) ·", token.words)[1]
                fates.add(fate)
                assert (token.text.strip() == "_") == (fate == "the mask token stands there")
    assert len(fates) == 3


def test_a_position_is_explained(tiny_lab):
    strip = objectives.draw_views(tiny_lab.tokenizer, TEXT, 0).masked
    place = next(place for place, here in enumerate(strip) if here.objective == "MSG" and here.kind == "span")
    about = objectives.draw_views(tiny_lab.tokenizer, TEXT, 0, place).about_masked
    seen = [
        key
        for key, other in enumerate(strip)
        if other.kind != "span" or (key <= place and other.words.split(" · ")[1] == strip[place].words.split(" · ")[1])
    ]
    assert f"Position {place} reads “{strip[place].text.strip()}”" in about[2] and "MSG" in about[2]
    told = re.search("It sees (.*)\\.", about[3])[1]
    spelt = []
    for part in told.split(", "):
        first, _, last = part.partition("–")
        spelt += range(int(first), int(last or first) + 1)
    assert spelt == seen


@pytest.mark.parametrize("position", [None, -1, 999, 1.5, math.nan])
def test_a_position_that_is_not_there_is_none(tiny_lab, position):
    views = objectives.draw_views(tiny_lab.tokenizer, TEXT, 0, position)
    assert not any(token.picked for token in views.masked) and "Pick a token" in views.about_masked[-1]


def test_pictures_show_both_kinds_of_mask(tiny_lab):
    pictures = objectives.draw_pictures(tiny_lab.tokenizer, TEXT, 0)
    first, second, third = (figure.axes[0].images[0].get_array() for figure in pictures.masks)
    assert (first == 1).all() and (second == 1).all() and (third == 0).any()
    assert "MSG" in " ".join(text.get_text() for text in pictures.predicts.axes[0].texts)


@pytest.mark.parametrize("text", ["", "  ", "word " * 10_000, "a b " * 40])
def test_a_text_that_is_empty_or_too_long_gets_a_sentence(tiny_lab, text):
    with pytest.raises(ValueError, match="the text"):
        objectives.draw_views(tiny_lab.tokenizer, text, 0)


@pytest.mark.parametrize("seed", [None, -1, 0.5, math.nan, math.inf, 2**40])
def test_a_seed_that_is_none_gets_a_sentence(tiny_lab, seed):
    with pytest.raises(ValueError, match="the seed"):
        objectives.draw_views(tiny_lab.tokenizer, TEXT, seed)


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_is_shown_as_typed(tiny_lab, text):
    views = objectives.draw_views(tiny_lab.tokenizer, text, 1)
    markup = views_strip.render(views.masked, "View", pick=True) + views_strip.render(views.text, "View")
    assert "<img" not in markup and "<s>" not in markup and "\u202e" not in markup
    found = objectives.predict(tiny_lab, text, 1, "base")
    assert "<img" not in predictions_table.render(found.rows, "a <b> name") and "\u202e" not in found.twin


# --- predictions


def test_predictions_and_losses_are_those_of_the_equations(tiny_lab):
    found = objectives.predict(tiny_lab, TEXT, 2, "base")
    input_ids, made = objectives.make(tiny_lab.tokenizer, TEXT, 2)
    spans, true = made.span_ids[0].tolist(), input_ids[0].tolist()
    length = len(true)
    allowed = torch.zeros(1, 1, length, length, dtype=torch.bool)
    for query in range(length):
        for key in range(length):
            allowed[0, 0, query, key] = spans[key] == 0 or (spans[key] == spans[query] and key <= query)
    with torch.no_grad():
        logits = tiny_lab.model(input_ids=made.input_ids, attention_mask=allowed).logits[0]
    sums = {"MNTP": [], "MSG": []}
    for row in found.rows:
        scores = [math.exp(score) for score in logits[row.position].double().tolist()]
        own = scores[true[row.position + 1]]
        assert row.probability == pytest.approx(own / sum(scores), rel=1e-3)
        assert row.rank == 1 + sum(score > own for score in scores)
        best = sorted(scores, reverse=True)[: objectives.TOP]
        assert [share for _, share in row.top] == pytest.approx([score / sum(scores) for score in best], rel=1e-3)
        assert (row.top[0][0] == row.true) == (row.rank == 1)
        sums[row.objective].append(-math.log(own / sum(scores)))
    assert found.mntp == pytest.approx(sum(sums["MNTP"]) / len(sums["MNTP"]), rel=1e-4)
    assert found.msg == pytest.approx(sum(sums["MSG"]) / len(sums["MSG"]), rel=1e-4)
    asked = [place for place in range(length - 1) if spans[place + 1] or made.selected[0, place + 1]]
    assert [row.position for row in found.rows] == asked


def test_the_adapter_is_the_one_that_is_asked(tiny_lab):
    base, magnet = (objectives.predict(tiny_lab, TEXT, 0, name) for name in ("base", "magnet"))
    assert magnet.mntp < base.mntp  # it has learned this, and the base model has not
    assert magnet.sentence.startswith("MAGNET:")


def test_a_text_too_short_has_no_losses(tiny_lab):
    found = objectives.predict(tiny_lab, "Hi", 0, "base")
    assert (found.mntp, found.msg, found.rows) == (None, None, []) and "too short" in found.sentence


def test_the_table_frames_what_is_right(tiny_lab):
    row = objectives.Prediction(3, " a", "MSG", " b", 0.5, 2, [(" c", 0.6), (" b", 0.5)])
    markup = predictions_table.render([row], "table")
    (framed,) = re.findall(r'class="right">(.*?)</span></span>', markup)
    assert "<bdi>b</bdi>" in framed and "the true one" in framed


def test_the_table_shows_tokens_as_typed():
    hostile = " <img src=x onerror=alert(1)>\u202e"
    row = objectives.Prediction(3, hostile, "MNTP", hostile, 0.5, 1, [(hostile, 0.6)])
    markup = predictions_table.render([row], hostile)
    assert "<img" not in markup and "\u202e" not in markup.partition("<table>")[2]
    assert markup.count("&lt;img") == 4


def test_adapters_are_put_on_once(tiny_lab):
    assert adapters.available("tiny") == ["base", "magnet", "llm2vec", "mntp"]
    assert adapters.use(tiny_lab, "magnet") is adapters.use(tiny_lab, "magnet")
    assert adapters.use(tiny_lab, "magnet").adapter == "magnet" and adapters.use(tiny_lab, "base").adapter is None
    with pytest.raises(ValueError, match="comes without '../../etc'; choose one of base, magnet"):
        adapters.use(tiny_lab, "../../etc")


# --- contrast


@pytest.mark.parametrize("temperature", [0.05, 0.1, 1.0])
def test_the_contrast_is_equation_3(tiny_lab, temperature):
    pairs = objectives.encode_pairs(tiny_lab, PAIRS, "base")
    assert pairs.paraphrases[1] == "All day long the cat was asleep." and pairs.sentences[0] == "Tom was happy."
    assert pairs.paraphrases[2] == "He didn't see the bird."
    anchors, candidates = tiny_lab.encode(pairs.sentences).tolist(), tiny_lab.encode(pairs.paraphrases).tolist()

    def cosine(a, b):
        dot = sum(x * y for x, y in zip(a, b, strict=True))
        return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))

    loss = 0.0
    for index, anchor in enumerate(anchors):
        terms = [math.exp(cosine(anchor, candidate) / temperature) for candidate in candidates]
        loss -= math.log(terms[index] / sum(terms)) / len(anchors)
    found = objectives.contrast(pairs, temperature, 2)
    assert found.loss == pytest.approx(loss, rel=1e-4, abs=1e-6)
    assert "sentence 2 among the paraphrases" in found.twin
    heatmap = objectives.draw_heatmap(pairs).axes[0].images[0].get_array()
    assert heatmap[1, 2] == pytest.approx(cosine(anchors[1], candidates[2]), rel=1e-4)
    assert (
        len(objectives.draw_row(pairs, temperature, 8).axes[0].patches) == 3
    )  # the last one, where there is no eighth


@pytest.mark.parametrize("text", ["", "alone", "a\n" * 9, "x" * 401 + "\nb", "a | " + "x" * 401 + "\nb", "| b\nc"])
def test_lists_of_sentences_that_do_not_fit_get_a_sentence(text):
    with pytest.raises(ValueError, match="sentence"):
        objectives.read_pairs(text)


@pytest.mark.parametrize("tau", [0, -1, 2, math.nan, None])
def test_a_temperature_that_is_none_gets_a_sentence(tiny_lab, tau):
    pairs = objectives.Pairs(["a", "b"], ["c", "d"], torch.eye(2), torch.eye(2))
    with pytest.raises(ValueError, match="τ"):
        objectives.contrast(pairs, tau)


# --- total


def test_the_total_is_equation_5():
    assert objectives.total(2.0, 0.5, 3.0, 1, 9, 0.5) == (
        "Total = 1 · 2.000 (MNTP) + 9 · 0.500 (SSCL) + 0.5 · 3.000 (MSG) = 8.000 nats."
    )


def test_losses_that_are_not_there_count_nothing():
    assert objectives.total(2.0, None, 3.0).endswith("= 5.000 nats. Not known yet: SSCL.")
    assert "ask the model" in objectives.total()


@pytest.mark.parametrize("weight", [math.nan, -1, limits.LAMBDA + 1, None, "1"])
def test_a_weight_that_is_none_gets_a_sentence(weight):
    with pytest.raises(ValueError, match="λ₂"):
        objectives.total(1.0, 1.0, 1.0, 1, weight, 1)
