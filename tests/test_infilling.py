"""Infilling with the cache against the whole text run anew for every token."""

import pytest
import torch
from decoders import BACKENDS, FAMILIES, random_decoder
from hypothesis import given, settings
from hypothesis import strategies as st

from magnet_lab import attention, decoder
from magnet_lab.blanks import Blank, Template
from magnet_lab.infilling import infill
from magnet_lab.spans import Sampling, decode, gap_layouts, read_context, write_token

STORY = "Tom had a red ball. [blank:6] He was very [blank:2] that day."


def plan_of(ids: list[int], anchors: list[int], lengths: list[int]) -> Template:
    """Token ids with blanks of given lengths, without any text."""
    blanks = tuple(Blank(length, length, False, False, False, False) for length in lengths)
    return Template(("",) * (len(blanks) + 1), blanks, tuple(ids), tuple(anchors))


def full_pass(model, plan: Template, lengths: list[int], written: list[list[int]]) -> list[torch.Tensor]:
    """Scores of every blank's next token by one pass over the whole text, with gaps where nothing stands yet."""
    ids, span_ids, positions, ends = [], [], [], []
    position = 0
    for index, token in enumerate(plan.ids):
        ids.append(token)
        span_ids.append(0)
        positions.append(position)
        position += 1
        for blank, anchor in enumerate(plan.anchors):
            if anchor == index:
                for offset, written_token in enumerate(written[blank]):
                    ids.append(written_token)
                    span_ids.append(blank + 1)
                    positions.append(position + offset)
                ends.append(len(ids) - 1)
                position += lengths[blank]
    mask = attention.attention_mask(torch.tensor([span_ids]))
    with torch.no_grad():
        scores = model(
            input_ids=torch.tensor([ids]),
            attention_mask=decoder.backend_mask(model, mask),
            position_ids=torch.tensor([positions]),
        ).logits[0]
    return [scores[end] for end in ends]


@pytest.mark.parametrize("implementation", BACKENDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_cached_scores_are_those_of_a_full_pass(family, implementation):
    """Token for token, in two blanks at once, for forced tokens."""
    model = random_decoder(family, implementation)
    plan, lengths = plan_of(list(range(5, 25)), anchors=[4, 11], lengths=[6, 3]), [6, 3]
    forced = [[30, 31, 32, 33, 34, 35], [40, 41, 42]]
    with torch.no_grad():
        cache, first = read_context(model, plan, gap_layouts(plan))
        expected = full_pass(model, plan, lengths, [[], []])
        for blank in range(2):
            assert (first[0, blank] - expected[blank]).abs().max() < 1e-4
        cache.batch_select_indices(torch.tensor([0, 0]))
        starts = torch.tensor([5, 12 + 6])
        for step in range(3):
            tokens = torch.tensor([forced[0][step], forced[1][step]])
            scores = write_token(model, cache, tokens, starts + step)
            expected = full_pass(model, plan, lengths, [blank[: step + 1] for blank in forced])
            for blank in range(2):
                assert (scores[blank] - expected[blank]).abs().max() < 1e-4


@st.composite
def plans(draw):
    """Any context of 2…20 tokens with one to three blanks of 1…7 tokens."""
    size = draw(st.integers(2, 20))
    ids = draw(st.lists(st.integers(3, 96), min_size=size, max_size=size))
    anchors = sorted(draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=3)))
    lengths = draw(st.lists(st.integers(1, 7), min_size=len(anchors), max_size=len(anchors)))
    return plan_of(ids, anchors, lengths), lengths


@given(plans())
@settings(max_examples=25)
def test_decoding_all_blanks_is_greedy_decoding_of_each_by_full_passes(tiny_lab, case):
    """Several blanks, several lengths, rows that end at different times: each as if written alone and anew."""
    plan, lengths = case
    *_, rows = decode(tiny_lab.model, tiny_lab.tokenizer, plan, list(range(len(lengths))), 1, Sampling())
    special = tiny_lab.tokenizer.all_special_ids
    written = [[] for _ in lengths]
    for blank, length in enumerate(lengths):
        for _ in range(length):
            # The other blanks are empty here: that they are written at the same time makes no difference.
            alone = [written[blank] if other == blank else [] for other in range(len(lengths))]
            scores = full_pass(tiny_lab.model, plan, lengths, alone)[blank]
            scores[special] = -torch.inf
            written[blank].append(int(scores.argmax()))
    assert rows.tokens == written


