"""Table 7: does the adaptation cost the model what it knows? Questions with four choices, read from left to right.

From the hub it is MMLU, by lm-eval. In place of it, where nothing is fetched, the project's own questions are put in
the same form: five solved examples of the subject, the question with its choices, and the likeliest of four letters.
"""

import torch
from tqdm import tqdm
from transformers import DynamicCache

from magnet_lab.decoder import continuation_ids, start_ids, text_ids
from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Rows, Setting, bootstrap
from magnet_lab.evaluation.written import percentage
from magnet_lab.integrations import needs
from magnet_lab.model import Magnet

LETTERS = "ABCD"
EXAMPLES = 5
# The paper's columns, where lm-eval's groups or the subjects of our questions have other names.
COLUMNS = {"stem": "STEM", "social_sciences": "social sciences", "other": "others"}


def ask(question: dict) -> str:
    """A question as MMLU puts it, up to the letter of its answer."""
    choices = [f"{letter}. {choice}" for letter, choice in zip(LETTERS, question["choices"], strict=True)]
    return "\n".join([question["question"], *choices, "Answer:"])


@torch.no_grad()
def answers(lab: Magnet, solved: list[dict], questions: list[dict]) -> list[int]:
    """For each question the index of the likeliest letter, after the solved ones.

    The solved examples are the same for all questions, so they are read once and their keys and values kept. A model
    that is too short for all of them gets the last ones.

    Raises:
        ValueError: for a question that is too long for the model without any example.
    """
    tokenizer, device = lab.tokenizer, lab.device
    asked = [continuation_ids(tokenizer, f"\n\n{ask(question)}") for question in questions]
    for left_out in range(len(solved) + 1):
        shown = [f"{ask(example)} {LETTERS[example['answer']]}" for example in solved[left_out:]]
        head = f"The following are multiple choice questions (with answers) about {questions[0]['subject']}."
        before = start_ids(tokenizer) + text_ids(tokenizer, "\n\n".join([head, *shown]))
        longest = len(before) + max(map(len, asked))
        if longest <= lab.max_length:
            break
    else:
        raise ValueError(f"a question has {longest:,} tokens; {lab.name} can read {lab.max_length:,}")
    letters = [continuation_ids(tokenizer, f" {letter}")[0] for letter in LETTERS]
    cache = DynamicCache(config=lab.model.config)
    lab.model(torch.tensor([before], device=device), past_key_values=cache, use_cache=True, logits_to_keep=1)
    chosen = []
    for ids in tqdm(asked, desc=questions[0]["subject"], unit=" questions", leave=False):
        ids = torch.tensor([ids], device=device)
        scores = lab.model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[0, -1]
        cache.crop(-ids.shape[1])  # what was asked is forgotten again
        chosen.append(int(scores[letters].argmax()))
    return chosen


def own_questions(lab: Magnet, questions: list[dict], most: int) -> dict[str, list[bool]]:
    """Subject -> for each question whether it was answered rightly; the first ones of each subject are the examples."""
    found = {}
    for subject in dict.fromkeys(question["subject"] for question in questions):
        mine = [question for question in questions if question["subject"] == subject]
        solved, asked = mine[:EXAMPLES], mine[EXAMPLES:][:most]
        chosen = answers(lab, solved, asked)
        found[subject] = [choice == question["answer"] for choice, question in zip(chosen, asked, strict=True)]
    return found


def mmlu(lab: Magnet, most: int | None) -> dict[str, list[bool]]:
    """The same of MMLU, by lm-eval, which fetches it; `most` questions of each of its 57 tasks.

    Raises:
        PackageMissing: without lm-eval.
    """
    with needs("lm_eval"):
        import lm_eval
    from magnet_lab.integrations.lm_eval_model import language_model

    run = lm_eval.simple_evaluate(
        model=language_model(lab), tasks=["mmlu"], num_fewshot=EXAMPLES, limit=most, bootstrap_iters=0
    )
    return by_group(run)


def by_group(run: dict) -> dict[str, list[bool]]:
    """What lm-eval found: group of tasks -> for each question whether it was answered rightly."""
    return {
        group.removeprefix("mmlu_"): [sample["acc"] == 1 for task in tasks for sample in run["samples"][task]]
        for group, tasks in run["group_subtasks"].items()
        if group.startswith("mmlu_")
    }


def accuracies(right: dict[str, list[bool]]) -> dict[str, Figure]:
    """Accuracies by the paper's columns, and over all questions."""
    figures = {COLUMNS.get(subject, subject): bootstrap(found, percentage) for subject, found in right.items()}
    return figures | {"average": bootstrap([each for found in right.values() for each in found], percentage)}


def _row(adapter: str | None):
    def measure(setting: Setting) -> dict[str, Figure]:
        lab = setting.lab(adapter)
        if setting.data.source == "hub":
            return accuracies(mmlu(lab, setting.some(None, 2)))
        return accuracies(own_questions(lab, setting.data.questions(), setting.some(1000, 5)))

    return measure


def _costs_little(rows: Rows) -> bool | None:
    """Where the base model may be guessing, there is nothing to lose."""
    if "base" not in rows or "MAGNET" not in rows or rows["base"]["average"].low <= 100 / len(LETTERS):
        return None
    return rows["MAGNET"]["average"].value >= rows["base"]["average"].value - 2


EXPERIMENT = Experiment(
    id="table7",
    title="MMLU: accuracy (%)",
    rows={"base": _row(None), "MAGNET": _row("magnet")},
    claims=[Claim("MAGNET costs at most two points of what the base model knows (45.3 to 43.7)", _costs_little)],
)
