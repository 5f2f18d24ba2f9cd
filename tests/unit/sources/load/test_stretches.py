"""Stretches give the step of their batch and nothing else, whatever the engine does with prompts."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.evidence.scheduler import DecodeReport
from stepline.sources.load.stream_counts import Seen
from stepline.sources.load.stretches import stretches
from tests.unit.sources.load.engine import Request, serve, step_s

LENGTHS = st.lists(st.lists(st.integers(1, 150), min_size=1, max_size=3), min_size=1, max_size=10)


def found(all_seen: list[Seen], end_s: float) -> tuple[DecodeReport, ...]:
    return stretches(all_seen, end_s, 1_700_000_000.0, "client.jsonl")


@st.composite
def levels(draw: st.DrawFn) -> tuple[list[Seen], int, float]:
    """Records, streams, and the end of a level on some engine."""
    lengths, end_s = draw(LENGTHS), draw(st.floats(0.1, 3.0))
    all_seen = serve(
        lengths,
        cap=draw(st.integers(1, 12)),
        pieces=draw(st.integers(1, 20)),
        piece_s=draw(st.floats(0.002, 0.1)),
        mixed=draw(st.booleans()),
        per_event=draw(st.sampled_from([1, 1, 3, 8])),
        end_s=end_s,
    )
    return all_seen, len(lengths), end_s


@given(level=levels())
def test_every_stretch_gives_the_decode_step_of_its_batch(level: tuple[list[Seen], int, float]) -> None:
    all_seen, streams, end_s = level
    for report in found(all_seen, end_s):
        assert report.tok_s is not None
        assert report.running / report.tok_s == pytest.approx(step_s(report.running), rel=1e-9)
        assert report.instrument == "interval"
        assert report.prefill_tok_s == 0.0
        assert report.queued is not None
        assert report.running + report.queued <= streams
        assert report.time_s is not None
        assert report.time_s - 1_700_000_000.0 <= end_s + 1e-6


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("per_event", [1, 8])
def test_a_full_batch_and_a_capped_one_are_found(per_event: int, *, mixed: bool) -> None:
    # Answers of 100 tokens, the first ones 100 and then spread, as the client sends them.
    lengths = [[100 + 100 * (stream + 1) // 8, *[100] * 20] for stream in range(8)]
    for cap in (8, 3):
        seen = serve(lengths, cap=cap, pieces=2, piece_s=0.01, mixed=mixed, per_event=per_event, end_s=3.0)
        reports = found(seen, 3.0)
        assert {(report.running, report.queued) for report in reports} >= {(cap, 8 - cap)}
        assert [report.seq for report in reports] == list(range(len(reports)))
        assert [report.origin.line for report in reports] == [report.seq + 1 for report in reports]


def test_a_stream_that_the_engine_put_off_spoils_its_stretch() -> None:
    def steady(stream: int, pause: range) -> Seen:
        request = Request(stream, 200, 0.0)
        for token in range(1, 200):
            if token not in pause:
                request.total += 1
                request.tell(0.01 * token, 1)
        return Seen(request.record(2.0))

    assert len(found([steady(0, range(0)), steady(1, range(0))], 2.0)) == 1
    assert found([steady(0, range(0)), steady(1, range(50, 80))], 2.0) == ()


def test_what_follows_a_failure_is_left_out() -> None:
    request, other = Request(0, 200, 0.0), Request(1, 200, 0.0)
    for token in range(1, 200):
        for each in (request, other) if token < 100 else (request,):
            each.total += 1
            each.tell(0.01 * token, 1)

    failed = msgspec.structs.replace(other.record(0.995), end="garbled")
    reports = found([Seen(request.record(2.0)), Seen(failed)], 2.0)
    assert [report.running for report in reports] == [2]
    lied = msgspec.structs.replace(failed, end="miscounted")
    assert found([Seen(request.record(2.0)), Seen(lied)], 2.0) == ()
