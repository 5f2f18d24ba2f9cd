"""What docs/agents.md promises to programs: each command answers in JSON on stdout alone, without a word on stderr."""

import json
import re
from pathlib import Path

import pytest

from stepline.cli.main import main
from tests.captures import DATA, RECORDED

PAGE = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
TWINS = DATA / "h200-sglang-2"
HERE = {
    "TARGET": str(RECORDED / "batch-cap"),
    "BEFORE": str(TWINS / "moe_cap16"),
    "AFTER": str(TWINS / "moe_healthy"),
    "RUNS": "RUNS",
    "PATH...": str(DATA / "traces" / "healthy.json.gz"),
    "MODEL": "meta-llama/Llama-3.1-8B",
    "TABLE": "steps.csv",
    "CODE": "K401",
}
COMMANDS = [command for command in re.findall(r"`stepline ([^`]*--json[^`]*)`", PAGE) if "URL" not in command]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "steps.csv").write_text("running,step_ms\n1,5.0\n8,6.1\n16,7.0\n")
    for name in ("moe_cap16", "moe_healthy"):
        (tmp_path / "RUNS").mkdir(exist_ok=True)
        (tmp_path / "RUNS" / name).symlink_to(TWINS / name)
    return tmp_path


def test_the_page_lists_the_commands():
    assert {command.split()[0] for command in COMMANDS} == {
        *("diagnose", "compare", "history", "trace", "roofline", "fit", "explain"),
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_each_answers_in_json_on_stdout_alone(command, folder, capfd):
    assert main([HERE.get(word, word) for word in command.split()]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)
    assert err == ""


def test_a_refusal_is_one_line_on_stderr_and_nothing_on_stdout(capfd):
    assert main(["diagnose", "/nowhere", "--json", "-"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
