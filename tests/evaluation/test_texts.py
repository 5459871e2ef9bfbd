"""Texts and their judges: Tables 5, 7, 9, 10 and 11, against other libraries, slow loops and hand-made cases."""

import csv
import json
import math
import random
import sys
from dataclasses import replace

import pytest
import torch
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from magnet_lab import cli
from magnet_lab.evaluation import judgement, reproduce, table5, table7, table11, written
from magnet_lab.evaluation.data import Data
from magnet_lab.evaluation.experiment import Figure, Result, Row, Setting, texts
from magnet_lab.evaluation.infilling import Missing
from magnet_lab.integrations import PackageMissing

STORY = "Tom had a red ball. [blank] He was very sad."
OTHER = "Lily saw a bird. [blank] It flew away."
WRITTEN = {
    "base": {STORY: "He lost it.", OTHER: "She ran; fast."},
    "MAGNET": {STORY: 'He said "no".', OTHER: "It sang.\nLoudly."},
}


# What judgements come to


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (3, 7), (62, 100), (100, 100)])
def test_wilson_intervals_are_scipys(successes, n):
    expected = binomtest(successes, n).proportion_ci(method="wilson")
    found = judgement.wilson(successes, n)
    assert found.value == pytest.approx(100 * successes / n) and found.n == n
    assert found.low == pytest.approx(100 * expected.low, abs=0.01)
    assert found.high == pytest.approx(100 * expected.high, abs=0.01)
    assert found.low <= found.value <= found.high


def test_kappa_is_scikit_learns():
    generator = random.Random(0)
    for chance in (0.1, 0.5, 0.9):
        one = [generator.random() < chance for _ in range(60)]
        other = [answer if generator.random() < 0.7 else not answer for answer in one]
        assert judgement.kappa(list(zip(one, other, strict=True))) == pytest.approx(cohen_kappa_score(one, other))
    assert math.isnan(judgement.kappa([(True, True)] * 4))


def test_agreement_of_three_is_the_mean_over_pairs():
    generator = random.Random(1)
    raters = [{str(number): generator.random() < 0.6 for number in range(40)} for _ in range(3)]
    columns = [list(rater.values()) for rater in raters]
    expected = [cohen_kappa_score(columns[one], columns[other]) for one, other in ((0, 1), (0, 2), (1, 2))]
    found = judgement.agreement(raters)
    assert found.value == pytest.approx(sum(expected) / 3) and found.low < found.value < found.high
    same = {"1": True, "2": True}
    assert judgement.agreement([same, same]) is None
    assert judgement.agreement([raters[0], raters[0]]).value == pytest.approx(1)


def test_scores_count_sentences_not_judgements():
    key = [judgement.Item(str(number), "MAGNET", f"{number} [blank]", "x") for number in range(4)]
    key.append(judgement.Item("9", "base", "9 [blank]", "x"))
    one = {"0": True, "1": True, "2": False, "3": True, "9": False}
    other = {"0": True, "1": False, "2": False, "3": True, "9": False}
    found = judgement.scores(key, [one, other])
    assert found["MAGNET"].value == pytest.approx(100 * (1 + 0.5 + 0 + 1) / 4) and found["MAGNET"].n == 4
    assert found["base"].value == found["base"].low == 0 and found["base"].high > 50


# Sheets


def test_a_sheet_is_blind_shuffled_and_repeatable():
    many = {system: {f"Story {number}. [blank] End.": system for number in range(50)} for system in ("base", "MAGNET")}
    items = judgement.shuffled(many, seed=3)
    assert items == judgement.shuffled(many, seed=3) != judgement.shuffled(many, seed=4)
    assert [item.id for item in items] == [str(number) for number in range(1, 101)]
    assert {(item.system, item.text) for item in items} == {(s, text) for s, some in many.items() for text in some}
    systems = [item.system for item in items]
    assert systems not in (sorted(systems), sorted(systems, reverse=True))
    assert 10 < systems[:50].count("base") < 40
    assert judgement.Item("1", "base", STORY, "He lost it.").story == (
        "Tom had a red ball. >>> He lost it. <<< He was very sad."
    )


