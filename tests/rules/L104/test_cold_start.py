import msgspec

from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import SchedulerEvent
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, diagnosed, level, server

STEADY = [Stage(running=1, step_ms=5.0), Stage(running=8, step_ms=5.1)]


def test_fires_when_the_lightest_level_waits_longest():
    answer = check("L104", server(STEADY, levels=[level(1, 190, 5.0, 26800), level(8, 1450, 5.1, 60)]))
    assert isinstance(answer, Fired)
    assert answer.recoverable_tok_s is None  # it costs a benchmark, not the server


def test_confirmed_and_first_when_the_same_level_reads_faster_later():
    levels = [level(1, 122, 4.9, 43), level(1, 195, 4.9, 43)]
    answer = check("L104", server(STEADY, levels=levels))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert diagnosed(server(STEADY, levels=levels)).findings[0].code == "L104"


def test_two_equal_measurements_are_clear():
    assert isinstance(
        check("L104", server(STEADY, levels=[level(1, 191, 4.9, 43), level(1, 195, 4.9, 43)])), Clear
    )


def test_fires_when_kernels_are_compiled_while_serving():
    run = server(STEADY)
    events = [
        SchedulerEvent(seq=0, origin=Origin("server.log", 1), kind="ready", text="ready"),
        SchedulerEvent(
            seq=3, origin=Origin("server.log", 9), kind="jit-compile", text="Entering DeepGEMM JIT"
        ),
    ]
    assert isinstance(check("L104", msgspec.structs.replace(run, events=tuple(events))), Fired)


def test_compiling_before_ready_is_clear():
    run = server(STEADY)
    events = [
        SchedulerEvent(
            seq=0, origin=Origin("server.log", 1), kind="jit-compile", text="Entering DeepGEMM JIT"
        ),
        SchedulerEvent(seq=1, origin=Origin("server.log", 9), kind="ready", text="ready"),
    ]
    assert isinstance(check("L104", msgspec.structs.replace(run, events=tuple(events))), Clear)


def test_nearest_rival_queueing_grows_with_load_and_is_clear():
    assert isinstance(
        check("L104", server(STEADY, levels=[level(1, 190, 5.0, 24), level(64, 1450, 5.1, 4945)])), Clear
    )


def test_cannot_tell_from_nothing():
    assert isinstance(check("L104", Run()), CannotTell)
