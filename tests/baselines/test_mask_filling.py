"""Mask filling against a slow loop: every mask of every length alone, with a mask of attention written out."""

import pytest
import torch
from decoders import BACKENDS, random_decoder

from magnet_lab import Magnet
from magnet_lab.baselines import MaskFilling
from magnet_lab.blanks import template


@pytest.fixture(scope="module", params=BACKENDS)
def lab(request, tiny_lab):
    """A tiny random decoder."""
    model = random_decoder(implementation=request.param, vocab_size=len(tiny_lab.tokenizer))
    return Magnet(model, tiny_lab.tokenizer)


def hidden(lab: Magnet, ids: list[int], place: int, begins_word: bool) -> tuple[int, float]:
    """The likeliest token at a mask, read one position to its left, every token seeing every other."""
    sees = torch.zeros(1, 1, len(ids), len(ids))  # to be added to the scores: nothing is forbidden
    with torch.no_grad():
        scores = lab.model(torch.tensor([ids]), attention_mask=sees, position_ids=torch.arange(len(ids))[None])
    log_probs = scores.logits[0, place - 1].log_softmax(dim=-1)
    choices = log_probs.clone()
    for token in range(len(lab.tokenizer)):
        text = lab.tokenizer.decode([token])
        is_word_start = len(text) > 1 and text[0] == " "
        if token in lab.tokenizer.all_special_ids or text == "_" or (begins_word and not is_word_start):
            choices[token] = -torch.inf
    return int(choices.argmax()), float(log_probs[choices.argmax()])


def mask_of(lab: Magnet) -> int:
    (mask,) = lab.tokenizer("_", add_special_tokens=False)["input_ids"]
    return mask


def filled(lab: Magnet, text: str, widths: list[int]) -> tuple[list[list[int]], list[float]]:
    """The tokens of every blank and all log-probabilities, for blanks of these widths."""
    plan = template(lab.tokenizer, text)
    ids, blanks = [], []
    for index, token in enumerate(plan.ids):
        ids.append(token)
        for blank, anchor in enumerate(plan.anchors):
            if anchor == index:
                blanks.append(range(len(ids), len(ids) + widths[blank]))
                ids += [mask_of(lab)] * widths[blank]
    log_probs = []
    for blank, places in enumerate(blanks):
        for place in places:
            begins_word = place == places[0] and plan.blanks[blank].after_space
            ids[place], log_prob = hidden(lab, ids, place, begins_word)
            log_probs.append(log_prob)
    return [[ids[place] for place in places] for places in blanks], log_probs


def test_blanks_are_filled_as_one_mask_at_a_time(lab):
    text = "Tom had a [blank:4] ball and un[blank:2]ed it."
    best = MaskFilling(lab, adapter=None).infill(text).candidates[0]
    tokens, log_probs = filled(lab, text, [4, 2])
    assert [list(span.ids) for span in best.spans] == tokens
    assert [log_prob for span in best.spans for log_prob in span.log_probs] == pytest.approx(log_probs, abs=1e-4)
    first, second = (lab.tokenizer.decode(ids) for ids in tokens)
    assert best.text == f"Tom had a{first} ball and un{second}ed it."


def test_of_several_lengths_the_likeliest_is_taken(lab):
    """Two blanks grow together, from all shortest to all longest."""
    text = "Tom had a [blank:1-3] ball and [blank:2-4] it."
    found = [filled(lab, text, widths) for widths in ([1, 2], [2, 3], [3, 4])]
    tokens, log_probs = max(found, key=lambda made: sum(made[1]) / len(made[1]))
    best = MaskFilling(lab, adapter=None).infill(text)
    assert [list(span.ids) for span in best.candidates[0].spans] == tokens
    assert best.score == pytest.approx(sum(log_probs) / len(log_probs), abs=1e-4)


def test_a_fill_that_ends_a_sentence_is_preferred(tiny_lab):
    """Of one that ends a sentence and a likelier one that does not, the first is taken."""
    text = "The dog ran home. [blank:2-8] His mother was there."
    baseline = MaskFilling(tiny_lab, adapter="magnet")
    found = [filled(baseline.lab, text, [width]) for width in range(2, 9)]
    ends = [(tokens, log_probs) for tokens, log_probs in found if tiny_lab.tokenizer.decode(tokens[0])[-1] in '.!?"']
    likeliest = max(found, key=lambda made: sum(made[1]) / len(made[1]))
    assert ends and likeliest not in ends, "the case is there"
    tokens, _ = max(ends, key=lambda made: sum(made[1]) / len(made[1]))
    assert list(baseline.infill(text).candidates[0].spans[0].ids) == tokens[0]


def test_a_text_is_gone_on_with_by_a_mask_at_its_end(lab):
    """The caption of Table 11: a mask is added at the end and predicted, again and again."""
    ids = lab.tokenizer("Tom had a red ball.")["input_ids"]
    written = []
    for _ in range(6):
        token, _ = hidden(lab, [*ids, *written, mask_of(lab)], len(ids) + len(written), begins_word=False)
        written.append(token)
    baseline = MaskFilling(lab, adapter=None)
    assert baseline.generate("Tom had a red ball.", max_new_tokens=6) == lab.tokenizer.decode(written)


def test_neither_masks_nor_special_tokens_are_written(tiny_lab):
    """Not even by a model that finds them likeliest by far; for the rest, it writes what it writes without them."""
    lab = Magnet(random_decoder(vocab_size=len(tiny_lab.tokenizer)), tiny_lab.tokenizer)
    baseline = MaskFilling(lab, adapter=None)
    text = "Tom had a [blank:4] ball."
    filled, longer = baseline.infill(text).text, baseline.generate("Tom had", max_new_tokens=4)
    likely = torch.zeros(len(lab.tokenizer))
    likely[[mask_of(lab), *lab.tokenizer.all_special_ids]] = 1000
    lab.model.get_output_embeddings().register_forward_hook(lambda head, states, scores: scores + likely)
    assert baseline.infill(text).text == filled
    assert baseline.generate("Tom had", max_new_tokens=4) == longer


def test_sampling_repeats_with_its_seed(tiny_lab):
    baseline = MaskFilling(tiny_lab, adapter=None)
    text = "Tom had a [blank:4] ball."
    first = baseline.infill(text, temperature=1.5, seed=1)
    assert baseline.infill(text, temperature=1.5, seed=1) == first
    assert baseline.infill(text, temperature=1.5, seed=2) != first


def test_what_is_too_long_or_not_there_is_named(tiny_lab):
    baseline = MaskFilling(tiny_lab, adapter=None)
    with pytest.raises(ValueError, match="the text has no blank"):
        baseline.infill("Tom ran.")
    with pytest.raises(ValueError, match="blank 1 asks for 5,000 tokens"):
        baseline.infill("Tom had a ball. [blank:5000] He was sad.")
    with pytest.raises(ValueError, match="with 2,000 new ones that exceeds the model's 1,024"):
        baseline.generate("Tom ran.", max_new_tokens=2000)
    with pytest.raises(ValueError, match="temperature -1"):
        baseline.generate("Tom ran.", temperature=-1.0)
