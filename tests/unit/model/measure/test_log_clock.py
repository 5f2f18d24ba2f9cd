from datetime import UTC, datetime

import msgspec
import pytest

from stepline.model.measure.log_clock import in_one_clock, in_one_year
from tests.rules.server import Stage, level, server


def at(year: int, second: int) -> float:
    return datetime(year, 11, 29, 22, 20, second, tzinfo=UTC).timestamp()


def recorded(log_year: int):
    run = server([Stage(running=8, step_ms=5.0)], levels=[level(8, 1450, 5.1, 60)])
    decodes = tuple(
        msgspec.structs.replace(decode, time_s=at(log_year, n)) for n, decode in enumerate(run.decodes)
    )
    levels = tuple(
        msgspec.structs.replace(each, start_s=at(2026, 0), end_s=at(2026, 9)) for each in run.levels
    )
    return msgspec.structs.replace(run, decodes=decodes, levels=levels)


def test_a_log_without_a_year_moves_to_the_clients():
    assert [decode.time_s for decode in in_one_year(recorded(1972)).decodes][:2] == [at(2026, 0), at(2026, 1)]


@pytest.mark.parametrize("year", [2025, 2026])
def test_a_log_with_a_year_stays(year):
    run = recorded(year)
    assert in_one_year(run) is run


def zoned(hours: float, tool: str | None = "stepline"):
    """A recording whose log prints another time zone than the client's UTC."""
    run = recorded(2026)
    decodes = tuple(
        msgspec.structs.replace(decode, time_s=decode.time_s + 3600 * hours) for decode in run.decodes
    )
    levels = tuple(msgspec.structs.replace(each, tool=tool) for each in run.levels)
    return msgspec.structs.replace(run, decodes=decodes, levels=levels)


@pytest.mark.parametrize("hours", [-8, -3.5, 0, 2, 5.75, 14])
def test_a_log_in_local_time_moves_to_the_clients_zone(hours):
    times = [decode.time_s for decode in in_one_clock(zoned(hours)).decodes]
    assert times[:2] == [at(2026, 0), at(2026, 1)]


def test_a_log_that_ended_long_before_stays():
    run = zoned(-0.1)
    assert in_one_clock(run) is run


def test_only_a_live_recording_tells_the_zone():
    run = zoned(2, tool="sglang")
    assert in_one_clock(run) is run