@pytest.fixture
def sheet(tmp_path):
    """Items, and a function that writes a rater's sheet from its lines below the header."""
    items = judgement.shuffled(WRITTEN)

    def filled(*lines: str, header="id,story,fits (yes/no)", encoding="utf-8"):
        path = tmp_path / "anna.csv"
        path.write_text("\n".join([header, *lines]) + "\n", encoding=encoding)
        return path

    return items, filled


def test_a_sheet_comes_back_as_it_was_filled_in(sheet, tmp_path):
    items, _ = sheet
    judgement.write_sheet(items, path := tmp_path / "sheet.csv")
    judgement.write_key(items, tmp_path / "key.csv")
    assert judgement.read_key(tmp_path / "key.csv") == items
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["id", "story", "fits (yes/no)"] and all(row[2] == "" for row in rows)
    assert not any(system in row[1] for row in rows for system in WRITTEN)
    answers = ["Yes", "no", "1", " N "]
    rows = [[*row[:2], answer] for row, answer in zip(rows, answers, strict=True)]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *reversed(rows)])
    assert judgement.read_ratings(path, items) == {"1": True, "2": False, "3": True, "4": False}


def test_a_sheet_from_another_spreadsheet_program_is_read(sheet):
    items, filled = sheet
    lines = [f"{number};M\u00fcller, she said;yes" for number in range(1, 5)]
    path = filled(*lines, ";;", header="id;story;fits (yes/no)", encoding="cp1252")
    assert judgement.read_ratings(path, items) == dict.fromkeys("1234", True)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (
            ["1,a,yes", '2,"a\nb",no', "3,c,perhaps"],
            r"anna\.csv, line 5: the judgement of id 3 is 'perhaps'; write yes",
        ),
        (["1,a,yes", "2,b,"], r"line 3: the judgement of id 2 is ''"),
        (["1,a,yes", "2,b,no", "1,a,no"], r"line 4: id 1 is here a second time"),
        (["1,a,yes", "7,b,no"], r"line 3: there is no id '7' in the key"),
        (["1,a,yes", ",b,no"], r"line 3: there is no id '' in the key"),
        (["1,a,yes", "3,c,no"], r"after line 3: 2 of 4 ids are missing, the first is 2"),
        ([], r"after line 1: 4 of 4 ids are missing"),
        (["1,a,yes", "2,no"], r"line 3: 3 columns are wanted here, not 2"),
    ],
)
def test_mistakes_in_a_sheet_are_named(sheet, lines, complaint):
    items, filled = sheet
    with pytest.raises(ValueError, match=complaint):
        judgement.read_ratings(filled(*lines), items)


def test_a_sheet_that_is_not_there_is_named(sheet, tmp_path):
    with pytest.raises(ValueError, match=r"there is no file .*nobody\.csv"):
        judgement.read_ratings(tmp_path / "nobody.csv", sheet[0])


# Table 5 from its result to the scores in it


def result(rows, name="table5") -> Result:
    return Result(name, "tiny", "samples", False, 0, "a machine", {}, None, rows)


@pytest.fixture
def measured(tmp_path):
    rows = {system: Row({table5.STAND_IN: Figure(0.1, 0, 0.2, 2)}, some) for system, some in WRITTEN.items()}
    result(rows).save(path := tmp_path / "table5.json")
    return path


def judge(measured, name: str, opinion) -> str:
    """A rater's copy of the sheet, filled in by what the key says of each line."""
    items = judgement.read_key(measured.with_name("table5-key.csv"))
    path = measured.with_name(name)
    judgement._write(path, ("id", "story", "fits"), [(item.id, item.story, opinion(item)) for item in items])
    return str(path)


def test_a_claim_of_table_5_is_answered_where_the_intervals_tell():
    often, seldom = {"score": Figure(80, 71, 87, 100)}, {"score": Figure(20, 13, 29, 100)}
    holds = table5.EXPERIMENT.claims[0].holds
    assert holds({"MAGNET": often, "base": seldom}) is True
    assert holds({"MAGNET": seldom, "base": often}) is False
    assert holds({"MAGNET": often, "base": often}) is None and holds({"MAGNET": often}) is None


