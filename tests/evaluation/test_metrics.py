"""The measures by hand counts, by another library, and by the equations as loops."""

import math

import pytest
import torch

from magnet_lab import views
from magnet_lab.evaluation import infilling, masked, repetition, similarity

STORY = "Tom had a red ball. He lost it in the park. A girl found it there. She gave it back. Tom was happy."


def test_repeated_sentences_by_hand():
    assert repetition.rep_sen("He ran. She sat. He ran. he ran.") == pytest.approx(2 / 4)
    assert repetition.rep_sen("He ran. She sat.") == 0
    assert repetition.rep_sen("") == 0


def test_repeated_runs_of_words_by_hand():
    # a b a b a b: runs of two are ab ba ab ba ab, two different ones of five
    assert repetition.rep_n("a b a b a b", n=2) == pytest.approx(1 - 2 / 5)
    assert repetition.rep_n("a b c d e") == 0  # abcd, bcde
    assert repetition.rep_n("a b c") == 0


def test_copies_of_four_words():
    context = "Tom had a red ball. He lost it in the park."
    assert infilling.copies(context, 'She saw that he, "lost it in" a tree.')
    assert not infilling.copies(context, "He lost the ball in a park.")
    assert not infilling.copies(context, "lost it in")


def test_one_sentence_of_each_story_is_missing_and_never_the_first():
    made = infilling.remove_sentences([STORY] * 50, seed=1)
    assert {story.text.replace("[blank]", *story.fills) for story in made} == {STORY}
    assert {story.fills[0] for story in made} == {
        "He lost it in the park.", "A girl found it there.", "She gave it back.", "Tom was happy.",
    }  # fmt: skip
    assert infilling.remove_sentences([STORY] * 50, seed=1) == made
    assert infilling.remove_sentences(["Too short. Really."]) == []


def test_spans_are_cut_out_of_passages_and_fit_back():
    passage = " ".join(f"w{number}" for number in range(60))
    for missing in infilling.remove_spans([passage] * 40, seed=2):
        text = missing.text
        assert 1 <= len(missing.fills) == text.count("[blank]") <= 3 and not text.startswith("[blank]")
        assert "[blank] [blank]" not in text
        for fill in missing.fills:
            assert 6 <= len(fill.split()) <= 24
            text = text.replace("[blank]", fill, 1)
        assert text == passage
    assert infilling.remove_spans(["too short to cut"]) == []


def test_perplexity_is_over_all_tokens_together():
    log_probs = [torch.tensor([math.log(0.5)]), torch.tensor([math.log(0.25)] * 3)]
    assert infilling.perplexity(log_probs) == pytest.approx((0.5 * 0.25**3) ** (-1 / 4))


def test_missing_sentences_are_scored_as_score_infill_does(tiny_lab):
    made = infilling.remove_sentences([STORY], seed=0)
    for mode in ("infill", "causal"):
        (found,) = infilling.log_probs(tiny_lab, made, mode=mode)
        expected = tiny_lab.score_infill(made[0].text, made[0].fills, mode=mode)
        assert infilling.perplexity([found]) == pytest.approx(expected.perplexity)


def test_masked_accuracy_counts_what_full_logits_say(tiny_lab):
    """One text at a time, all positions scored by transformers under a mask of nothing but ones."""
    found = masked.accuracy(tiny_lab, [STORY, STORY[:40]], share=0.4, batch=1, seed=3)
    generator, right, asked = torch.Generator().manual_seed(3), 0, 0
    for text in (STORY, STORY[:40]):
        ids = torch.tensor([tiny_lab.tokenizer(text)["input_ids"]])
        made = views.make_views(
            ids, torch.ones_like(ids), tokenizer=tiny_lab.tokenizer, generator=generator, mask_share=0.4, max_spans=0
        )
        length = ids.shape[1]
        with torch.no_grad():
            mask = torch.ones(1, 1, length, length, dtype=torch.bool)
            best = tiny_lab.model(input_ids=made.input_ids, attention_mask=mask).logits.argmax(dim=-1)
        for place in range(1, length):
            if made.selected[0, place]:
                asked += 1
                right += int(best[0, place - 1] == ids[0, place])
    assert asked > 10
    assert found == pytest.approx(100 * right / asked)


def test_continuations_in_a_batch_are_those_of_one_text(tiny_lab):
    prefixes = ["Once upon a time", "Tom had a red ball. He lost it", "Lily"]
    together = repetition.continuations(tiny_lab, prefixes, new_tokens=12, batch=2)
    alone = [tiny_lab.generate(prefix, max_new_tokens=12) for prefix in prefixes]
    assert [text.strip() for text in together] == [text.strip() for text in alone]


def test_rank_correlation_by_its_formula():
    """1 - 6 Σd² / (n (n² - 1)), which holds where nothing is tied."""
    scores, cosines = [1.0, 2.0, 3.0, 4.0, 5.0], [0.1, 0.4, 0.2, 0.9, 0.5]
    differences = [0, 1, -1, 1, -1]
    expected = 100 * (1 - 6 * sum(d * d for d in differences) / (5 * 24))
    assert similarity.spearman(scores, cosines) == pytest.approx(expected)


def test_pairs_are_read_as_they_stand_and_mistakes_named(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text('5\tHe said "no.\tHe refused.\tnote\n0.5\tA.\tB.\n1\tC.\tD.\n', encoding="utf-8")
    assert similarity.read_pairs(path) == ([5.0, 0.5, 1.0], ['He said "no.', "A.", "C."], ["He refused.", "B.", "D."])
    assert similarity.read_pairs(path, most=2)[0] == [5.0, 1.0]
    path.write_text("5\tA.\tB.\nmuch\tA.\tB.\n")
    with pytest.raises(ValueError, match=r"pairs\.tsv, line 2: a score and two sentences"):
        similarity.read_pairs(path)
    with pytest.raises(ValueError, match=r"no file .*gone\.tsv"):
        similarity.read_pairs(tmp_path / "gone.tsv")


def test_cosines_of_pairs(tiny_lab):
    first, second = ["A dog ran.", "It rains."], ["A cat sat.", "It snows."]
    found = similarity.cosines(tiny_lab, first, second, pooling="last")
    expected = tiny_lab.similarity(first, second).diagonal()
    assert torch.allclose(found, expected, atol=1e-6)
