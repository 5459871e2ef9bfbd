"""Experiments: rows are kept as they are measured, stand beside the paper's, and say which of its claims hold."""

import json
import random

import numpy as np
import pytest

from magnet_lab import cli
from magnet_lab.evaluation import reproduce
from magnet_lab.evaluation.data import Data, _as_written
from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Result, Setting, bootstrap
from magnet_lab.zoo import ModelUnavailable


def figure(value: float) -> dict[str, Figure]:
    return {"score": Figure(value, value - 1, value + 1, 10)}


@pytest.fixture
def made():
    """An experiment that counts how often each of its rows is measured."""
    calls = []

    def row(name, value):
        def measure(setting):
            calls.append(name)
            if value is None:
                raise ModelUnavailable("there is no such adapter")
            if value == "stop":
                raise KeyboardInterrupt
            return figure(value)

        return measure

    def experiment(**rows):
        return Experiment(
            "table5",
            "People",
            {name: row(name, value) for name, value in rows.items()},
            [
                Claim("MAGNET is better", lambda rows: rows["MAGNET"]["score"].value > rows["base"]["score"].value),
                Claim("Nobody knows", lambda rows: None),
            ],
        )

    return experiment, calls


SETTING = Setting("tiny", Data("samples"))


def test_bootstrap_intervals_are_those_of_the_normal_distribution():
    """Of a mean of many: 1.96 standard errors to either side."""
    generator = random.Random(0)
    units = [generator.gauss(5, 2) for _ in range(400)]
    found = bootstrap(units, lambda some: sum(some) / len(some))
    error = np.std(units) / np.sqrt(len(units))
    assert found.value == pytest.approx(np.mean(units)) and found.n == 400
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    assert found.low < found.value < found.high


def test_a_stopped_experiment_goes_on_where_it_was(made, tmp_path):
    experiment, calls = made
    with pytest.raises(KeyboardInterrupt):
        reproduce.run(experiment(base=1.0, MAGNET="stop"), SETTING, tmp_path)
    result = reproduce.run(experiment(base=1.0, MAGNET=2.0), SETTING, tmp_path)
    assert calls == ["base", "MAGNET", "MAGNET"]
    assert result.rows == {"base": figure(1.0), "MAGNET": figure(2.0)}
    assert Result.load(tmp_path / "tiny" / "table5.json").rows == result.rows


def test_another_size_or_seed_is_another_result(made, tmp_path):
    experiment, calls = made
    reproduce.run(experiment(base=1.0, MAGNET=2.0), SETTING, tmp_path)
    reproduce.run(experiment(base=1.0, MAGNET=2.0), Setting("tiny", Data("samples"), seed=1), tmp_path)
    assert calls == ["base", "MAGNET"] * 2
    kept = json.loads((tmp_path / "tiny" / "table5.json").read_text())
    assert kept["seed"] == 1 and kept["hardware"] and kept["versions"]["torch"]


def test_a_row_that_cannot_be_had_is_left_out(made, tmp_path):
    experiment, _ = made
    result = reproduce.run(experiment(base=1.0, MAGNET=2.0, other=None), SETTING, tmp_path)
    assert list(result.rows) == ["base", "MAGNET"]


def test_the_report_shows_ours_and_the_papers_and_the_verdicts(made, tmp_path):
    experiment, _ = made
    experiment = experiment(base=1.0, MAGNET=2.0)
    printed = reproduce.report(experiment, reproduce.run(experiment, SETTING, tmp_path))
    assert "| MAGNET | 2 (1 to 3) |" in printed
    assert "| *paper: MAGNET* | *62* |" in printed  # Table 5
    assert "MAGNET is better: **held**" in printed and "Nobody knows: **not measurable here**" in printed


def test_a_file_that_is_no_result_is_named(tmp_path):
    (tmp_path / "x.json").write_text('{"rows": 3}')
    with pytest.raises(ValueError, match=r"x\.json holds no result"):
        Result.load(tmp_path / "x.json")


def test_every_experiment_is_in_the_paper_and_its_rows_have_the_papers_names():
    printed = reproduce.published()
    for name, experiment in reproduce.experiments().items():
        assert name == experiment.id
        if name in printed:
            assert printed[name]["title"] == experiment.title
            assert not printed[name]["rows"] or set(printed[name]["rows"]) & set(experiment.rows)
            assert all(len(row) == len(printed[name]["columns"]) for row in printed[name]["rows"].values())


def test_wikitext_as_it_was_written():
    line = ' The " Great Barn " cost 1 @,@ 200 pounds ( in 1890 ) , a third of the town \'s tax @-@ money . '
    assert _as_written(line) == 'The "Great Barn" cost 1,200 pounds (in 1890), a third of the town\'s tax-money.'


def test_data_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"there is no file .*rocstories.*--data takes a folder"):
        Data(str(tmp_path)).stories(3)
    with pytest.raises(ValueError, match=r"has none of sts/sts12"):
        Data(str(tmp_path)).similarity()
    (tmp_path / "sts").mkdir()
    (tmp_path / "sts" / "stsb.dev.tsv").write_text("5\tA dog.\tA dog.\n")
    assert Data(str(tmp_path)).similarity() == {"STS-B": ([5.0], ["A dog."], ["A dog."])}


def test_the_command_line_names_what_there_is(capsys):
    assert cli.main(["reproduce", "table99"]) == 1
    assert "no experiment 'table99'; there are " in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table4", "figure5"])
def test_experiments_run_on_tiny(name, tmp_path, capsys):
    arguments = ["reproduce", name, "--model", "tiny", "--quick", "--out", str(tmp_path)]
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out
    result = Result.load(tmp_path / "tiny" / f"{name}.json")
    assert {"base", "MAGNET"} <= set(result.rows) and result.quick
    for columns in result.rows.values():
        assert all(figure.low <= figure.value <= figure.high for figure in columns.values())
    assert f"## {name}: " in printed and "*paper: MAGNET*" in printed
    assert cli.main(["results", name, "--model", "tiny", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == printed
