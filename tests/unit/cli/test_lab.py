import argparse
import json
from pathlib import Path

import pytest

from stepline.cli import lab
from stepline.errors import UsageError
from stepline.lab.real import engine
from stepline.score.case import load_case


def call(*words: str) -> int:
    parser = argparse.ArgumentParser()
    lab.add_arguments(parser)
    return lab.run(parser.parse_args(list(words)))


def test_faults_lists_each_case_with_what_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("faults", "sglang") == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["graph-ceiling"].startswith("H303")
    assert lines["healthy"].split() == ["nothing", "healthy"]


def test_run_refuses_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a file"):
        call("run", "nowhere", "-o", str(tmp_path))
    with pytest.raises(UsageError, match="no case named x"):
        call("run", "sglang", "--only", "x", "-o", str(tmp_path))


def test_a_failed_case_is_named_and_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(engine.LAUNCH, "vllm", ("false",))
    assert call("run", "vllm", "--only", "small-1b", "-o", str(tmp_path)) == 3
    assert "small-1b failed" in capsys.readouterr().err
    assert (tmp_path / "small-1b.failed.log").exists()


def test_faults_without_a_matrix_lists_what_can_be_planted(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("faults") == 0
    words = {line.split()[0]: line.split()[1] for line in capsys.readouterr().out.splitlines()}
    assert words["S201"] == "S201"
    assert words["power-cap"] == "nothing"
    assert call("faults", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in rows} == set(words)
    assert all(row["expected"] is None or row["strengths"] == [1, 2, 3] for row in rows)


def test_a_simulated_case_is_captured_scored_and_the_same_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def capture(folder: Path, seed: str) -> dict[str, bytes]:
        options = ("--only", "sglang-S201-3-0", "--seed", seed, "--jobs", "1", "-o", str(folder))
        assert call("run", "simulated", *options) == 0
        return {path.name: path.read_bytes() for path in (folder / "sglang-S201-3-0").iterdir()}

    first, again, other = (
        capture(tmp_path / name, seed) for name, seed in (("a", "1"), ("b", "1"), ("c", "2"))
    )
    assert first == again
    assert first["sweep.json"] != other["sweep.json"]
    for name in ("server.log", "server_info.json", "metrics.txt", "gpm.csv", "config.json", "truth.toml"):
        assert first[name], name
    case = load_case(tmp_path / "a" / "sglang-S201-3-0")
    assert case.expected == "batch-capped"
    with pytest.raises(UsageError, match="no fault or case"):
        call("run", "simulated", "--only", "X999", "-o", str(tmp_path))


def test_serve_refuses_what_it_cannot_be() -> None:
    with pytest.raises(UsageError, match="no fault is called"):
        call("serve", "--fault", "X999")
    with pytest.raises(UsageError, match="leaves too little"):
        call("serve", "--model", "llama-3.1-70b", "--gpu", "h100")
