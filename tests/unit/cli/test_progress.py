"""Progress: late, on a terminal alone, on one line, and gone in the end."""

import io
from types import SimpleNamespace

import pytest

from stepline.cli import progress
from stepline.cli.main import main
from stepline.cli.progress import AFTER_S, Progress
from tests.captures import RECORDED


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))  # pytest itself takes sys.stderr
    return stream


def _told(*, quiet=False, wait=2 * AFTER_S):
    now = [0.0]
    shown = Progress(quiet=quiet, clock=lambda: now[0])
    shown.file("logs/\x1b[2Jserver.log")
    shown.bytes(0, 80_000_000)
    now[0] += wait
    shown.bytes(20_000_000, 80_000_000)
    shown.bytes(21_000_000, 80_000_000)
    return shown


def test_one_line_that_says_how_far_and_goes(terminal):
    _told().end()
    assert terminal.getvalue() == "\r\x1b[Kreading logs/?[2Jserver.log: 25 % of 80 MB\r\x1b[K"


def test_nothing_where_it_is_quick_quiet_or_no_terminal(terminal, monkeypatch):
    _told(wait=AFTER_S / 2).end()
    _told(quiet=True).end()
    assert terminal.getvalue() == ""
    plain = io.StringIO()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=plain))
    _told().end()
    assert plain.getvalue() == ""


def test_a_long_name_keeps_its_end(terminal):
    shown = Progress(quiet=False, clock=iter(range(9)).__next__)
    shown.file("x" * 100 + "/server.log")
    shown.bytes(1, 2)
    line = terminal.getvalue()
    assert "x/server.log: 50 %" in line
    assert len(line) < 90


def test_the_command_shows_it_while_it_reads(terminal, monkeypatch, capsys):
    monkeypatch.setattr(progress, "AFTER_S", 0.0)
    assert main(["diagnose", str(RECORDED / "batch-cap"), "--json", "-"]) == 0
    assert "\r\x1b[Kreading " in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert capsys.readouterr().out.startswith("{")
