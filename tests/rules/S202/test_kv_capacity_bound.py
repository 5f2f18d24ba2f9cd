import msgspec
import pytest

from stepline.evidence.load import LoadLevel
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import PrefillReport
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, level, server

FULL = Stage(running=30, step_ms=6.0, queued=34, pool_usage=0.97)


def test_fires_confirmed_on_a_full_pool_below_the_cap():
    answer = check("S202", server([FULL], max_running=256, kv_capacity_tokens=12000))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert any("S201" in ruled.rival for ruled in answer.ruled_out)


def test_evidence_names_the_pool_s_use_and_where_its_size_was_read():
    client = msgspec.structs.replace(level(64, 4000, 6.2, 1200), start_s=0.0, end_s=5.0)
    evidence = check("S202", server([FULL], levels=[client], kv_capacity_tokens=12_000)).evidence
    assert "the KV pool is up to 97 % full" in [line.text for line in evidence]
    size = [line for line in evidence if "31.2 requests of this load" in line.text]
    assert [line.origin.field for line in size] == ["kv_capacity_tokens"]


def test_suspected_when_the_cap_is_unknown():
    answer = check("S202", server([FULL]))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"


def test_fires_when_the_pool_holds_no_further_request_though_it_reads_lower():
    run = server(
        [Stage(running=1, step_ms=5.0), Stage(running=30, step_ms=6.0, queued=34, pool_usage=0.8)],
        levels=[level(1, 197, 4.95, 24), level(64, 4000, 6.2, 1200)],
        max_running=256,
        kv_capacity_tokens=11600,
    )
    answer = check("S202", run)
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"  # by mean lengths, which prompts in common would shorten
    assert "the KV pool is up to 80 % full" in [line.text for line in answer.evidence]


LONG_PREFILL = PrefillReport(
    seq=99,
    origin=Origin("server.log", 99),
    new_sequences=1,
    new_tokens=8192,
    running=29,
    pending_tokens=583214,
)
CLIFF = tuple(
    LoadLevel(origin=Origin("sweep.csv"), concurrency=n, running=n, tpot_ms=tpot_ms, pool_usage=pool)
    for n, tpot_ms, pool in ((7, 114.0, 0.924), (8, 440.0, 0.989))
)


@pytest.mark.parametrize(
    ("seen", "answer"),
    [({}, Fired), ({"prefills": (LONG_PREFILL,)}, Clear), ({"levels": CLIFF}, Clear)],
)
def test_nearest_rival_a_pool_that_throws_requests_out_is_left_to_s203(seen, answer):
    """A lost request whose prompt is computed again, or a time per token that jumps as the pool fills."""
    run = server([msgspec.structs.replace(FULL, context=600_000, pool_usage=1.0)])
    assert isinstance(check("S202", msgspec.structs.replace(run, **seen)), answer)
    assert isinstance(check("S203", msgspec.structs.replace(run, **seen)), Fired) is (answer is Clear)


@pytest.mark.parametrize(("pool", "kind"), [(0.97, Fired), (0.3, Clear)])
def test_a_table_may_state_the_pool_s_use_at_the_load(pool, kind):
    """Beside a lighter level whose pool was full of other requests, and a log that does not tell."""
    rows = ((10, 10, 0.99), (64, 30, pool))
    levels = tuple(
        msgspec.structs.replace(
            level(concurrency, 100 * running, 6.2, 60), running=running, pool_usage=use, requests=200
        )
        for concurrency, running, use in rows
    )
    log = [Stage(running=n, step_ms=6.0, queued=queued, pool_usage=None) for n, queued in ((10, 0), (30, 34))]
    assert isinstance(check("S202", server(log, levels=levels, max_running=256)), kind)


