"""How a command ends: exit codes that nothing below `main` can turn into success."""

import sys

import pytest

from stepline.cli import schema
from stepline.cli.main import main
from stepline.errors import Interrupted


def failing(error):
    def run(_args):
        raise error

    return run


def test_an_exit_from_below_keeps_its_code(monkeypatch):
    monkeypatch.setattr(schema, "run", failing(SystemExit(7)))
    with pytest.raises(SystemExit) as leaving:
        main(["schema"])
    assert leaving.value.code == 7


def test_a_reader_that_left_is_no_failure(monkeypatch):
    def as_rich_does(_args):
        try:
            raise BrokenPipeError  # noqa: TRY301
        except BrokenPipeError:
            sys.exit(1)

    monkeypatch.setattr("stepline.cli.main._reader_left", lambda: 0)
    for run in (failing(BrokenPipeError()), as_rich_does):
        monkeypatch.setattr(schema, "run", run)
        assert main(["schema"]) == 0


def test_an_interrupted_recording_says_where_it_lies(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(schema, "run", failing(Interrupted(tmp_path)))
    assert main(["schema"]) == 130
    told = capsys.readouterr().err.splitlines()
    assert told == [f"what was recorded is kept; next: stepline diagnose {tmp_path}", "stepline: stopped"]
