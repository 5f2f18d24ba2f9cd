"""The unprofiled step that a trace is set beside."""

import msgspec

from stepline.evidence.origin import Origin
from stepline.evidence.scheduler import SchedulerEvent
from stepline.model.measure.law import LawPoint
from stepline.model.measure.traced_step import wall_points
from stepline.model.measure.windows import decode_windows
from tests.rules.server import Stage, server

LAW = (LawPoint(running=8, step_ms=2.0, windows=9), LawPoint(running=32, step_ms=3.0, windows=9))


def profiled(at_s):
    """Ten seconds of 2 ms steps, then ten of 2.5 ms: the same batch over longer contexts."""
    run = server(
        [Stage(running=8, step_ms=2.0, lines=9), Stage(running=8, step_ms=2.5, lines=9, context=900)]
    )
    start = SchedulerEvent(
        seq=99, origin=Origin("server.log", 99), kind="profile-start", text="", time_s=at_s
    )
    return msgspec.structs.replace(run, events=(start,))


def by_batch(at_s):
    run = profiled(at_s)
    return {point.running: point.step_ms for point in wall_points(run, decode_windows(run), LAW)}


def test_steps_right_before_the_profiler_are_taken():
    assert by_batch(19.0) == {8: 2.5, 32: 3.0}


def test_without_any_the_law_s_points_are():
    assert by_batch(60.0) == {8: 2.0, 32: 3.0}