@pytest.mark.parametrize(("pool", "kind"), [(0.97, Fired), (0.3, Clear)])
def test_the_pool_s_gauge_while_the_load_ran_is_enough(pool, kind):
    """Without a log; beside a lighter level, over which the gauge read full."""
    levels = [
        msgspec.structs.replace(level(n, tok_s, tpot_ms, ttft_ms), start_s=start_s, end_s=start_s + 10.0)
        for n, tok_s, tpot_ms, ttft_ms, start_s in ((10, 1500, 6.2, 60, 0.0), (64, 4000, 7.5, 1100, 20.0))
    ]
    scrapes = tuple(
        EngineMetrics(
            origin=Origin("metrics.txt"), time_s=time_s, running=running, queued=queued, pool_usage=use
        )
        for start_s, running, queued, use in ((0.0, 10.0, 0.0, 0.99), (20.0, 30.0, 34.0, pool))
        for time_s in (start_s + 3.0, start_s + 5.0, start_s + 7.0)
    )
    run = msgspec.structs.replace(server([], levels=levels, max_running=256), metrics=scrapes)
    assert isinstance(check("S202", run), kind)


@pytest.mark.parametrize(("pool", "kind"), [(None, Fired), (0.3, Clear)])
def test_its_size_over_the_mean_length_counts_unless_the_pool_is_seen_to_be_half_empty(pool, kind):
    """Requests may hold less than their own lengths: a prefix in common is kept once."""
    stage = Stage(running=30, step_ms=6.0, queued=34, pool_usage=pool)
    client = msgspec.structs.replace(level(64, 4000, 6.2, 1200), start_s=0.0, end_s=5.0)
    run = server([stage], levels=[client], max_running=256, kv_capacity_tokens=11_600)
    assert isinstance(check("S202", run), kind)


def test_clear_with_room_in_the_pool():
    assert isinstance(check("S202", server([Stage(running=8, step_ms=5.1, queued=56)], max_running=8)), Clear)


def test_clear_says_how_full_the_pool_is_where_that_was_read():
    read = check("S202", server([Stage(running=8, step_ms=5.1, queued=56, pool_usage=0.04)], max_running=8))
    assert read.reason == "the KV pool is at most 4.0 % full"
    unread = Stage(running=8, step_ms=5.1, queued=56, pool_usage=None)
    client = msgspec.structs.replace(level(64, 1465, 5.1, 4945), start_s=0.0, end_s=5.0)
    by_size = check("S202", server([unread], levels=[client], max_running=8, kv_capacity_tokens=90_000))
    assert by_size.reason == "the KV pool has room"


@pytest.mark.parametrize(
    "run", [Run(), server([Stage(running=30, step_ms=6.0, queued=None, pool_usage=0.97)])]
)
def test_cannot_tell_whether_a_pool_holds_requests_back_that_nobody_counted(run):
    answer = check("S202", run)
    assert isinstance(answer, CannotTell)
    assert "queue" in answer.needs


def test_a_full_pool_without_a_queue_is_clear():
    assert isinstance(
        check("S202", server([Stage(running=30, step_ms=6.0, queued=0, pool_usage=0.97)])), Clear
    )


def test_cannot_tell_without_pool_use():
    run = server([Stage(running=8, step_ms=5.1, queued=56, pool_usage=None)], max_running=8)
    assert isinstance(check("S202", run), CannotTell)


def _full(running: int, offered: int, tok_s: float):
    """A full pool at so many of the streams, in steps of 18 ms."""
    stage = Stage(running=running, step_ms=18.0, queued=offered - running, pool_usage=0.98, lines=9)
    client = msgspec.structs.replace(level(offered, tok_s, 18.5, 900), start_s=0.0, end_s=9.0)
    return check("S202", server([stage], levels=[client], max_running=256, kv_capacity_tokens=12000))


def test_only_suspected_where_the_slow_end_of_the_gain_is_under_a_tenth():
    assert _full(30, 64, 1500.0).status == "confirmed"
    nearly_all = _full(86, 100, 3600.0)
    assert isinstance(nearly_all, Fired)
    assert nearly_all.gain.low < 3600 / 0.9 < nearly_all.gain.tok_s
    assert nearly_all.status == "suspected"


@pytest.mark.parametrize("tok_s", [1500.0, 1620.0, 1660.0])
def test_the_ends_of_the_gain_hold_its_middle(tok_s):
    """However little the rate leaves a request beside its steps: 5.7, 1.9 and 0.7 ms, where its prompt needs 4.1."""
    gain = _full(30, 64, tok_s).gain
    assert gain.low <= gain.tok_s <= gain.high
