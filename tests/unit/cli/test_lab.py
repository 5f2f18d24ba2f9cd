import argparse
from pathlib import Path

import pytest

from stepline.cli import lab
from stepline.errors import UsageError


def call(*words: str) -> int:
    parser = argparse.ArgumentParser()
    lab.add_arguments(parser)
    return lab.run(parser.parse_args(list(words)))


def test_faults_lists_each_case_with_what_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("faults", "h200-sglang") == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["graph_cap8"].startswith("H303")
    assert lines["healthy_8b"].split() == ["nothing", "healthy"]


def test_run_refuses_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a file"):
        call("run", "nowhere", "-o", str(tmp_path))
    with pytest.raises(UsageError, match="no case named x"):
        call("run", "h200-sglang", "--only", "x", "-o", str(tmp_path))


def test_a_failed_case_is_named_and_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("stepline.lab.real.engine.LAUNCH", ("false",))
    assert call("run", "h200-sglang", "--only", "small_1b", "-o", str(tmp_path)) == 3
    assert "small_1b failed" in capsys.readouterr().err
    assert (tmp_path / "small_1b.failed.log").exists()
