"""lm-eval's scores against the model run by hand on one prefix after the other, which can see no future."""

import json

import pytest
import torch

pytest.importorskip("lm_eval")

import lm_eval
from decoders import random_decoder, sentencepiece_tokenizer
from lm_eval.api.instance import Instance
from lm_eval.tasks import TaskManager

from magnet_lab import Magnet
from magnet_lab.integrations.lm_eval_model import language_model

CONTEXT = "Tom had a red ball. He liked to"
PAIRS = [
    (CONTEXT, " play"),
    (CONTEXT, " run"),  # one token and the same context: lm-eval scores both from one forward pass
    (CONTEXT, " sleep in the big garden all day."),
    ("Once upon a time there was a little dog who", " barked."),
    ("", "The end"),
]


@pytest.fixture(scope="module")
def adapted_lab(tiny_lab):
    return tiny_lab.use("magnet")


def loglikelihoods(model, pairs=PAIRS) -> list[tuple[float, bool]]:
    requests = [Instance("loglikelihood", {}, pair, index) for index, pair in enumerate(pairs)]
    return model.loglikelihood(requests, disable_tqdm=True)


def by_hand(lab, context: str, continuation: str) -> tuple[float, bool]:
    """The sum of the log-probabilities of a continuation's tokens, and whether each is the likeliest."""
    start = lab.tokenizer(context)["input_ids"]
    whole = lab.tokenizer(context + continuation)["input_ids"]
    assert whole[: len(start)] == start
    total, greedy = 0.0, True
    for place in range(len(start), len(whole)):
        with torch.no_grad():
            logits = lab.model(torch.tensor([whole[:place]])).logits[0, -1].double()
        total += float(logits.log_softmax(-1)[whole[place]])
        greedy = greedy and int(logits.argmax()) == whole[place]
    return total, greedy


@pytest.mark.parametrize("batch_size", [1, 8])
def test_loglikelihoods_are_those_of_the_prefixes(tiny_lab, adapted_lab, batch_size):
    for lab in (tiny_lab, adapted_lab):
        found = loglikelihoods(language_model(lab, batch_size=batch_size))
        for pair, (score, greedy) in zip(PAIRS, found, strict=True):
            expected, likeliest = by_hand(lab, *pair)
            assert score == pytest.approx(expected, abs=1e-3)
            assert greedy == likeliest
    likely = tiny_lab.generate(CONTEXT, max_new_tokens=3)
    assert loglikelihoods(language_model(tiny_lab), [(CONTEXT, likely)])[0][1]


def test_other_modes_of_the_same_model_change_nothing(adapted_lab):
    model = language_model(adapted_lab)
    before = loglikelihoods(model)
    vectors = adapted_lab.encode([CONTEXT])
    adapted_lab.infill("Tom had a red ball. [blank:4] He was very sad.")
    assert loglikelihoods(model) == before
    assert torch.equal(adapted_lab.encode([CONTEXT]), vectors)


def test_texts_go_through_the_model_in_batches(tiny_lab):
    shapes = []
    hook = tiny_lab.model.register_forward_pre_hook(lambda module, inputs: shapes.append(inputs[0].shape[0]))
    pairs = [(f"Tom had {number} balls and", " he liked them") for number in range(6)]
    loglikelihoods(language_model(tiny_lab, batch_size=4), pairs)
    hook.remove()
    assert shapes == [4, 2]


def test_a_task_of_multiple_choice_runs_offline(adapted_lab, tmp_path):
    """Three labels as the prefixes by hand have it, one as they do not."""
    questions = [
        ("Tom had a", [" red ball", " red garden"]),
        ("The dog", [" barked at a bird", " barked at a time"]),
        ("She was very", [" sad", " happy", " big"]),
        ("Once upon a", [" time", " garden"]),
    ]
    rows = []
    for number, (question, choices) in enumerate(questions):
        best = max(range(len(choices)), key=lambda index: by_hand(adapted_lab, question, choices[index])[0])
        label = best if number else (best + 1) % len(choices)
        rows.append(json.dumps({"question": question, "choices": choices, "label": label}))
    data = tmp_path / "questions.jsonl"
    data.write_text("\n".join(rows), encoding="utf-8")
    task = {
        "task": "questions",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}, "cache_dir": str(tmp_path)},
        "output_type": "multiple_choice",
        "test_split": "test",
        "doc_to_text": "{{question}}",
        "doc_to_choice": "{{choices}}",
        "doc_to_target": "{{label}}",
        "target_delimiter": "",
        "metric_list": [{"metric": "acc"}],
    }
    results = lm_eval.simple_evaluate(
        model=language_model(adapted_lab),
        tasks=[task],
        task_manager=TaskManager(include_defaults=False),  # reads none of its thousands of tasks
        bootstrap_iters=0,
    )
    assert results["results"]["questions"]["acc,none"] == 0.75


def test_log_probabilities_of_a_bfloat16_model_are_float32():
    lab = Magnet.from_pretrained("tiny", adapter=None, device="cpu", dtype=torch.bfloat16)
    ids = lab.tokenizer(CONTEXT + " sleep")["input_ids"]
    with torch.no_grad():
        logits = lab.model(torch.tensor([ids[:-1]])).logits[0, -1]
    expected = float(logits.double().log_softmax(-1)[ids[-1]])
    ((found, _),) = loglikelihoods(language_model(lab), [(CONTEXT, " sleep")])
    assert found == pytest.approx(expected, abs=1e-4)


def test_the_model_and_its_tokenizer_stay_as_they_were():
    tokenizer = sentencepiece_tokenizer(["John lives in Paris with a very big dog"] * 3)
    assert tokenizer.pad_token is None
    lab = Magnet(random_decoder(vocab_size=len(tokenizer)), tokenizer)
    model = language_model(lab)
    assert model.model is lab.model
    assert model.tokenizer.pad_token is not None and lab.tokenizer.pad_token is None
    # A benchmark's chat template writes control tokens; a user of ours cannot.
    assert tokenizer.eos_token_id in model.tok_encode("big</s>dog")
    assert tokenizer.eos_token_id not in lab.tokenizer("big</s>dog")["input_ids"]


def test_a_model_that_its_config_makes_bidirectional_is_refused():
    tokenizer = sentencepiece_tokenizer(["John lives in Paris with a very big dog"] * 3)
    lab = Magnet(random_decoder(vocab_size=len(tokenizer), is_causal=False), tokenizer, name="an-encoder")
    with pytest.raises(ValueError, match="an-encoder has is_causal=false in its config"):
        language_model(lab)
