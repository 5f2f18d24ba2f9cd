import msgspec

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.scheduler import PrefillReport, SchedulerEvent
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, server

FULL = Stage(running=30, step_ms=6.0, queued=34, pool_usage=1.0)


def _counters(finished: float, retracted: float | None = None) -> EngineMetrics:
    return EngineMetrics(
        origin=Origin("metrics.txt"), finished_requests=finished, retracted_requests=retracted
    )


def _with_retraction(amount: float, finished: float):
    run = server([FULL], metrics=_counters(finished))
    event = SchedulerEvent(
        seq=3, origin=Origin("server.log", 3), kind="retraction", text="Retract requests", amount=amount
    )
    return msgspec.structs.replace(run, events=(event,))


def test_fires_when_one_request_in_four_is_thrown_out():
    answer = check("S203", _with_retraction(40, 160))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"


def test_it_takes_the_full_pool_from_s202():
    assert isinstance(check("S202", _with_retraction(40, 160)), Clear)
    assert isinstance(check("S202", _with_retraction(1, 1000)), Fired)


def test_clear_when_few_requests_are_touched():
    assert isinstance(check("S203", _with_retraction(1, 1000)), Clear)


def test_suspected_when_a_full_pool_loses_a_request_without_a_word():
    run = server([FULL])
    prefill = PrefillReport(
        seq=99,
        origin=Origin("server.log", 99),
        new_sequences=1,
        new_tokens=8192,
        running=29,
        pending_tokens=583214,
    )
    answer = check("S203", msgspec.structs.replace(run, prefills=(prefill,)))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"


def test_nearest_rival_a_long_prefill_beside_a_roomy_pool_is_clear():
    run = server([Stage(running=30, step_ms=6.0, queued=4, pool_usage=0.5)])
    prefill = PrefillReport(
        seq=99,
        origin=Origin("server.log", 99),
        new_sequences=1,
        new_tokens=8192,
        running=29,
        pending_tokens=583214,
    )
    assert isinstance(check("S203", msgspec.structs.replace(run, prefills=(prefill,))), Clear)


def test_clear_when_the_counter_stands_at_zero():
    assert isinstance(check("S203", server([FULL], metrics=_counters(1000, 0.0))), Clear)


def test_cannot_tell_from_a_short_excerpt_with_a_full_pool():
    assert isinstance(check("S203", server([FULL])), CannotTell)
