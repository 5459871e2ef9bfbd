"""Results as they are shown: the paper's numbers beside ours, and which claims hold."""

import json

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from magnet_lab.app.components import download, table
from magnet_lab.app.handlers import results
from magnet_lab.evaluation import experiment
from magnet_lab.evaluation.experiment import Figure, Result, Row


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """Where results lie: the user's own, and those of the package."""
    monkeypatch.setenv(results.FOLDER, str(tmp_path / "own"))
    monkeypatch.setattr(experiment, "SHIPPED", tmp_path / "shipped")
    return tmp_path


def save(folder, *, model="small", quick=False, id="table2", rows=None):
    """MAGNET above base and below LLM2Vec; Echo was left out."""
    rows = rows or {
        "base": Row({"STS12": Figure(50.0, 45.0, 55.0, 100)}),
        "LLM2Vec": Row({"STS12": Figure(70.0, 65.0, 75.0, 100)}),
        "MAGNET": Row({"STS12": Figure(60.0, 54.5, 65.5, 100)}),
    }
    result = Result(
        id, model, "samples", quick, 3, "two cores", {"torch": "2.13.0"}, "abc1234", rows, {"base": 1.5, "MAGNET": 2.4}
    )
    result.save(folder / model / "table2.json")


VERDICTS = ["held", "not held", "not measurable here"]


def test_with_nothing_measured_the_page_still_reads_well():
    over = results.overview("tiny")
    assert "None of the paper's tables" in over.sentences[0] and over.lines == []
    assert "magnet-lab reproduce all --model tiny --quick" in over.sentences[1]
    view = results.show("tiny", "tiny", "table4")
    assert view.columns == ["", "stories, one sentence", "Wikitext, spans"]
    assert [line.cells for line in view.lines] == [
        ["paper: base", "13.93", "22.04"],
        ["paper: MAGNET", "9.516", "15.46"],
    ]
    assert {verdict for _, verdict in view.claims} == {"not measured"}
    assert view.command == "magnet-lab reproduce table4 --model tiny" and view.file is None and view.figure is None


def test_every_table_can_be_looked_at_before_it_is_measured():
    for _, id in results.tables("tiny", "tiny"):
        assert results.show("tiny", "tiny", id).command


def test_claims_are_told_as_they_came_out(places):
    save(places / "shipped")
    over = results.overview("tiny")
    assert over.sentences == [
        f"small: 1 of {len(results.tables('tiny', 'small'))} tables and figures measured; of their 3 claims 1 held, "
        "1 not held, 1 not measurable here."
    ]
    assert over.columns == ["", "what is claimed", "small"]
    assert [line.cells[0] for line in over.lines] == ["Table 2"] * 3
    assert [line.cells[2] for line in over.lines] == ["✓ held", "✗ not held", "? not measurable here"]
    assert [verdict for _, verdict in results.show("tiny", "small", "table2").claims] == VERDICTS


def test_few_examples_are_said_to_be_few(places):
    save(places / "own", quick=True)
    save(places / "own", model="tiny")
    assert results.overview("tiny").lines[0].cells[2:] == ["✓ held", "✓ held (few examples)"]
    assert "few examples" in dict(results.show("tiny", "small", "table2").facts)["data"]


def test_the_papers_rows_stand_under_ours(places):
    save(places / "shipped")
    view = results.show("tiny", "small", "table2")
    names = [line.cells[0] for line in view.lines]
    assert names[:6] == ["base", "paper: base", "LLM2Vec", "paper: LLM2Vec", "MAGNET", "paper: MAGNET"]
    assert set(names[6:]) == {"paper: BERT-Base", "paper: RoBERTa-Base", "paper: RoBERTa-Large", "paper: Echo"}
    assert [line.is_papers for line in view.lines[:2]] == [False, True]
    assert view.lines[4].cells[1] == "60 (54.5 to 65.5)" and view.lines[5].cells[1] == "67.98"


def test_a_result_says_where_it_is_from_and_how_to_repeat_it(places):
    save(places / "shipped")
    view = results.show("tiny", "small", "table2")
    facts = dict(view.facts)
    assert facts["hardware"] == "two cores" and facts["commit"] == "abc1234" and facts["versions"] == "torch 2.13.0"
    assert facts["time"] == "4 seconds in all" and "come with magnet_lab" in facts["from"]
    assert view.command == "magnet-lab reproduce table2 --model small --data samples --seed 3"
    assert view.file == (places / "shipped/small/table2.json").read_bytes() and view.file_name == "small-table2.json"
    assert len(view.figure.axes) == 1 and "60 (54.5 to 65.5)" in view.text


def test_ones_own_results_come_before_the_packages(places):
    save(places / "shipped")
    save(places / "own", rows={"base": Row({"STS12": Figure(1.0, 0.5, 1.5, 9)})})
    view = results.show("tiny", "small", "table2")
    assert view.lines[0].cells == ["base", "1 (0.5 to 1.5)", *[""] * 7] and "your own" in dict(view.facts)["from"]


def test_the_menus_begin_with_what_there_is(places):
    assert results.own_or_measured("/models/mine") == "mine"
    save(places / "own", model="llama-2-7b")
    assert results.own_or_measured("tiny") == "llama-2-7b"
    assert results.first_measured("tiny", "llama-2-7b") == "table2"
    titles = {id: title for title, id in results.tables("tiny", "llama-2-7b")}
    assert not titles["table2"].endswith("(not measured)") and titles["table4"].endswith("(not measured)")
    ids = list(titles)
    assert ids.index("table2") < ids.index("table10") < ids.index("figure5")


