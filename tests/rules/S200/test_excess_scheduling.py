"""S200: requests wait, or time lies beside decode steps and their prompts, and no rule knows why."""

import pytest

from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, diagnosed, level, server


def _loop(tok_s: float, **options: object):
    """32 streams of 256 + 128 tokens in steps of 6 ms: 5,333 tok/s by decode alone."""
    stage = Stage(running=32, step_ms=6.0, lines=9, gpu_busy=0.97, **options)
    return server([stage], levels=(level(32, tok_s, 6.2, 80.0),))


@pytest.mark.parametrize(("tok_s", "kind"), [(4000.0, Clear), (1500.0, Fired)])
def test_time_beside_decode_steps_decides(tok_s, kind):
    assert isinstance(check("S200", _loop(tok_s)), kind)


def test_waiting_requests_are_said_with_their_number():
    answer = check("S200", server([Stage(running=8, step_ms=6.0, queued=24, lines=9)]))
    assert isinstance(answer, Fired)
    assert answer.headline == "24 of 32 requests wait"


def test_a_specific_finding_takes_its_place():
    run = _loop(1500.0)
    codes = [finding.code for finding in diagnosed(run).findings]
    assert "S204" in codes
    assert "S200" not in codes


def test_cannot_tell_without_a_load_or_a_floor():
    assert isinstance(check("S200", server([])), CannotTell)
    assert isinstance(check("S200", _loop(1500.0), gpu=None), CannotTell)