def test_raters_scores_come_into_the_result(measured, capsys):
    assert table5.main(["sheet", str(measured)]) == 0
    assert "4 sentences are in" in capsys.readouterr().out
    anna = judge(measured, "anna.csv", lambda item: "yes" if item.system == "MAGNET" else "no")
    ben = judge(
        measured, "ben.csv", lambda item: "yes" if item.sentence in ("He lost it.", "It sang.\nLoudly.") else "no"
    )
    assert table5.main(["score", str(measured), anna, ben]) == 0
    printed = capsys.readouterr().out
    rows = Result.load(measured).rows
    assert rows["MAGNET"]["score"].value == 75 and rows["base"]["score"].value == 25
    assert rows["base"][table5.STAND_IN] == Figure(0.1, 0, 0.2, 2)
    # They agree on 2 of 4, and as often by chance.
    assert rows[table5.ALL][table5.KAPPA].value == 0 and "Cohen's kappa over all 4 sentences: 0.00" in printed
    # Four sentences do not tell 75 % from 25 %.
    assert "more often than the base model's (62.0 to 53.5): **not measurable here**" in printed
    assert "five-shot ones (62.0 to 54.5): **not measurable here**" in printed
    assert texts(rows) == WRITTEN


def test_what_does_not_belong_together_is_refused(measured, capsys):
    assert table5.main(["sheet", str(measured)]) == 0
    anna = judge(measured, "anna.csv", lambda item: "yes")

    def refused(*arguments) -> str:
        before = measured.read_text()
        assert table5.main(list(map(str, arguments))) == 1 and measured.read_text() == before
        return capsys.readouterr().err

    assert "table5-sheet.csv is there already" in refused("sheet", measured)
    assert "1 rater's sheet is given" in refused("score", measured, anna)
    assert "there is no file" in refused("sheet", measured.with_name("none.json"))
    result({}).save(measured)
    assert "of the key is not in the result" in refused("score", measured, anna, anna)
    measured.with_name("table5-sheet.csv").unlink()
    assert "holds no sentences" in refused("sheet", measured)
    result({}, "table4").save(measured)
    assert "is a result of table4, not of table5" in refused("sheet", measured)


# Rows with texts


def test_texts_are_kept_beside_the_figures(tmp_path):
    rows = {"base": Row({"score": Figure(1, 0, 2, 3)}, WRITTEN["base"]), "MAGNET": {"score": Figure(2, 1, 3, 3)}}
    result(rows).save(path := tmp_path / "x.json")
    loaded = Result.load(path)
    assert loaded.rows == rows and texts(loaded.rows) == {"base": WRITTEN["base"]}
    kept = json.loads(path.read_text())
    assert kept["rows"]["base"] == {"score": {"value": 1, "low": 0, "high": 2, "n": 3}}
    del kept["texts"]  # as it was before there were any
    path.write_text(json.dumps(kept))
    assert Result.load(path).rows == rows and texts(Result.load(path).rows) == {}
    path.write_text(json.dumps(kept | {"texts": 3}))
    with pytest.raises(ValueError, match=r"x\.json holds no result"):
        Result.load(path)


def test_texts_stand_side_by_side():
    rows = {"base": Row({}, WRITTEN["base"]), "MAGNET": Row({}, WRITTEN["MAGNET"]), "true": {}}
    printed = {STORY: {"base": "He *ran*."}, "elsewhere": {"base": "no"}}
    assert written.side_by_side(rows, printed, 1) == [
        "",
        r"> Tom had a red ball. \[blank\] He was very sad.",
        "",
        "- base: He lost it.",
        '- MAGNET: He said "no".',
        r"- *paper: base: He \*ran\*.*",
    ]
    assert written.side_by_side(rows, {}, 0) == []
    assert "- MAGNET: It sang. Loudly." in written.side_by_side(rows, {}, 2)


def test_texts_that_the_paper_printed_have_a_blank_and_known_rows():
    printed, known = reproduce.published(), reproduce.experiments()
    for name, count in (("table9", 6), ("table10", 7)):
        assert len(printed[name]["texts"]) == count
        for text, rows in printed[name]["texts"].items():
            assert text.count("[blank]") == 1 and not text.endswith("[blank]")
            assert rows.keys() <= known[name].rows.keys()