def test_log_probs_are_those_of_the_full_pass(tiny_lab):
    best = tiny_lab.infill(STORY).candidates[0]
    fills = [span.text for span in best.spans]
    scored = tiny_lab.score_infill(STORY, fills)
    assert [span.ids for span in best.spans] != [(), ()]
    for span, log_probs in zip(best.spans, scored.log_probs, strict=True):
        assert torch.allclose(torch.tensor(span.log_probs), log_probs, atol=1e-4)


def test_text_is_put_together_with_its_spaces(tiny_lab):
    result = tiny_lab.infill(STORY)
    first, second = result.spans
    assert result.text == f"Tom had a red ball. {first} He was very {second} that day."
    opening = tiny_lab.infill("[blank:4] He was sad.")
    assert opening.text == f"{opening.spans[0]} He was sad."
    closing = tiny_lab.infill("He was sad. [blank:4]")
    assert closing.text == f"He was sad. {closing.spans[0]}"
    inside = tiny_lab.infill("He was un[blank:2]ed.")
    assert inside.text.startswith("He was un") and inside.text.endswith("ed.")


def test_a_fixed_length_is_kept_and_a_range_is_searched(tiny_lab):
    result = tiny_lab.infill("She saw [blank:3] in the [blank:2-4].", num_candidates=4)
    assert len(result.candidates) == 4
    for candidate in result.candidates:
        assert len(candidate.spans[0].ids) == 3
        assert 2 <= len(candidate.spans[1].ids) <= 4
    layouts = gap_layouts(plan_of([5, 6], [0], [1]))
    assert layouts.tolist() == [[1]]
    wide = Template(("", ""), (Blank(1, 100, False, False, False, False),), (5,), (0,))
    assert gap_layouts(wide)[:, 0].tolist() == [1, 15, 29, 43, 58, 72, 86, 100]


def test_candidates_differ_and_are_ranked(tiny_lab):
    result = tiny_lab.infill("She saw [blank:3] in the garden.", num_candidates=5)
    assert len({candidate.text for candidate in result.candidates}) == 5
    scores = [candidate.score for candidate in result.candidates]
    assert scores == sorted(scores, reverse=True)
    assert result.score == pytest.approx(sum(result.candidates[0].spans[0].log_probs) / 3)


def test_a_sentence_that_ends_is_preferred_to_a_likelier_one(tiny_lab):
    story = "Tom had a red ball. [blank:4-12] He was very sad."
    candidates = tiny_lab.infill(story, num_candidates=8).candidates
    ends = [candidate.spans[0].text.rstrip()[-1] in '.!?"' for candidate in candidates]
    assert any(ends)
    assert ends == sorted(ends, reverse=True)


