"""The table of claims, from results written by hand."""

from magnet_lab import cli
from magnet_lab.evaluation import overview, reproduce
from magnet_lab.evaluation.experiment import OWN_MODELS, Claim, Experiment, Figure, Result


def result(id: str, model: str, value: float) -> Result:
    figure = {"column": Figure(value, value, value, 1)}
    return Result(id, model, "samples", False, 0, "two cores", {}, "", rows={"row": figure})


def known(**own_models: bool) -> dict[str, Experiment]:
    claims = [Claim("above one", lambda rows: rows["row"]["column"].value > 1), Claim("open", lambda rows: None)]
    return {id: Experiment(id, id, {}, claims, own_models=own) for id, own in own_models.items()}


def test_a_line_a_claim_a_column_a_model(tmp_path):
    result("one", "tiny", 2).save(tmp_path / "tiny" / "one.json")
    result("one", "small", 0).save(tmp_path / "small" / "one.json")
    result("two", "small", 2).save(tmp_path / "small" / "two.json")
    experiments = known(one=False, two=False, three=False)
    assert overview.table(experiments, overview.measured(experiments, tmp_path)).splitlines() == [
        "|  | claim | small | tiny |",
        "| --- | --- | --- | --- |",
        "| one | above one | not held | held |",
        "| one | open | not measurable here | not measurable here |",
        "| two | above one | held |  |",
        "| two | open | not measurable here |  |",
    ]


def test_the_first_folders_result_counts_and_strangers_do_not(tmp_path):
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    result("one", "tiny", 2).save(mine / "tiny" / "one.json")
    result("one", "tiny", 0).save(theirs / "tiny" / "one.json")
    result("own", OWN_MODELS, 2).save(theirs / OWN_MODELS / "own.json")
    result("own", "tiny", 2).save(theirs / "tiny" / "own.json")  # from before it had models of its own
    (theirs / "tiny" / "adapters.json").write_text("{}")
    found = overview.measured(known(one=False, own=True), mine, theirs, tmp_path / "none")
    assert {model: list(results) for model, results in found.items()} == {"tiny": ["one"], OWN_MODELS: ["own"]}
    assert found["tiny"]["one"].rows["row"]["column"].value == 2


def test_the_command_line_prints_it(tmp_path, capsys):
    experiments = reproduce.experiments()
    name, experiment = next((id, each) for id, each in experiments.items() if not each.own_models)
    result(name, "mine", 1).save(tmp_path / "mine" / f"{name}.json")
    assert cli.main(["results", "--claims", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("|  | claim | mine |") and f"| {name} | {experiment.claims[0].text} |" in printed
