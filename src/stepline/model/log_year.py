"""A log that prints no year is read as of 1972; beside evidence that has one, it is moved into that year.

Without it nothing that a client or a GPU sampler saw meets the log's lines in time.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport, PrefillReport, SchedulerEvent

NO_YEAR = 1972
"""The year that stands for none (`evidence/scheduler.py`); no server of this kind ran in it."""

Record = TypeVar("Record", DecodeReport, PrefillReport, SchedulerEvent)


def with_year(run: Run) -> Run:
    """The run with its log in the year of its client levels, scrapes or GPU samples; as it is where none has a time."""
    dated: list[float | None] = [
        *(level.start_s for level in run.levels),
        *(scrape.time_s for scrape in run.metrics[:1]),
        *(sample.time_s for sample in run.gpu_samples[:1]),
    ]
    year = next((at.year for time_s in dated if time_s and (at := _date(time_s)).year != NO_YEAR), None)
    first = next((report.time_s for report in run.decodes if report.time_s is not None), None)
    if year is None or first is None or _date(first).year != NO_YEAR:
        return run
    shift_s = _date(first).replace(year=year).timestamp() - first
    return msgspec.structs.replace(
        run,
        decodes=_moved(run.decodes, shift_s),
        prefills=_moved(run.prefills, shift_s),
        events=_moved(run.events, shift_s),
    )


def _date(time_s: float) -> datetime:
    return datetime.fromtimestamp(time_s, UTC)


def _moved(records: Sequence[Record], shift_s: float) -> tuple[Record, ...]:
    return tuple(
        record
        if record.time_s is None or _date(record.time_s).year != NO_YEAR
        else msgspec.structs.replace(record, time_s=record.time_s + shift_s)
        for record in records
    )
