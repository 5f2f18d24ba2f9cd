import msgspec
import pytest

from stepline.evidence.load import LoadLevel
from stepline.evidence.origin import Origin
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, level, server

CAPPED = Stage(running=8, step_ms=5.1, queued=56)
ALONE = Stage(running=1, step_ms=4.97)


def test_fires_confirmed_when_the_batch_stands_at_the_cap_with_a_queue():
    run = server([ALONE, CAPPED], levels=[level(1, 197, 4.95, 24), level(64, 1465, 5.1, 4945)], max_running=8)
    answer = check("S201", run)
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert answer.gain is not None
    assert answer.gain.low < answer.gain.tok_s < answer.gain.high
    assert 3.8 < answer.gain.tok_s / 1465 < 5.3  # decode alone would say seven times
    assert any("S202" in ruled.rival for ruled in answer.ruled_out)


def test_off_by_one_below_the_cap_still_counts():
    assert isinstance(check("S201", server([Stage(running=7, step_ms=5.1, queued=50)], max_running=8)), Fired)


def test_suspected_without_the_cap():
    answer = check("S201", server([CAPPED]))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"


def test_clear_when_the_batch_varies_while_requests_wait():
    varying = server([Stage(running=n, step_ms=5.1, queued=24 - n, lines=2) for n in (14, 17, 20)])
    answer = check("S201", varying)
    assert isinstance(answer, Clear)
    assert "14 to 20" in answer.reason
    steady = server([Stage(running=n, step_ms=5.1, queued=24 - n, lines=2) for n in (17, 16, 17)])
    assert isinstance(check("S201", steady), Fired)


def test_clear_when_all_offered_requests_run():
    answer = check("S201", server([Stage(running=64, step_ms=6.6)], levels=[level(64, 6528, 7.7, 272)]))
    assert isinstance(answer, Clear)


def test_clear_when_the_kv_pool_is_full():
    run = server([Stage(running=8, step_ms=5.1, queued=56, pool_usage=0.97)], max_running=8)
    assert isinstance(check("S201", run), Clear)


def test_clear_well_below_the_cap():
    run = server([Stage(running=20, step_ms=5.1, queued=44)], max_running=256)
    assert isinstance(check("S201", run), Clear)


def test_cannot_tell_without_queue_and_offer():
    answer = check("S201", server([Stage(running=8, step_ms=5.1, queued=None)]))
    assert isinstance(answer, CannotTell)


def test_cannot_tell_why_eight_run_when_only_the_client_is_known():
    run = server(
        [Stage(running=8, step_ms=286, queued=None, pool_usage=None)],
        levels=[LoadLevel(origin=Origin("sweep.json"), concurrency=16, tok_s=28)],
        model=None,
    )
    answer = check("S201", run, gpu=None)
    assert isinstance(answer, CannotTell)
    assert "queue" in answer.needs


def test_suspected_from_a_benchmark_alone_when_requests_plainly_queue():
    # 64.0 of 256 run by rate × time per token, and first tokens take 66 s: cap or pool, nobody says.
    levels = [
        level(1, 173, 5.1, 670),
        LoadLevel(
            origin=Origin("bench.json"),
            concurrency=256,
            tok_s=2132,
            tpot_ms=30.0,
            ttft_ms=66040,
            input_tokens=level(1, 1, 1, 1).input_tokens,
            output_tokens=1024,
            requests=512,
        ),
    ]
    answer = check("S201", server([], levels=levels, model=None), gpu=None)
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert any("S202" in rival.rival for rival in answer.rivals)


def test_nearest_rival_requests_that_wait_nowhere_in_the_engine_are_held_by_no_cap():
    client = msgspec.structs.replace(level(48, 1900, 8.1, 700), start_s=0.0, end_s=5.0)
    answer = check("S201", server([Stage(running=40, step_ms=8.0, queued=0)], levels=[client]))
    assert isinstance(answer, Clear)
    assert "none waits in the engine" in answer.reason
    waiting = server([Stage(running=40, step_ms=8.0, queued=8)], levels=[client])
    assert isinstance(check("S201", waiting), Fired)


def test_no_prompt_is_promised_in_less_than_its_floor():
    """At 1,540 tok/s 8 streams leave 1.7 ms a request beside steps of 5.1 ms, where a prompt needs 4.1."""
    client = msgspec.structs.replace(level(64, 1540, 5.2, 4945), start_s=0.0, end_s=5.0)
    gain = check("S201", server([CAPPED], levels=[client], max_running=8)).gain
    assert pytest.approx(9000, rel=0.01) == 1000 * 64 * 128 / (64 * 4.1 + 127 * 5.1)
    assert gain.tok_s < 9000
    assert gain.low < gain.tok_s < gain.high


def test_the_pool_binds_next_only_where_it_holds_fewer_than_are_offered():
    """Requests of 384 tokens: 12,000 tokens of cache hold 31 of the 64 that are offered."""
    client = msgspec.structs.replace(level(64, 1465, 5.1, 4945), start_s=0.0, end_s=5.0)
    small, large = (
        check("S201", server([CAPPED], levels=[client], max_running=8, kv_capacity_tokens=tokens))
        for tokens in (12_000, 500_000)
    )
    assert "which holds 31 such requests" in small.gain.binds_next
    assert "KV pool" not in large.gain.binds_next
    assert small.gain.tok_s < large.gain.tok_s


def _varying(*batches: int):
    """Lines at 16 that vary while requests wait, without a known cap."""
    run = server([Stage(running=100, step_ms=5.0, queued=60, lines=len(batches))])
    lines = tuple(
        msgspec.structs.replace(line, running=n, queued=160 - n)
        for line, n in zip(run.decodes, batches, strict=True)
    )
    return check("S201", msgspec.structs.replace(run, decodes=lines))


@pytest.mark.parametrize(
    ("batches", "steady"),
    [
        ((100, 100, 104, 100, 100), True),
        ((100, 100, 106, 100, 100), False),
        ((100, 100, 100, 45, 100), True),
        ((100, 100, 100, 55, 100), False),
    ],
    ids=["within 5 %", "beyond 5 %", "another level", "the same level"],
)
def test_a_cap_holds_the_batch_at_one_number(batches, steady):
    answer = _varying(*batches)
    assert ("at one number" in getattr(answer, "reason", "")) is not steady


@pytest.mark.parametrize(("lines", "told"), [(2, False), (3, True)])
def test_two_lines_do_not_tell_that_a_batch_varies(lines, told):
    answer = _varying(*(100, 120, 110)[:lines])
    assert ("at one number" in getattr(answer, "reason", "")) is told
