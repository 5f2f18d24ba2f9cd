"""One clock for a log without a year and a client with one."""

from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport, PrefillReport, SchedulerEvent

T = TypeVar("T", DecodeReport, PrefillReport, SchedulerEvent)
NO_YEAR = 1972
"""Where readers put a log that prints none."""


def in_one_year(run: Run) -> Run:
    """The run with its log in the year of its client levels, where the log prints none and the client knows it."""
    starts = [level.start_s for level in run.levels if level.start_s is not None]
    times = [report.time_s for report in run.decodes if report.time_s is not None]
    times += [report.time_s for report in run.prefills if report.time_s is not None]
    if not starts or not times:
        return run
    first, year = datetime.fromtimestamp(min(times), UTC), datetime.fromtimestamp(min(starts), UTC).year
    if first.year != NO_YEAR or year == NO_YEAR or (first.month, first.day) == (2, 29):
        return run
    shift_s = (first.replace(year=year) - first).total_seconds()

    def shifted(records: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(
            record
            if record.time_s is None
            else msgspec.structs.replace(record, time_s=record.time_s + shift_s)
            for record in records
        )

    return msgspec.structs.replace(
        run, decodes=shifted(run.decodes), prefills=shifted(run.prefills), events=shifted(run.events)
    )
