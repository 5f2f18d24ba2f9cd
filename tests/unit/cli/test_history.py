"""The ledger: changes found between runs, repeats pooled, tables of levers, what each settles."""

import json
from pathlib import Path

import jsonschema
import pytest

from stepline.cli.main import main
from stepline.report.jsonout import schema
from tests.unit.cli.test_compare import log

DATA = Path(__file__).parents[2] / "data" / "h200-sglang-2"


def ledger(capsys, *arguments) -> dict:
    code = main(["history", *arguments, "--json", "-"])
    answer = json.loads(capsys.readouterr().out)
    jsonschema.validate(answer, schema("history"))
    assert code == (0 if answer["entries"] else 3)
    return answer


def campaign(folder: Path, *names: str) -> str:
    for name in names:
        (folder / name).symlink_to(DATA / name)
    return str(folder)


def by_after(answer: dict) -> dict[str, dict]:
    return {entry["after"]: entry for entry in answer["entries"]}


def test_a_campaign_says_what_each_lever_did_at_low_and_high_batch(capsys, tmp_path):
    folder = campaign(tmp_path, "healthy_8b", "graph_cap8", "kv_small")
    entries = by_after(ledger(capsys, folder, "--gpu", "h200"))
    graphs, pool = entries["graph_cap8"], entries["kv_small"]
    assert graphs["before"] == pool["before"] == "healthy_8b"
    assert graphs["lever"] == "cuda_graph_max_bs_decode 64 → 8"
    assert (graphs["low"]["at"], graphs["low"]["verdict"]) == ("C = 4", "same")
    assert (graphs["high"]["at"], graphs["high"]["verdict"]) == ("C = 48", "worse")
    assert [cause["code"] for cause in graphs["confirms"]] == ["H303"]
    assert [cause["code"] for cause in pool["confirms"]] == ["S202"]
    interval = pool["high"]["interval"]
    assert interval["low"] < pool["high"]["speedup"] < interval["high"] < 1


def test_a_lever_without_effect_rules_its_cause_out_with_the_number(capsys, tmp_path):
    answer = ledger(capsys, campaign(tmp_path, "dense_graph", "dense_eager"), "--gpu", "h200")
    (cause,) = answer["ruled_out"]
    assert cause["code"] == "H302"
    assert "+0.0 % at C = 48" in cause["by"]


def test_repeats_are_pooled_and_not_called_changes(capsys, tmp_path):
    for number, step in enumerate((10.0, 10.02, 9.98)):
        log(tmp_path / f"run{number}", step, hour=10 + number, seed=number)
    answer = ledger(capsys, str(tmp_path))
    assert answer["entries"] == []
    assert [run["repeats"] for run in answer["runs"]] == [None, "run0", "run0"]


def test_a_change_that_no_setting_shows_is_a_change(capsys, tmp_path):
    log(tmp_path / "before", 10.0, hour=10)
    log(tmp_path / "after", 7.0, hour=11, seed=2)
    (entry,) = ledger(capsys, str(tmp_path))["entries"]
    assert (entry["before"], entry["after"], entry["verdict"]) == ("before", "after", "better")
    assert entry["lever"] == "no setting that the evidence shows"
    assert entry["confirms"] == entry["rules_out"] == []


def test_runs_of_another_model_are_not_compared_and_that_is_said(capsys, tmp_path):
    answer = ledger(capsys, campaign(tmp_path, "dense_graph", "healthy_8b"), "--gpu", "h200")
    assert answer["entries"] == []
    assert "the model is" in answer["not_compared"][0]


def test_a_table_of_levers_is_part_of_the_ledger(capsys, tmp_path):
    log(tmp_path / "run", 10.0)
    (tmp_path / "levers.csv").write_text(
        "lever,running,before_tok_s,after_tok_s\nMTP,1,14,20.6\nMTP,16,30,30.1\nnccl,16,30,30.0\n"
    )
    entries = {entry["lever"]: entry for entry in ledger(capsys, str(tmp_path))["entries"]}
    assert entries["MTP"]["low"]["speedup"] == pytest.approx(20.6 / 14)
    assert (entries["MTP"]["low"]["verdict"], entries["MTP"]["high"]["verdict"]) == ("better", "same")
    assert [cause["code"] for cause in entries["MTP"]["rules_out"]] == ["S205", "H301", "H302"]
    assert [cause["code"] for cause in entries["nccl"]["rules_out"]] == ["C501"]


def test_unreadable_folders_are_named_and_an_empty_one_refused(capsys, tmp_path):
    log(tmp_path / "campaign" / "run", 10.0)
    (tmp_path / "campaign" / "notes").mkdir()
    (tmp_path / "campaign" / "notes" / "todo.txt").write_text("call Bob\n")
    assert any("todo.txt" in text for text in ledger(capsys, str(tmp_path / "campaign"))["not_compared"])
    (tmp_path / "empty").mkdir()
    assert main(["history", str(tmp_path / "empty")]) == 2
    assert main(["history", str(tmp_path / "nowhere")]) == 2


def test_terminal_and_document_of_a_campaign(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    folder = campaign(tmp_path, "healthy_8b", "graph_cap8")
    assert main(["history", folder, "--gpu", "h200"]) == 0
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 80
    assert "✓ H303 cuda-graph-uncovered-batch" in out
    assert main(["history", folder, "--gpu", "h200", "--md", "-"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# What was tried\n\n1 changes tried: 1 worse.")
    assert "at C = 48 | worse | H303 |" in text
