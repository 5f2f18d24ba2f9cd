import pytest

from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, level, server

LIGHT, HEAVY = level(1, 197, 4.95, 24), level(64, 1465, 5.1, 4945)


def test_fires_on_a_queue_that_nothing_in_the_server_explains():
    answer = check("L106", server([], levels=[LIGHT, HEAVY]))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"  # a cap that nobody stated may hold them
    assert answer.recoverable_tok_s is None
    assert any("S201" in rival.rival for rival in answer.rivals)


@pytest.mark.parametrize(("pool", "cause"), [(0.05, "S201"), (0.97, "S202")])
def test_clear_when_a_cap_or_a_full_pool_explains_the_queue(pool, cause):
    run = server(
        [Stage(running=1, step_ms=5.0), Stage(running=8, step_ms=5.1, queued=56, pool_usage=pool)],
        levels=[LIGHT, HEAVY],
        max_running=8,
    )
    answer = check("L106", run)
    assert isinstance(answer, Clear)
    assert cause in answer.reason


def test_clear_when_everything_runs():
    assert isinstance(check("L106", server([], levels=[LIGHT, level(64, 6528, 9.4, 272)])), Clear)


def test_clear_when_decode_takes_longer_than_the_queue():
    assert isinstance(check("L106", server([], levels=[LIGHT, level(64, 1465, 30.0, 600)])), Clear)


def test_cannot_tell_from_one_level():
    assert isinstance(check("L106", server([], levels=[HEAVY])), CannotTell)
