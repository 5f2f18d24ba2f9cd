from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, level, server

LIGHT, HEAVY = level(1, 197, 4.95, 24), level(64, 1465, 5.1, 4945)


def test_fires_on_a_queue_that_nothing_in_the_server_explains():
    answer = check("L106", server([], levels=[LIGHT, HEAVY]))
    assert isinstance(answer, Fired)
    assert answer.recoverable_tok_s is None
    assert any("S201" in rival.rival for rival in answer.rivals)


def test_clear_when_a_cap_explains_the_queue():
    run = server(
        [Stage(running=1, step_ms=5.0), Stage(running=8, step_ms=5.1, queued=56)],
        levels=[LIGHT, HEAVY],
        max_running=8,
    )
    assert isinstance(check("L106", run), Clear)


def test_clear_when_everything_runs():
    assert isinstance(check("L106", server([], levels=[LIGHT, level(64, 6528, 9.4, 272)])), Clear)


def test_clear_when_decode_takes_longer_than_the_queue():
    assert isinstance(check("L106", server([], levels=[LIGHT, level(64, 1465, 30.0, 600)])), Clear)


def test_cannot_tell_from_one_level():
    assert isinstance(check("L106", server([], levels=[HEAVY])), CannotTell)
