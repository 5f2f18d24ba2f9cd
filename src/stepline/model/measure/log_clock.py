"""One clock for a log that prints local time, perhaps without a year, and a client that knows both."""

from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport, PrefillReport, SchedulerEvent
from stepline.model.measure.windows import OWN_TOOL, recorded_since
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    quarter_s = Threshold(
        900.0,
        "s",
        why="Time zones differ by whole quarters of an hour.",
        source="IANA time zones",
    )
    widest_s = Threshold(
        15 * 3600.0,
        "s",
        why="Between any zone and UTC.",
        source="IANA time zones: at most 14 hours",
    )
    end_s = Threshold(
        120.0,
        "s",
        why="Between the last level's end and the log's last line in a live recording, which copies "
        "the log until it ends: only a profile may follow the levels.",
    )


Line = TypeVar("Line", DecodeReport, PrefillReport, SchedulerEvent)
NO_YEAR = 1972
"""Where readers put a log that prints none."""


def in_one_clock(run: Run) -> Run:
    """The run with its log in the client's year and time zone.

    Only a live recording tells the zone: its log and its levels end together.
    """
    run = in_one_year(run)
    ends = [level.end_s for level in run.levels if level.tool == OWN_TOOL and level.end_s is not None]
    times = _times(run)
    if not ends or not times:
        return run
    apart = max(ends) - max(times)
    zone_s = T.quarter_s * round(apart / T.quarter_s)
    if not zone_s or abs(zone_s) > T.widest_s or abs(apart - zone_s) > T.end_s:
        return run
    return _shifted(run, zone_s)


def in_one_year(run: Run) -> Run:
    """The run with its log in the year of its client levels, where the log prints none and the client knows it."""
    starts = [level.start_s for level in run.levels if level.start_s is not None]
    times = _times(run)
    if not starts or not times:
        return run
    first, year = datetime.fromtimestamp(min(times), UTC), datetime.fromtimestamp(min(starts), UTC).year
    if first.year != NO_YEAR or year == NO_YEAR or (first.month, first.day) == (2, 29):
        return run
    return _shifted(run, (first.replace(year=year) - first).total_seconds())


def clock_time(run: Run, time_s: float) -> str:
    """A time of the run for people, with its zone: known where a live recording's client told it."""
    zone = "by the log's clock" if recorded_since(run) is None else "UTC"
    return f"{datetime.fromtimestamp(time_s, UTC):%H:%M:%S} {zone}"


def _times(run: Run) -> list[float]:
    times = [report.time_s for report in run.decodes if report.time_s is not None]
    return times + [report.time_s for report in run.prefills if report.time_s is not None]


def _shifted(run: Run, shift_s: float) -> Run:
    def shifted(records: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(
            record
            if record.time_s is None
            else msgspec.structs.replace(record, time_s=record.time_s + shift_s)
            for record in records
        )

    return msgspec.structs.replace(
        run, decodes=shifted(run.decodes), prefills=shifted(run.prefills), events=shifted(run.events)
    )