# What can be said of a sentence without a reader


def test_stories_lose_a_middle_sentence():
    stories = Data("samples").stories(80)
    missing = written.middle_sentences(Data("samples"), 40)
    assert len(missing) == 40 and len({story.text.index("[blank]") for story in missing}) > 5
    for story in missing:
        past, future = story.text.split("[blank]")
        assert past.strip() and future.strip()
        assert story.text.replace("[blank]", story.fills[0]) in stories


def by_hand(lab, before: str, after: str) -> list[float]:
    """The log-probability of each token of `after`, by a pass over all that stands before it."""
    start, whole = lab.tokenizer(before)["input_ids"], lab.tokenizer(f"{before} {after}")["input_ids"]
    assert whole[: len(start)] == start
    found = []
    for place in range(len(start), len(whole)):
        with torch.no_grad():
            scores = lab.model(torch.tensor([whole[:place]])).logits[0, -1].double()
        found.append(float(scores.log_softmax(-1)[whole[place]]))
    return found


def test_what_follows_is_scored_as_by_hand(tiny_lab):
    after = "He was very sad."
    with_it = by_hand(tiny_lab, "Tom had a red ball. He lost it.", after)
    without = by_hand(tiny_lab, "Tom had a red ball.", after)
    assert written.following(tiny_lab, STORY, "He lost it.").tolist() == pytest.approx(with_it, abs=1e-4)
    assert written.following(tiny_lab, STORY, "").tolist() == pytest.approx(without, abs=1e-4)
    gain = written.Written(Missing(STORY, []), "He lost it.").gain(tiny_lab)
    assert gain == pytest.approx(sum(with_it) / len(with_it) - sum(without) / len(without), abs=1e-4)
    assert len(written.following(tiny_lab, STORY, "A [blank] here.")) == len(with_it)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("He lost it.", True),
        ("Mr. Brown lost it!", True),
        ('"Where is it?" he asked.', True),
        ('"Stop!"', True),
        ("He lost it", False),
        ("he lost it.", False),
        ("He lost it. He cried.", False),
        ("He lost it.\nHe cried.", False),
        ("...", False),
        ("", False),
    ],
)
def test_one_whole_sentence(text, whole):
    assert written.is_one_sentence(text) is whole


def test_figures_of_sentences_by_hand(tiny_lab):
    cases = ["He lost the ball.", "Tom had a red ball.", "because", "He was very sad. He was"]  # 2 copies, 2 whole
    found = written.figures([written.Written(Missing(STORY, []), case) for case in cases], tiny_lab)
    assert found[written.WELL_FORMED].value == found[written.COPIES].value == 50
    log_probs = [
        value for case in cases for value in by_hand(tiny_lab, f"Tom had a red ball. {case}", "He was very sad.")
    ]
    assert found[written.FOLLOWING].value == pytest.approx(math.exp(-sum(log_probs) / len(log_probs)), rel=1e-4)


# Table 7

SOLVED = [
    {"question": "Which is a colour?", "choices": ["dog", "red", "run", "ball"], "answer": 1, "subject": "words"},
    {"question": "Which is an animal?", "choices": ["dog", "red", "run", "ball"], "answer": 0, "subject": "words"},
]
ASKED = [
    {"question": f"Which is {what}?", "choices": choices, "answer": 2, "subject": "words"}
    for what, choices in (
        ("a toy", ["sad", "big", "ball", "ran"]),
        ("a very little bird that sings in the garden all day", ["up", "sky", "wren", "Tom"]),
        ("a name", ["tree", "go", "Lily", "fast"]),
    )
]
PROMPT = """The following are multiple choice questions (with answers) about words.

Which is a colour?
A. dog
B. red
C. run
D. ball
Answer: B

Which is an animal?
A. dog
B. red
C. run
D. ball
Answer: A

Which is {}?
A. {}
B. {}
C. {}
D. {}
Answer:"""


