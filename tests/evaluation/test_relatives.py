"""The relatives' experiments: all run in their smallest, each claim is of figures that are measured."""

import json

import pytest

from magnet_lab import cli
from magnet_lab.evaluation import llm2vec_steps, prefixlm_chapter, re_restoration, reproduce, unilmv2_table6
from magnet_lab.evaluation.data import Data
from magnet_lab.evaluation.experiment import Figure, Result, Setting

MODULES = {"prefixlm": prefixlm_chapter, "unilmv2": unilmv2_table6, "re": re_restoration, "llm2vec": llm2vec_steps}
EXPERIMENTS = {experiment.id: experiment for module in MODULES.values() for experiment in module.EXPERIMENTS}
IN_A_BLINK = ("prefixlm-masks", "unilmv2-onepass", "unilmv2-tokens", "unilmv2-leaks", "llm2vec-reach")


class Measured(dict):
    """Rows or columns that know what was measured: asking for anything else is a mistake."""

    def get(self, key, default=None):
        return self[key]


def test_reproduce_knows_them_by_their_documents():
    found = reproduce.experiments()
    for prefix, module in MODULES.items():
        for experiment in module.EXPERIMENTS:
            assert experiment.id.startswith(f"{prefix}-") and found[experiment.id] is experiment
            assert experiment.own_models


def test_what_the_documents_printed_stands_under_our_titles():
    printed = {name: table for name, table in reproduce.published().items() if name in EXPERIMENTS}
    assert {"prefixlm-masks", "prefixlm-text", "unilmv2-table6", "re-table2", "re-table3", "re-table9"} <= set(printed)
    for name, table in printed.items():
        assert EXPERIMENTS[name].title == table["title"]
        assert all(len(row) == len(table["columns"]) for row in table["rows"].values())
        if name != "unilmv2-table6":  # its columns are other tasks, its first row another model
            assert set(table["rows"]) <= set(EXPERIMENTS[name].rows)


def runs_in_its_smallest(name: str, folder, capsys) -> Result:
    assert cli.main(["reproduce", name, "--model", "tiny", "--quick", "--out", str(folder)]) == 0
    assert f"## {name}: " in capsys.readouterr().out
    result = Result.load(folder / "relatives" / f"{name}.json")
    assert list(result.rows) == list(EXPERIMENTS[name].rows)
    for columns in result.rows.values():
        assert all(figure.low <= figure.value <= figure.high for figure in columns.values())
    rows = Measured({row: Measured(columns) for row, columns in result.rows.items()})
    assert all(claim.holds(rows) in (True, False, None) for claim in EXPERIMENTS[name].claims)
    return result


@pytest.mark.parametrize("name", IN_A_BLINK)
def test_runs_without_training(name, tmp_path, capsys):
    runs_in_its_smallest(name, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name not in IN_A_BLINK])
def test_runs_with_training(name, tmp_path, capsys):
    result = runs_in_its_smallest(name, tmp_path, capsys)
    assert {figure.n for columns in result.rows.values() for figure in columns.values()} <= {1, 2}


def verdicts(name: str, tmp_path, capsys) -> dict[str, bool | None]:
    rows = runs_in_its_smallest(name, tmp_path, capsys).rows
    return {claim.text: claim.holds(rows) for claim in EXPERIMENTS[name].claims}


def test_what_needs_no_training_is_as_the_documents_say(tmp_path, capsys):
    found = verdicts("prefixlm-masks", tmp_path, capsys)
    assert [text for text, held in found.items() if held is not True] == [
        "a target that is told later cannot reach one that is told before (not by the chapter's code)"
    ]
    found = verdicts("unilmv2-onepass", tmp_path, capsys)
    assert [held for text, held in found.items() if text.startswith("one pass")] == [True] * 3
    assert all(verdicts("unilmv2-leaks", tmp_path, capsys).values())
    assert all(verdicts("llm2vec-reach", tmp_path, capsys).values())


def test_a_claim_is_not_measurable_before_its_rows_are_there():
    for experiment in EXPERIMENTS.values():
        assert all(claim.holds({}) is None for claim in experiment.claims)


def test_seeds_follow_the_option_and_rows_are_kept(tmp_path):
    """Stopped and taken up again, and with another seed."""
    experiment = EXPERIMENTS["unilmv2-tokens"]
    first = reproduce.run(experiment, Setting("tiny", Data("samples"), quick=True), tmp_path)
    path = tmp_path / "relatives" / "unilmv2-tokens.json"
    kept = json.loads(path.read_text())
    row = next(iter(experiment.rows))
    kept["rows"][row] = {"in one pass": {"value": 1, "low": 1, "high": 1, "n": 1}}
    path.write_text(json.dumps(kept))
    again = reproduce.run(experiment, Setting("tiny", Data("samples"), quick=True), tmp_path)
    assert again.rows[row] == {"in one pass": Figure(1, 1, 1, 1)}
    other = reproduce.run(experiment, Setting("tiny", Data("samples"), quick=True, seed=5), tmp_path)
    assert other.rows[row] != first.rows[row]
