"""H300: the GPU waits longer than usual, and no rule knows why."""

import msgspec
import pytest

from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.kernels import NVJET, SPLITKV, Kernel, running
from tests.rules.server import Stage, check, diagnosed, level, server

USUAL = (Kernel(name=NVJET, busy_ms=4.3), Kernel(name=SPLITKV, busy_ms=0.2))


@pytest.mark.parametrize(("step_ms", "kind"), [(5.1, Clear), (6.0, Fired)])
def test_the_gap_of_the_unprofiled_step_decides(step_ms, kind):
    assert isinstance(check("H300", running(*USUAL, step_ms=step_ms)), kind)


def test_idle_time_inside_a_trace_alone_is_no_evidence():
    assert isinstance(check("H300", running(*USUAL)), CannotTell)


def _counted(busy: float):
    return server(
        [Stage(running=8, step_ms=9.0, lines=9, gpu_busy=busy)], levels=(level(8, 850.0, 9.2, 50.0),)
    )


@pytest.mark.parametrize(("busy", "kind"), [(0.95, Clear), (0.7, Fired)])
def test_unprofiled_counters_decide_without_a_trace(busy, kind):
    assert isinstance(check("H300", _counted(busy)), kind)


def test_it_names_the_idle_share_and_what_decides():
    answer = check("H300", _counted(0.6))
    assert isinstance(answer, Fired)
    assert "40 %" in answer.headline
    assert {rival.rival[:4] for rival in answer.rivals} == {"H301", "H302"}


def test_counters_that_say_busy_clear_a_gap():
    run = _counted(0.97)
    traced = running(*USUAL, step_ms=9.0, batch=8)
    both = msgspec.structs.replace(run, trace=traced.trace)
    assert isinstance(check("H300", both), Clear)


def test_host_bound_takes_its_place():
    codes = [finding.code for finding in diagnosed(_counted(0.6)).findings]
    assert "H301" in codes
    assert "H300" not in codes
