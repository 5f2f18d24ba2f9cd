import msgspec
import pytest

from stepline.evidence.load import LoadLevel
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.scheduler import PrefillReport, SchedulerEvent
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, level, server

FULL = Stage(running=30, step_ms=6.0, queued=34, pool_usage=1.0)


def _counters(prefilled: float, retracted: float | None = None) -> EngineMetrics:
    return EngineMetrics(origin=Origin("metrics.txt"), prefill_tokens=prefilled, retracted_requests=retracted)


def _with_retractions(amount: float, prefilled: float, offered: int = 64, pool: float = 1.0):
    """30 running, the others queued in a full pool; at 2,000 tok/s decode takes two fifths of the time."""
    full = Stage(running=30, step_ms=6.0, queued=offered - 30, pool_usage=pool)
    run = server([full], levels=[level(offered, 2000, 14.0, 2300)], metrics=_counters(prefilled))
    event = SchedulerEvent(
        seq=3, origin=Origin("server.log", 3), kind="retraction", text="Retract requests", amount=amount
    )
    return msgspec.structs.replace(run, events=(event,))


def test_confirmed_when_prefilling_again_takes_a_tenth_of_the_time():
    answer = check("S203", _with_retractions(40, 40_000))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert answer.gain is not None
    assert answer.gain.low < answer.gain.tok_s < answer.gain.high
    assert answer.rivals == ()


def test_the_more_requests_wait_for_the_pool_the_more_a_larger_one_may_bring():
    few, many = (check("S203", _with_retractions(40, 40_000, offered=n)).gain for n in (64, 128))
    assert few.tok_s == many.tok_s
    assert few.high < many.high


def test_where_no_full_pool_holds_the_batch_back_the_fast_end_saves_twice_what_is_repeated():
    gain = check("S203", _with_retractions(40, 40_000, pool=0.6)).gain
    share = 1 - 2000 / gain.tok_s
    assert gain.high == pytest.approx(2000 / (1 - 2 * share))
    assert gain.low == pytest.approx(2000 / (1 - share / 2))


def test_nearest_rival_the_size_of_the_pool_is_what_costs_when_little_is_repeated():
    run = _with_retractions(34, 1_000_000)
    answer = check("S203", run)
    assert isinstance(answer, Clear)
    assert "S202" in answer.reason
    assert isinstance(check("S202", run), Fired)


def test_suspected_when_the_time_cannot_be_told():
    run = msgspec.structs.replace(_with_retractions(34, 1_000_000), levels=())
    answer = check("S203", run)
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert [rival.rival for rival in answer.rivals] == ["S202 kv-capacity-bound"]


def test_without_the_model_no_time_is_made_of_retractions_that_no_counter_tells():
    rows = [msgspec.structs.replace(level(64, 2000, 14.0, 2300), requests=200)]
    counted = EngineMetrics(origin=Origin("metrics.txt"), retracted_requests=20)
    answer = check("S203", server([FULL], levels=rows, metrics=counted, model=None))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.gain is None


def test_suspected_by_the_closed_loop_where_prefilled_tokens_are_not_counted():
    full = Stage(running=30, step_ms=6.0, queued=34, pool_usage=1.0)
    rows = [msgspec.structs.replace(level(64, 2000, 14.0, 2300), requests=200)]
    counted = EngineMetrics(origin=Origin("metrics.txt"), retracted_requests=2000)
    run = server([full], levels=rows, metrics=counted)
    answer = check("S203", run)
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.gain.low < answer.gain.tok_s < answer.gain.high
    assert isinstance(check("S204", run), Clear)  # the same time, and it is no prompt's
    few = msgspec.structs.replace(run, metrics=(msgspec.structs.replace(counted, retracted_requests=20),))
    assert isinstance(check("S203", few), Clear)
    assert isinstance(check("S204", few), Fired)


def _table(*rows: tuple[int, float | None, float]):
    return tuple(
        LoadLevel(origin=Origin("sweep.csv"), concurrency=n, running=n, tpot_ms=t, pool_usage=u)
        for n, t, u in rows
    )


