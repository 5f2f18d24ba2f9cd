import argparse
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from stepline.cli import lab_calibrate
from stepline.errors import UsageError
from stepline.evidence.calibration import Calibration, Conditions, Machine, Measured
from stepline.lab.calibrate import run
from stepline.lab.calibrate.allreduce import all_reduce
from stepline.lab.calibrate.clock import Timed
from stepline.lab.calibrate.plan import Body, Plan
from stepline.tasks.calibration_file import load


class Clock:
    """Gives every operation 2, 1 and 4 ms, and takes `each_s` of a pretended time for it."""

    def __init__(self, now: list[float], each_s: float) -> None:
        self._now, self._each_s = now, each_s

    def graph(self, bodies: list[Body]) -> Timed:
        for body in bodies:
            body()
        self._now[0] += self._each_s
        return Timed([2.0, 1.0, 4.0], Conditions(sm_clock_mhz=1980))

    host = graph


def plan(name: str, body: Body) -> Plan:
    return Plan("stream", name, "bf16", {"rows": 1}, 4e9, 0, lambda: [body])


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> Any:
    now = [0.0]
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def broken() -> None:
        raise RuntimeError("no kernel for this shape\nsecond line")

    plans = [plan("first", lambda: None), plan("broken", broken), plan("third", lambda: None)]
    monkeypatch.setattr(run, "_parts", lambda _: iter([("all", iter(plans))]))
    monkeypatch.setattr(run, "_launches", lambda *_: [])

    def call(seconds: float) -> Any:
        said: list[str] = []
        pool: Any = SimpleNamespace(torch=None)
        clock: Any = Clock(now, each_s=10)
        return *run.measure(pool, clock, seconds, said.append), said

    return call


def test_one_failure_costs_one_number(measure: Any) -> None:
    measured, missing, said = measure(100)
    assert [each.name for each in measured] == ["first", "third"]
    first = measured[0]
    assert (first.ms, first.low_ms, first.high_ms, first.samples) == (2.0, 1.0, 4.0, 3)
    assert first.bytes_s == 2e12
    assert first.conditions.sm_clock_mhz == 1980
    assert [each.reason for each in missing] == ["RuntimeError: no kernel for this shape"]
    assert said == ["all"]


def test_what_does_not_fit_the_time_is_named(measure: Any) -> None:
    measured, missing, _ = measure(5)
    assert [each.name for each in measured] == ["first"]
    assert [each.name for each in missing] == ["broken bf16 rows=1", "third bf16 rows=1"]
    assert all("--seconds" in each.reason for each in missing)


def test_no_torch_and_no_gpu_are_one_sentence_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError, match="torch, which cannot be imported"):
        run.load_torch()
    without: Any = SimpleNamespace(version=SimpleNamespace(cuda=None))
    monkeypatch.setitem(sys.modules, "torch", without)
    with pytest.raises(UsageError, match="sees no NVIDIA GPU"):
        run.load_torch()


def test_one_gpu_reduces_with_nobody() -> None:
    measured, missing = all_reduce(1, 1.0)
    assert measured == []
    assert missing[0].reason == "one GPU has nobody to reduce with"


CALIBRATION = Calibration(
    stepline="0",
    date="2026-11-30",
    seconds=12.3,
    machine=Machine(
        gpu="NVIDIA H200",
        gpus=1,
        l2_bytes=60 << 20,
        sms=132,
        driver="580.1",
        cuda="13.0",
        torch="2.11.0",
        nccl=None,
        python="3.12.3",
    ),
    measured=(
        Measured(
            group="bandwidth",
            name="copy",
            dtype="bf16",
            method="graph",
            ms=1.0,
            low_ms=0.9,
            high_ms=1.1,
            samples=11,
            bytes=4.2e9,
        ),
    ),
)


def call(*words: str) -> int:
    parser = argparse.ArgumentParser()
    lab_calibrate.add_arguments(parser)
    return lab_calibrate.run(parser.parse_args(words))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lab_calibrate, "calibrate", lambda *_, **__: CALIBRATION)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.mark.usefixtures("measured")
def test_the_calibration_is_kept_where_it_is_looked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--json") == 0
    assert msgspec.json.decode(capsys.readouterr().out, type=Calibration) == CALIBRATION
    assert load(None) == CALIBRATION


@pytest.mark.usefixtures("measured")
def test_a_named_file_takes_it_instead(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--out", str(tmp_path / "x.json")) == 0
    assert load(str(tmp_path / "x.json")) == CALIBRATION
    assert load(None) is None
    head, line = capsys.readouterr().out.splitlines()
    assert head == "1 x NVIDIA H200, driver 580.1, torch 2.11.0, 2026-11-30, 12 s"
    assert line.split()[:4] == ["bandwidth", "copy", "bf16", "1,000.00"]
    assert line.endswith("4,200 GB/s")


@pytest.mark.usefixtures("measured")
def test_what_cannot_be_written_is_refused_before_it_is_measured(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        call("--out", str(tmp_path / "nowhere" / "x.json"))
    with pytest.raises(UsageError, match="--seconds is 0"):
        call("--seconds", "0")
    (tmp_path / "config").write_text("a file where the folder should be")
    with pytest.raises(UsageError, match="give --out FILE"):
        call()
