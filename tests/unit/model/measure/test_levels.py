import msgspec
import pytest

from stepline.evidence.load import LoadLevel
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport
from stepline.model.measure.levels import offered_levels
from stepline.model.measure.timeline import plateaus
from tests.rules.server import Stage, level, picture, server


def _level(**numbers):
    return LoadLevel(origin=Origin("bench.json"), **numbers)


def _one(given: LoadLevel):
    return offered_levels(Run(levels=(given,)), ())[0]


def test_a_balanced_level_is_evidence():
    assert _one(level(64, 6528, 7.7, 272)).disturbed is None


def test_a_level_whose_streams_are_missing_is_not():
    assert "stood still" in _one(level(32, 3040, 5.8, 190)).disturbed


def test_two_rounds_of_requests_miss_half_a_round_by_themselves():
    numbers = {
        "concurrency": 256,
        "tok_s": 2132.2,
        "tpot_ms": 30.04,
        "ttft_ms": 66040.6,
        "output_tokens": 1024,
    }
    assert _one(_level(**numbers, requests=512)).disturbed is None
    assert _one(_level(**numbers, requests=51200)).disturbed is not None


def test_a_level_without_a_rate_is_missing_not_zero():
    given = _one(_level(concurrency=8, tpot_ms=7.7))
    assert given.tok_s is None
    assert "no rate" in given.disturbed


def test_the_batch_by_rate_and_time_per_token():
    route = _one(level(64, 1465, 5.096, 4945)).running
    assert route.route == "rate × time per token"
    assert 7.4 < route.running < 7.5


def test_no_more_run_than_the_client_holds_open():
    assert _one(level(48, 192, 304.7, 438)).running.running == 48


def test_the_log_outweighs_the_clients_arithmetic():
    run = server([Stage(running=8, step_ms=5.1, queued=56)], levels=[level(64, 1465, 5.1, 4945)])
    matched = picture(run).levels[0]
    assert [route.route for route in matched.routes] == ["scheduler log", "rate × time per token"]
    assert (matched.running.running, matched.queued) == (8, 56)


def test_a_gauge_that_once_counts_others_too_comes_behind_the_log():
    own = msgspec.structs.replace(level(8, 1465, 5.1, 20), start_s=0.0, end_s=4.0)
    run = server([Stage(running=8, step_ms=5.1)], levels=[own])
    for most, first in ((8, "engine's gauge"), (9, "scheduler log")):
        scrapes = tuple(
            EngineMetrics(origin=Origin("metrics.txt"), time_s=time_s, running=running)
            for time_s, running in ((1.5, 8), (2.5, most), (3.5, 8))
        )
        assert picture(msgspec.structs.replace(run, metrics=scrapes)).levels[0].running.route == first


def test_routes_that_differ_are_doubted():
    run = server([Stage(running=64, step_ms=5.1)], levels=[level(64, 1465, 5.1, 4945)])
    assert any(doubt.topic == "running-batch" for doubt in picture(run).doubts)


def test_a_log_without_queue_matches_the_only_level():
    run = server([Stage(running=8, step_ms=286, queued=None)], levels=[_level(concurrency=16, tok_s=28)])
    assert picture(msgspec.structs.replace(run)).levels[0].running.running == 8


@pytest.mark.parametrize(
    ("instrument", "route"), [("interval", "scheduler log"), ("window", "rate × time per token")]
)
def test_lines_over_ten_seconds_cover_those_before_them(instrument, route):
    """Two lines of a level of 22 s, ten seconds apart, that count 51 and 47 of its 64 requests."""
    lines = tuple(
        DecodeReport(
            seq=seq,
            origin=Origin("server.log", seq),
            time_s=10.0 * seq,
            running=24,
            queued=queued,
            instrument=instrument,
        )
        for seq, queued in ((1, 27), (2, 23))
    )
    client = msgspec.structs.replace(level(64, 2989, 6.0, 1960), start_s=0.0, end_s=22.0)
    run = Run(decodes=lines, levels=(client,))
    assert offered_levels(run, plateaus(run))[0].running.route == route
