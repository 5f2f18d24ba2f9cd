import json
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from stepline.cli.main import main
from stepline.report.jsonout import schema

RECORDED = Path(str(resources.files("stepline.lab").joinpath("recorded")))
CAP = str(RECORDED / "batch-cap")
LINE = "[2026-05-02 10:00:00 TP0] Decode batch, #running-req: {n}, gen throughput (token/s): 20.0, #queue-req: 0\n"


def _refused(capsys, *arguments) -> str:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.startswith("stepline: ")
    assert err.count("\n") == 1  # one clear sentence
    assert "Traceback" not in err
    return err


def test_a_path_that_does_not_exist(capsys, tmp_path):
    assert "no such file or folder" in _refused(capsys, "diagnose", str(tmp_path / "nowhere"))


def test_an_empty_folder(capsys, tmp_path):
    assert "empty" in _refused(capsys, "diagnose", str(tmp_path))


def test_a_binary_file(capsys, tmp_path):
    (tmp_path / "weights.bin").write_bytes(bytes(range(256)) * 40)
    assert "binary" in _refused(capsys, "diagnose", str(tmp_path))


def test_a_truncated_document_names_the_place(capsys, tmp_path):
    content = (RECORDED / "batch-cap" / "server_info.json").read_text()
    (tmp_path / "server_info.json").write_text(content[: len(content) // 2])
    assert "server_info.json: the JSON ends early at line" in _refused(capsys, "diagnose", str(tmp_path))


def test_the_log_of_an_unknown_engine(capsys, tmp_path):
    (tmp_path / "server.log").write_text("2026-05-02 10:00:00 nginx: worker process 7 exited\n" * 40)
    assert "no line of a known engine" in _refused(capsys, "diagnose", str(tmp_path))


@pytest.mark.parametrize(
    ("words", "near"), [(("--gpu", "h2000x"), "H200"), (("--model", "lama-3.1-8b"), "Llama-3.1-8B")]
)
def test_an_unknown_gpu_or_model_costs_the_floor_and_never_the_diagnosis(capsys, tmp_path, words, near):
    log = tmp_path / "server.log"
    running = LINE.format(n=8).replace("#running-req: 8,", "#running-req: 8, #token: 9000, cuda graph: True,")
    lines = [running.replace("10:00:00", f"10:00:{second:02d}").strip() for second in range(40)]
    log.write_text("\n".join(lines) + "\n")
    code = main(["diagnose", str(log), *words, "--json", "-"])
    out, err = capsys.readouterr()
    assert code in {0, 3}
    assert json.loads(out)["runs"][0]["target"]["engine"] == "sglang"
    assert words[1] in err
    assert near in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [("--tp", "0"), ("--context-length", "-1")])
def test_a_command_line_that_cannot_be_right_is_refused(capsys, words):
    assert main(["diagnose", CAP, *words]) == 2
    assert words[1] in capsys.readouterr().err


def test_one_damaged_file_among_good_ones_is_named_and_not_fatal(capsys, tmp_path):
    for file in (RECORDED / "batch-cap").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "server_info.json").write_text('{"internal_states": [')
    assert main(["diagnose", str(tmp_path), "--gpu", "h200"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "S201 batch-capped" in out
    assert "server_info.json: the JSON ends early" in out


def test_too_little_for_a_verdict_is_inconclusive(capsys, tmp_path):
    (tmp_path / "gpu.csv").write_text("unix_s,graphics_util\n1,50\n2,50\n")
    assert main(["diagnose", str(tmp_path)]) == 3
    assert "too little" in " ".join(capsys.readouterr().out.split()).lower()


def test_json_follows_the_shipped_schema(capsys):
    assert main(["diagnose", CAP, "--gpu", "h200", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(schema()).validate(document)
    assert document["runs"][0]["findings"][0]["try"]
    assert document["schema_version"] == 2


@pytest.mark.parametrize(
    ("wanted", "code"), [("confirmed", 1), ("suspected", 1), ("S201", 1), ("batch-capped", 1), ("K401", 0)]
)
def test_fail_on(capsys, wanted, code):
    assert main(["diagnose", CAP, "--gpu", "h200", "--quiet", "--fail-on", wanted]) == code
    assert capsys.readouterr().out == ""


def test_fail_on_an_unknown_rule_names_the_rules(capsys):
    assert "S201 batch-capped" in _refused(capsys, "diagnose", CAP, "--fail-on", "X999")


def test_a_server_cannot_write_to_the_terminal(capsys, tmp_path):
    info = json.loads((RECORDED / "batch-cap" / "server_info.json").read_text())
    info["model_path"] = "evil\x1b[2J\x1b]0;title\x07[red]model"
    (tmp_path / "server_info.json").write_text(json.dumps(info))
    (tmp_path / "server.log").write_text(LINE.format(n=1) * 3)
    assert main(["diagnose", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "[red]model" in out  # shown as text, not as markup


def test_demo_is_the_founding_case(capsys):
    assert main(["demo", "founding-case"]) == 0
    assert "K401 context-capacity-work" in capsys.readouterr().out


def test_the_schema_that_ships_is_current():
    shipped = json.loads(resources.files("stepline.report").joinpath("diagnosis.schema.json").read_text())
    assert shipped == schema()  # `stepline schema > src/stepline/report/diagnosis.schema.json` after a change


def test_every_property_of_a_diagnosis_is_described():
    records = schema()["$defs"]
    bare = [
        f"{name}.{field}"
        for name, record in records.items()
        for field, content in record.get("properties", {}).items()
        if not content.get("description")
    ]
    assert bare == []
    assert set(records["Diagnosis"]["required"]) >= {"runs", "chosen_run", "comparisons", "not_comparable"}
