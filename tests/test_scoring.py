"""Scores of given fills against transformers' own loss and against a loop over tokens."""

import pytest
import torch

from magnet_lab import attention, decoder
from magnet_lab.scoring import causal_score

STORY = "Tom had a red [blank]. He was very [blank] that day."
FILLS = ["ball", "happy about it"]


def test_causal_scores_are_those_of_transformers(tiny_lab):
    """Perplexity of the last words of a text is transformers' loss with everything else masked."""
    text = "Tom had a red ball. He was very"
    ids = tiny_lab.tokenizer(f"{text} happy about it", return_tensors="pt")["input_ids"]
    labels = ids.clone()
    labels[0, : len(tiny_lab.tokenizer(text)["input_ids"])] = -100
    with torch.no_grad():
        loss = tiny_lab.model(input_ids=ids, labels=labels).loss
    score = tiny_lab.score_infill(f"{text} [blank]", ["happy about it"], mode="causal")
    assert score.perplexity == pytest.approx(loss.exp().item(), rel=1e-4)


def test_causal_scores_do_not_see_the_right(tiny_lab):
    """What stands to the right of the last blank changes the infill score and not the causal one."""
    scores = {}
    for mode in ("causal", "infill"):
        for right in ("He was sad.", "The sun shone."):
            scores[mode, right] = tiny_lab.score_infill(
                f"Tom saw [blank] there. {right}", ["a dog"], mode=mode
            ).perplexity
    assert scores["causal", "He was sad."] == pytest.approx(scores["causal", "The sun shone."], rel=1e-5)
    assert scores["infill", "He was sad."] != pytest.approx(scores["infill", "The sun shone."], rel=1e-2)


def test_infill_scores_token_by_token(tiny_lab):
    """Every fill token by a pass of its own in which nothing after it exists but the context, at its true position."""
    tokenizer, model = tiny_lab.tokenizer, tiny_lab.model
    pieces = ["Tom had a red", " ball", ". He was very", " happy about it", " that day."]
    ids = [tokenizer(pieces[0])["input_ids"]] + [
        tokenizer(p, add_special_tokens=False)["input_ids"] for p in pieces[1:]
    ]
    start = [sum(len(part) for part in ids[:i]) for i in range(5)]
    context = [(start[i] + j, token) for i in (0, 2, 4) for j, token in enumerate(ids[i])]
    expected = []
    for span in (1, 3):
        log_probs = []
        for j, target in enumerate(ids[span]):
            own = [(start[span] + i, token) for i, token in enumerate(ids[span][:j])]
            row = context + own
            span_ids = torch.tensor([[0] * len(context) + [1] * len(own)])
            predictor = len(row) - 1 if own else [position for position, _ in row].index(start[span] - 1)
            with torch.no_grad():
                scores = model(
                    input_ids=torch.tensor([[token for _, token in row]]),
                    attention_mask=decoder.backend_mask(model, attention.attention_mask(span_ids)),
                    position_ids=torch.tensor([[position for position, _ in row]]),
                ).logits[0, predictor]
            log_probs.append(scores.log_softmax(dim=-1)[target].item())
        expected.append(log_probs)
    score = tiny_lab.score_infill(STORY, FILLS)
    for ours, theirs in zip(score.log_probs, expected, strict=True):
        assert ours.tolist() == pytest.approx(theirs, abs=1e-4)
    mean = sum(sum(row) for row in expected) / sum(len(row) for row in expected)
    assert score.perplexity == pytest.approx(torch.tensor(-mean).exp().item(), rel=1e-4)


def test_score_of_a_whole_text(tiny_lab):
    text = "Tom had a red ball. He was very happy."
    ids = tiny_lab.tokenizer(text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        loss = tiny_lab.model(input_ids=ids, labels=ids).loss.item()
    assert causal_score(tiny_lab.model, tiny_lab.tokenizer, text) == pytest.approx(-loss, rel=1e-4)


@pytest.mark.parametrize(
    "fills, mode, message",
    [
        (["ball"], "infill", r"2 blank\(s\).*1 fills came"),
        ("ball", "infill", "one string came"),
        (["ball", " "], "infill", "fill of blank 2 is empty"),
        (FILLS, "left", "mode 'left' is not known"),
        (["word " * 2000, "x"], "infill", "blank 1 asks for"),
    ],
)
def test_bad_input_is_named(tiny_lab, fills, mode, message):
    with pytest.raises(ValueError, match=message):
        tiny_lab.score_infill(STORY, fills, mode=mode)