def test_suspected_when_time_per_token_jumps_as_the_pool_fills():
    rows = ((7, 114.0, 0.924), (8, 440.0, 0.989))
    levels = _table(*rows)
    run = msgspec.structs.replace(server([]), levels=levels)
    answer = check("S203", run)
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert "jumps 3.9× as" in answer.headline
    assert [line.text for line in answer.evidence] == [
        "114 ms a token at 7 running, the pool 92 % full",
        "440 ms a token at 8 running, the pool 99 % full",
    ]
    gentle = msgspec.structs.replace(levels[1], tpot_ms=130.0)
    assert not isinstance(check("S203", msgspec.structs.replace(run, levels=(levels[0], gentle))), Fired)


def test_a_level_without_a_time_per_token_is_passed_over():
    levels = _table((7, 114.0, 0.924), (7, None, 0.93), (8, 440.0, 0.989))
    answer = check("S203", msgspec.structs.replace(server([]), levels=levels))
    assert isinstance(answer, Fired)
    assert "jumps 3.9×" in answer.headline


def test_nearest_rival_a_jump_in_a_pool_that_was_full_before_is_not_its_filling():
    levels = _table((7, 114.0, 0.96), (8, 440.0, 0.989))
    assert not isinstance(check("S203", msgspec.structs.replace(server([]), levels=levels)), Fired)


LONG_PREFILL = PrefillReport(
    seq=99,
    origin=Origin("server.log", 99),
    new_sequences=1,
    new_tokens=8192,
    running=29,
    pending_tokens=583214,
)


def test_suspected_when_a_full_pool_loses_a_request_without_a_word():
    full = msgspec.structs.replace(FULL, context=600_000)
    answer = check("S203", msgspec.structs.replace(server([full]), prefills=(LONG_PREFILL,)))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"


def test_nearest_rival_more_pending_than_the_lost_request_held_are_new_prompts():
    full = msgspec.structs.replace(FULL, context=200_000)
    run = msgspec.structs.replace(server([full]), prefills=(LONG_PREFILL,))
    assert isinstance(check("S203", run), CannotTell)


@pytest.mark.parametrize(
    "other",
    [{"seq": 0}, {"running": None}],  # before the pool was full; a line that does not count the others
)
def test_a_long_prefill_that_need_not_follow_a_loss_shows_none(other):
    full = msgspec.structs.replace(FULL, context=600_000)
    prefill = msgspec.structs.replace(LONG_PREFILL, **other)
    assert isinstance(check("S203", msgspec.structs.replace(server([full]), prefills=(prefill,))), CannotTell)


def test_nearest_rival_a_long_prefill_beside_a_roomy_pool_is_clear():
    run = server([Stage(running=30, step_ms=6.0, queued=4, pool_usage=0.5, context=600_000)])
    assert isinstance(check("S203", msgspec.structs.replace(run, prefills=(LONG_PREFILL,))), Clear)


def test_a_counter_that_stands_at_zero_outweighs_what_lines_suggest():
    full = msgspec.structs.replace(FULL, context=600_000)
    run = server([full], metrics=_counters(1000, 0.0))
    assert isinstance(check("S203", msgspec.structs.replace(run, prefills=(LONG_PREFILL,))), Clear)


def test_clear_when_the_counter_stands_at_zero():
    assert isinstance(check("S203", server([FULL], metrics=_counters(1000, 0.0))), Clear)


def test_cannot_tell_from_a_short_excerpt_with_a_full_pool():
    assert isinstance(check("S203", server([FULL])), CannotTell)


def test_the_fast_end_takes_nine_tenths_of_the_time_away_at_most():
    gain = check("S203", _with_retractions(40, 10_000, pool=0.6)).gain
    assert 2 * (1 - 2000 / gain.tok_s) > 0.9
    assert gain.high == pytest.approx(2000 / (1 - 0.9))


@pytest.mark.parametrize(("usage", "clear"), [(0.88, True), (0.92, False)])
def test_a_pool_below_nine_tenths_threw_nobody_out(usage, clear):
    assert (
        isinstance(check("S203", server([Stage(running=30, step_ms=6.0, pool_usage=usage)])), Clear) is clear
    )


@pytest.mark.parametrize(("prefilled", "fires"), [(90_000, False), (65_000, True)])
def test_retractions_cost_where_a_tenth_of_the_time_is_repeated_prefill(prefilled, fires):
    assert isinstance(check("S203", _with_retractions(40, prefilled, pool=0.6)), Fired) is fires