def letter_scores(lab, question: dict, prompt: str = PROMPT) -> list[float]:
    """The four letters' scores after the prompt as a benchmark prints it, by one pass over all of it."""
    text = prompt.format(question["question"].removeprefix("Which is ").removesuffix("?"), *question["choices"])
    start = lab.tokenizer(text)["input_ids"]
    letters = [lab.tokenizer(f"{text} {letter}")["input_ids"][len(start) :] for letter in "ABCD"]
    assert all(len(letter) == 1 for letter in letters)
    with torch.no_grad():
        scores = lab.model(torch.tensor([start])).logits[0, -1]
    return [float(scores[letter[0]]) for letter in letters]


def test_letters_are_chosen_as_without_a_cache(tiny_lab, monkeypatch):
    expected = [letter_scores(tiny_lab, question) for question in ASKED]
    seen, argmax = [], torch.Tensor.argmax
    monkeypatch.setattr(torch.Tensor, "argmax", lambda scores: seen.append(scores.tolist()) or argmax(scores))
    found = table7.answers(tiny_lab, SOLVED, ASKED)
    assert found == [scores.index(max(scores)) for scores in expected]
    for mine, theirs in zip(seen, expected, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-3)


def test_a_short_model_gets_fewer_examples(tiny_lab, monkeypatch):
    one = PROMPT.split("\n\n")
    shorter = "\n\n".join([one[0], *one[2:]])
    length = max(
        len(tiny_lab.tokenizer(shorter.format("a", *q["choices"]) + q["question"])["input_ids"]) for q in ASKED
    )
    monkeypatch.setattr(tiny_lab, "max_length", length)
    found = table7.answers(tiny_lab, SOLVED, ASKED)
    scores = [letter_scores(tiny_lab, question, shorter) for question in ASKED]
    assert found == [each.index(max(each)) for each in scores]
    monkeypatch.setattr(tiny_lab, "max_length", 20)
    with pytest.raises(ValueError, match=r"a question has \d+ tokens; tiny can read 20"):
        table7.answers(tiny_lab, SOLVED, ASKED)


def test_examples_are_not_asked(monkeypatch):
    """Eight questions of a subject: five are shown, three asked; the right letter is always said to be C."""
    shown = []
    monkeypatch.setattr(table7, "answers", lambda lab, solved, asked: shown.append((solved, asked)) or [2] * len(asked))
    questions = [
        {"question": f"{subject} {number}", "choices": "wxyz", "answer": number % 4, "subject": subject}
        for number in range(8)
        for subject in ("STEM", "other")
    ]
    found = table7.own_questions(None, questions, 1000)
    assert [[len(solved), len(asked)] for solved, asked in shown] == [[5, 3], [5, 3]]
    assert all(question not in asked for solved, asked in shown for question in solved)
    assert found == {"STEM": [False, True, False], "other": [False, True, False]}
    figures = table7.accuracies({"STEM": [True, False], "other": [True, True, True]})
    assert figures["STEM"].value == 50 and figures["others"].value == 100 and figures["average"].value == 80


def test_groups_of_a_harness_run_by_hand():
    run = {
        "group_subtasks": {"mmlu": ["mmlu_stem", "mmlu_other"], "mmlu_stem": ["a", "b"], "mmlu_other": ["c"]},
        "samples": {"a": [{"acc": 1.0}, {"acc": 0.0}], "b": [{"acc": 1.0}], "c": [{"acc": 0.0}]},
    }
    assert table7.by_group(run) == {"stem": [True, False, True], "other": [False]}


def test_mmlu_without_lm_eval_is_one_sentence(tiny_lab, monkeypatch):
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    with pytest.raises(PackageMissing, match="this takes the package lm-eval"):
        table7.mmlu(tiny_lab, 1)


def test_what_a_guessing_model_knows_cannot_be_lost():
    def rows(base, low, magnet):
        return {"base": {"average": Figure(base, low, base + 5, 9)}, "MAGNET": {"average": Figure(magnet, 0, 100, 9)}}

    assert table7._costs_little(rows(45, 40, 43.5)) is True
    assert table7._costs_little(rows(45, 40, 42)) is False
    assert table7._costs_little(rows(27, 22, 27)) is None
    assert table7._costs_little({"base": rows(45, 40, 43)["base"]}) is None


