"""The summary of a level, from records whose truth is known."""

from array import array

import msgspec
import pytest

from stepline.evidence.load import LoadLevel
from stepline.evidence.origin import Origin
from stepline.sources.load.answer import End, Record
from stepline.sources.load.failures import failures
from stepline.sources.load.health import Effort, health
from stepline.sources.load.level import LevelPlan
from stepline.sources.load.stream_counts import Seen
from stepline.sources.load.summary import summarise
from tests.unit.sources.load.engine import serve, step_s

CLOSED = LevelPlan(concurrency=2, input_tokens=64, output_tokens=10, seconds=10.0)


def record(
    sent_s: float, first_s: float, chunks: list[int], *, gap_s: float = 0.1, end: End = "ok"
) -> Record:
    times = array("d", (first_s + gap_s * index for index in range(len(chunks))))
    return Record(
        stream=0,
        asked=sum(chunks),
        due_s=sent_s - 0.002,
        sent_s=sent_s,
        ended_s=10.0 if end == "cut" else (times[-1] if times else sent_s),
        end=end,
        times=times.tobytes(),
        tokens=array("d", chunks).tobytes(),
        prompt_tokens=60,
        cached_tokens=15,
    )


def summary(records: list[Record], plan: LevelPlan = CLOSED) -> LoadLevel:
    seen = [Seen(each) for each in records]
    return summarise(plan, seen, (0.0, 10.0), 1000.0, Origin("client.jsonl"), ids=True)


def test_a_level_of_two_streams() -> None:
    level = summary(
        [
            record(0.0, 1.0, [1] * 50),  # ends at 5.9
            record(0.0, 2.0, [2, *[4] * 20], gap_s=0.2),  # full from 2.0 on; ends at 6.0
            record(6.0, 6.5, [1] * 36, end="cut"),  # last token at 10.0
        ]
    )
    assert level.tok_s == pytest.approx((39 + 80 + 36) / 8)
    assert level.decoding == pytest.approx((3.9 + 4.0 + 3.5) / 8)
    assert level.in_flight == pytest.approx((3.9 + 4.0 + 4.0) / 8)
    assert level.ttft_ms == pytest.approx(500), "of requests sent while the batch was full"
    assert level.tpot_ms == pytest.approx((100 + 50) / 2)
    assert level.tpot_p50_ms == pytest.approx(75)
    assert level.tpot_p99_ms == pytest.approx(99.5)
    assert level.itl_ms == pytest.approx(100), "the median over 74 gaps of 100 ms and 20 of 50 ms a token"
    assert level.chunk_gap_ms == pytest.approx(100)
    assert level.e2e_ms == pytest.approx((5900 + 6000) / 2)
    assert level.output_tokens == pytest.approx((50 + 82) / 2)
    assert level.requests_s == pytest.approx(2 / 8)
    assert (level.requests, level.failed, level.duration_s) == (2, 0, 10.0)
    assert (level.start_s, level.end_s) == (1000.0, 1010.0)
    assert level.client_queue_ms == pytest.approx(2)
    assert level.input_tokens == 60
    assert level.cached_share == pytest.approx(0.25)
    assert level.tool == "stepline"


def test_a_first_round_alone_is_no_time_to_first_token_of_a_steady_load() -> None:
    level = summary([record(0.0, first, [1] * 90, end="cut") for first in (0.5, 1.0)])
    assert (level.ttft_ms, level.ttft_p99_ms) == (None, None)
    assert level.first_round_ms == pytest.approx(1000)
    alone = LevelPlan(concurrency=1, input_tokens=64, output_tokens=90, seconds=10)
    assert summary([record(0.0, 0.5, [1] * 90, end="cut")], alone).ttft_ms == pytest.approx(500)