def test_the_relatives_have_models_of_their_own(places):
    relatives = {id for _, id in results.tables("tiny", "relatives")}
    assert "prefixlm-masks" in relatives and "table2" not in relatives
    assert relatives.isdisjoint(id for _, id in results.tables("tiny", "small"))
    assert results.models("tiny")[-1] == "relatives"
    rows = {"causal": Row({"cells": Figure(1, 1, 1, 1)})}
    result = Result("prefixlm-masks", "relatives", "relatives", True, 0, "", {}, None, rows)
    result.save(places / "own/relatives/prefixlm-masks.json")
    for model in ("relatives", "tiny"):
        view = results.show("tiny", model, "prefixlm-masks")
        assert view.command == "magnet-lab reproduce prefixlm-masks --seed 0 --quick" and view.file
    assert results.overview("tiny").columns[2:] == ["relatives"]


def test_written_sentences_are_shown(places):
    texts = {"Tom left. [blank] He <b>came</b> back.": "He *ran*."}
    rows = {name: Row({"copies 4 words (%)": Figure(0, 0, 0, 1)}, texts) for name in ("base", "MAGNET")}
    Result("table10", "tiny", "samples", False, 0, "", {}, None, rows).save(places / "own/tiny/table10.json")
    written = results.show("tiny", "tiny", "table10").written
    assert "- base: He \\*ran\\*." in written and "\\<b\\>came" in written


def test_a_file_that_is_none_is_left_out_and_named(places):
    save(places / "own")
    path = places / "own" / "small" / "table4.json"
    for content in ("{", "[]", '{"id": "table4"}', "null"):
        path.write_text(content)
        over = results.overview("tiny")
        assert len(over.lines) == 3 and any("table4.json holds no result" in sentence for sentence in over.sentences)
        with pytest.raises(ValueError, match="table4.json holds no result"):
            results.show("tiny", "small", "table4")


def test_a_result_under_a_wrong_name_is_left_out(places):
    save(places / "own", id="table4")
    with pytest.raises(ValueError, match="is a result of 'table4', not of table2"):
        results.show("tiny", "small", "table2")


def test_a_result_stopped_half_way_leaves_claims_open(places):
    save(places / "own", rows={name: Row() for name in ("base", "MAGNET", "LLM2Vec")})
    view = results.show("tiny", "small", "table2")
    assert {verdict for _, verdict in view.claims} == {"not measurable here"} and view.figure is None


@pytest.mark.parametrize("model", ["../own/small", "/etc", "", None, "small\x00"])
def test_names_of_models_lead_nowhere_else(places, model):
    save(places / "own")
    with pytest.raises(ValueError, match="there are no results of a model"):
        results.show("tiny", model, "table2")
    with pytest.raises(ValueError, match="there are no results of a model"):
        results.tables("tiny", model)


@pytest.mark.parametrize("id", ["../small/table2", "table99", "", None, "adapters"])
def test_names_of_tables_lead_nowhere_else(places, id):
    save(places / "own")
    with pytest.raises(ValueError, match="there is no table"):
        results.show("tiny", "small", id)


def test_what_the_adapters_changed_is_shown(places):
    kept = {
        "model": "small",
        "stories": ["some.txt"],
        "pairs": ["pairs.tsv"],
        "limits": [60, 20, 16],
        "hardware": "two cores",
        "versions": {"torch": "2.13.0"},
        "figures": {"base": {"masked": 7.5714, "rep_4": 0.64}, "magnet": {"masked": 42.142, "rep_4": 0.0339}},
    }
    (places / "shipped/small").mkdir(parents=True)
    (places / "shipped/small/adapters.json").write_text(json.dumps(kept))
    view = results.show("tiny", "small", "adapters")
    assert view.columns == ["", "base", "magnet"]
    assert [line.cells for line in view.lines] == [
        ["masked tokens found (%)", "7.57", "42.1"], ["Rep-4", "0.64", "0.0339"],
    ]  # fmt: skip
    assert view.command.endswith("--model small --limit 60 --infills 20 --prefixes 16 --sts pairs.tsv")
    assert results.tables("tiny", "small")[0] == ("What the adapters changed", "adapters")


HOSTILE = '<img src=x onerror=alert(1)> ${alert(2)} "'


def test_cells_and_file_names_are_shown_as_typed():
    for markup in (table.render(HOSTILE, [HOSTILE], [[HOSTILE, HOSTILE]]), download.render((HOSTILE, HOSTILE, b""))):
        assert "<img" not in markup and "&lt;img" in markup and 'x"' not in markup


# --- by the API


@pytest.fixture(scope="module")
def client(app_address):
    return Client(app_address, verbose=False, analytics_enabled=False)


def test_programs_can_read_results(client, places):
    save(places / "own")
    claims = client.predict(api_name="/results_claims")
    assert [claim["small"] for claim in claims] == ["✓ held", "✗ not held", "? not measurable here"]
    found = client.predict(model="small", table="table2", api_name="/results_table")
    assert found["columns"][1] == "STS12" and found["rows"][0][:2] == ["base", "50 (45 to 55)"]
    assert found["facts"]["commit"] == "abc1234"
    with pytest.raises(AppError, match="there are no results of a model"):
        client.predict(model="../small", table="table2", api_name="/results_table")