GROUPS = {  # as MMLU has them: groups within a group, and a tag for their tasks
    "mmlu": {"group": "mmlu", "task": ["mmlu_stem", "mmlu_other"]},
    "mmlu_stem": {"group": "mmlu_stem", "task": ["mmlu_stem_tasks"]},
    "mmlu_other": {"group": "mmlu_other", "task": ["mmlu_other_tasks"]},
}


def test_lm_eval_answers_the_same(tiny_lab, tmp_path, monkeypatch):
    """The same questions in lm-eval's own words for MMLU, as a task in each of two groups."""
    lm_eval = pytest.importorskip("lm_eval")
    from lm_eval.tasks import TaskManager

    solved = (SOLVED * 3)[:5]
    files = {"dev": solved, "test": ASKED}
    for name, questions in files.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, questions)), encoding="utf-8")
    words = {
        "dataset_path": "json",
        "dataset_kwargs": {
            "data_files": {name: str(tmp_path / f"{name}.jsonl") for name in files},
            "cache_dir": str(tmp_path),
        },
        "test_split": "test",
        "fewshot_split": "dev",
        "fewshot_config": {"sampler": "first_n"},
        "description": "The following are multiple choice questions (with answers) about words.\n\n",
        "output_type": "multiple_choice",
        "doc_to_text": "{{question.strip()}}\nA. {{choices[0]}}\nB. {{choices[1]}}\nC. {{choices[2]}}\n"
        "D. {{choices[3]}}\nAnswer:",
        "doc_to_choice": ["A", "B", "C", "D"],
        "doc_to_target": "answer",
        "metric_list": [{"metric": "acc"}],
    }
    tasks = {f"mmlu_{group}_words": {"tag": f"mmlu_{group}_tasks", **words} for group in ("stem", "other")}
    for name, config in (GROUPS | {name: {"task": name, **config} for name, config in tasks.items()}).items():
        (tmp_path / f"{name}.yaml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    offline = TaskManager(include_path=str(tmp_path), include_defaults=False)
    evaluate = lm_eval.simple_evaluate
    monkeypatch.setattr(lm_eval, "simple_evaluate", lambda **options: evaluate(**options, task_manager=offline))

    chosen = table7.answers(tiny_lab, solved, ASKED)
    right = [choice == question["answer"] for choice, question in zip(chosen, ASKED, strict=True)]
    assert table7.mmlu(tiny_lab, None) == {"stem": right, "other": right}
    assert table7.mmlu(tiny_lab, 2) == {"stem": right[:2], "other": right[:2]}


# Table 11, and all of them


def test_prefixes_are_sentences_and_five_words_in_turns():
    setting = Setting("tiny", Data("samples"))
    found = table11.prefixes(setting)
    assert len(found) == 24
    for story, prefix in zip(setting.data.stories(12), found[::2], strict=True):
        assert story.startswith(prefix) and prefix[-1] in ".!?"
    for passage, prefix in zip(setting.data.passages(12), found[1::2], strict=True):
        assert passage.startswith(prefix) and len(prefix.split()) == 5


def test_mask_filling_is_not_plain_writing(tiny_lab):
    setting = replace(Setting("tiny", Data("samples")), _base=tiny_lab)
    given = ["The fox saw a bridge"]
    (plain,) = table11.plainly(None)(setting, given, 12)
    (masked,) = table11.by_masks(None)(setting, given, 12)
    assert plain == tiny_lab.generate(given[0], max_new_tokens=12)
    assert masked.strip() and masked != plain


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table5", "table7", "table9", "table10", "table11"])
def test_tables_of_texts_run_on_tiny(name, tmp_path, capsys):
    arguments = ["reproduce", name, "--model", "tiny", "--quick", "--out", str(tmp_path)]
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out
    assert f"## {name}: " in printed
    assert name not in ("table9", "table10") or "- *paper: " in printed
    found = Result.load(tmp_path / "tiny" / f"{name}.json")
    assert {"base", "MAGNET"} <= found.rows.keys()
    for columns in found.rows.values():
        assert columns and all(figure.low <= figure.value <= figure.high for figure in columns.values())
    assert name == "table7" or {"base", "MAGNET"} <= texts(found.rows).keys()