def test_without_anything_everything_is_missing() -> None:
    nothing = [
        msgspec.structs.replace(record(0.0, 0.0, [], end="status"), prompt_tokens=None, cached_tokens=None)
    ]
    level = summary(nothing)
    assert (level.requests, level.failed) == (0, 1)
    assert level.input_tokens == 64
    for name in (
        "tok_s",
        "tpot_ms",
        "ttft_ms",
        "itl_ms",
        "e2e_ms",
        "output_tokens",
        "decoding",
        "cached_share",
    ):
        assert getattr(level, name) is None, name


def test_a_window_too_short_for_a_rate_is_none() -> None:
    level = summary([record(0.0, 1.0, [1] * 90, end="cut"), record(0.0, 9.6, [1] * 5, end="cut")])
    assert level.tok_s is None
    assert (level.ttft_ms, level.first_round_ms) == (None, pytest.approx(9600))


def test_a_stream_that_miscounts_leaves_no_rate() -> None:
    fine = [record(0.0, 1.0, [1] * 80), record(0.0, 1.0, [1] * 80)]
    assert summary(fine).tok_s is not None
    lied = msgspec.structs.replace(fine[1], end="miscounted")
    assert summary([fine[0], fine[0], lied]).tok_s is None


def test_the_rate_of_a_capped_server_is_its_batch_over_its_step() -> None:
    lengths = [[400 + 100 * stream, *[400] * 20] for stream in range(8)]
    for cap in (4, 8):
        seen = serve(lengths, cap=cap, pieces=1, piece_s=0.001, mixed=False, per_event=1, end_s=8.0)
        plan = msgspec.structs.replace(CLOSED, concurrency=8)
        level = summarise(plan, seen, (0.0, 8.0), 0.0, Origin("client.jsonl"), ids=True)
        assert level.tok_s == pytest.approx(cap / step_s(cap), rel=0.03)
        assert level.decoding == pytest.approx(cap, rel=0.03)
        assert level.in_flight == pytest.approx(8, rel=0.01)


def test_an_open_loop_counts_from_its_first_finish() -> None:
    plan = LevelPlan(request_rate_s=1.0, input_tokens=64, output_tokens=10, seconds=10.0)
    level = summary([record(0.5 * n, 0.5 * n + 0.1, [1] * 20, gap_s=0.1) for n in range(16)], plan)
    assert level.requests_s == pytest.approx(15 / 8)  # the first ends at 2.0, the last at 9.5
    before = 20 + 15 + 10 + 5  # tokens of the first four up to 2.0
    assert level.tok_s == pytest.approx((16 * 20 - before) / 8)


def test_failures_are_counted_by_kind_and_the_first_is_told() -> None:
    ends: list[End] = [
        "ok",
        "cut",
        "hung",
        "status",
        "status",
        "error",
        "miscounted",
        "refused",
        "closed",
        "garbled",
    ]
    records = [
        msgspec.structs.replace(
            record(0.0, 1.0, [1]), end=end, ended_s=9.0 - index, words=f"<{end}>" * 50, status=429
        )
        for index, end in enumerate(ends)
    ]
    counted = failures(records)
    assert counted.status == {429: 2}
    assert (counted.refused, counted.closed, counted.garbled, counted.hung) == (1, 1, 1, 1)
    assert (counted.miscounted, counted.error) == (1, 1)
    assert counted.first is not None
    assert counted.first.startswith("garbled: <garbled>")
    assert len(counted.first) == 200


def test_health_is_of_the_worst_process() -> None:
    lags = array("d", [0.001] * 99 + [0.5])
    one = Effort(cpu_s=1.0, wall_s=2.0, tokens=1000, lags=lags.tobytes())
    two = Effort(cpu_s=0.2, wall_s=2.0, tokens=200, lags=array("d", [0.002] * 10).tobytes())
    told = health([one, two])
    assert told.cpu_share == 0.5
    assert told.us_per_token == pytest.approx(1000)
    assert told.lag_p50_ms == pytest.approx(2.0)
    assert told.lag_p99_ms == pytest.approx(5.99)
    assert told.processes == 2
    assert health([Effort(cpu_s=0.1, wall_s=1.0, tokens=0, lags=b"")]).us_per_token is None