def test_ranking_by_the_whole_text(tiny_lab):
    """The order is that of transformers' own causal loss over the whole text."""
    result = tiny_lab.infill("She saw [blank:3] in the garden.", num_candidates=5, rank="text")
    losses = []
    for candidate in result.candidates:
        ids = tiny_lab.tokenizer(candidate.text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            losses.append(tiny_lab.model(input_ids=ids, labels=ids).loss.item())
    assert losses == sorted(losses)


def test_one_after_the_other_is_filling_one_blank_at_a_time(tiny_lab):
    """Each fill becomes context: the same as infilling again with the first fill written out."""
    story = "Tom had [blank:3] and then he was [blank:2] all day."
    result = tiny_lab.infill(story, sequential=True)
    first = tiny_lab.infill(story).candidates[0].spans[0]
    assert result.candidates[0].spans[0].ids == first.ids
    second = tiny_lab.infill(f"Tom had{first.text} and then he was [blank:2] all day.").candidates[0].spans[0]
    assert result.candidates[0].spans[1].ids == second.ids


def test_sampling_repeats_with_its_seed(tiny_lab):
    options = {"temperature": 1.0, "top_p": 0.95, "top_k": 50, "num_candidates": 3}
    first = tiny_lab.infill(STORY, seed=1, **options)
    assert tiny_lab.infill(STORY, seed=1, **options) == first
    assert tiny_lab.infill(STORY, seed=2, **options) != first


def test_top_k_one_is_greedy(tiny_lab):
    sampled = tiny_lab.infill(STORY, temperature=2.0, top_k=1, seed=0)
    assert sampled.text == tiny_lab.infill(STORY).text


def test_no_special_token_and_no_missing_space(tiny_lab):
    for seed in range(5):
        result = tiny_lab.infill(STORY, temperature=5.0, seed=seed)
        for span in result.candidates[0].spans:
            assert not set(span.ids) & set(tiny_lab.tokenizer.all_special_ids)
            assert span.text.startswith(" ")


def test_streaming_ends_in_the_result_and_can_be_stopped(tiny_lab):
    snapshots = list(tiny_lab.infill(STORY, stream=True))
    assert snapshots[-1] == tiny_lab.infill(STORY)
    assert len(snapshots) == 6 + 1  # one a token of the longest blank, and the result
    lengths = [len(snapshot.candidates[0].spans[0].ids) for snapshot in snapshots[:-1]]
    assert lengths == [1, 2, 3, 4, 5, 6]
    stream = tiny_lab.infill(STORY, stream=True)
    next(stream)
    stream.close()
    assert list(stream) == []


def test_works_for_every_family(tiny_lab):
    """The tokenizer's ids exceed no random model's vocabulary of the same size."""
    for family in FAMILIES:
        model = random_decoder(family, vocab_size=len(tiny_lab.tokenizer))
        *_, result = infill(model, tiny_lab.tokenizer, STORY)
        assert len(result.spans) == 2


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_candidates": 0}, "num_candidates is 0"),
        ({"rank": "best"}, "rank 'best' is not known"),
        ({"temperature": -1.0}, "temperature -1.0"),
        ({"temperature": float("nan")}, "temperature nan"),
        ({"top_p": 0.0}, "top_p 0.0"),
        ({"top_k": -1}, "top_k -1"),
        ({"num_candidates": 500}, "more than 256 spans"),
    ],
)
def test_bad_settings_are_named(tiny_lab, arguments, message):
    with pytest.raises(ValueError, match=message):
        tiny_lab.infill(STORY, **arguments)


def test_too_long_is_named(tiny_lab):
    with pytest.raises(ValueError, match="blank 1 asks for 5,000 tokens; .*1,024 positions"):
        tiny_lab.infill("Tom had a ball. [blank:5000] He was sad.")
    with pytest.raises(ValueError, match="text around the blanks has .* tokens; the model can read 1,024"):
        tiny_lab.infill("word " * 10_000 + "[blank:3] end.")


def test_scores_of_several_open_blanks_are_those_of_the_text_returned(tiny_lab):
    """The best fills may come from layouts of different widths; the score is that of them together."""
    story = "Tom had a [blank:1-8] and he was [blank:1-8] with his friends in the park."
    for candidate in tiny_lab.infill(story, num_candidates=3).candidates:
        scored = tiny_lab.score_infill(story, [span.text for span in candidate.spans])
        assert candidate.score == pytest.approx(torch.cat(scored.log_probs).mean().item(), abs=1e-3)


def test_an_open_length_does_not_stop_within_a_sentence(tiny_lab):
    """Every fill ends a sentence, unless it has no end of one in its allowed lengths; a fixed length is kept."""
    ends = (".", "!", "?", '"')
    story = "Tom had a red ball. [blank:3-20] He was very sad."
    for candidate in tiny_lab.infill(story, num_candidates=8).candidates:
        (span,) = candidate.spans
        assert span.text.endswith(ends) or not any(token.strip() in ends for token in span.tokens[2:])
        assert 3 <= len(span.ids) == len(span.tokens) == len(span.log_probs) <= 20
        assert candidate.text == f"Tom had a red ball.{span.text} He was very sad."
    fixed = tiny_lab.infill("Tom had a red ball. [blank:17] He was very sad.", num_candidates=4)
    assert all(len(candidate.spans[0].ids) == 17 for candidate in fixed.candidates)
