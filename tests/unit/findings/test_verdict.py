"""What is said where nothing was found, and of a step that cannot be."""

import pytest

from stepline.findings.verdict import below_floor
from tests.rules.server import Stage, diagnosed, picture, server


def _run(step_ms: float):
    return server([Stage(running=8, step_ms=step_ms, lines=9)])


@pytest.mark.parametrize(("step_ms", "warned"), [(1.0, True), (5.5, False)])
def test_a_step_below_its_strict_floor_is_always_a_warning(step_ms, warned):
    assert (below_floor(picture(_run(step_ms))) is not None) == warned
    topics = [doubt.topic for doubt in diagnosed(_run(step_ms)).doubts]
    assert ("below-floor" in topics) == warned


def test_no_cause_found_is_said_of_typical_steps_only():
    assert "of what such a server typically takes" in diagnosed(_run(5.5)).verdict
    slow = diagnosed(_run(40.0))
    assert slow.findings == ()
    assert "no cause found" not in slow.verdict
    assert "above what is typical, not attributed" in slow.verdict
