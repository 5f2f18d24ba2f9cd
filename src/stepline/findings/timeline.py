"""The load over time for people to look at: scheduler lines and GPU samples in the same bins of one clock.

Drawn, never judged: rules use windows and plateaus, not these means.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from stepline.evidence.gpu import GpuSample
from stepline.evidence.run import Run
from stepline.findings.detail import Series, Timeline, TimelineMark
from stepline.model.measure.gpu_use import align_clocks, working_gpus
from stepline.model.measure.log_clock import clock_time
from stepline.model.measure.timeline import Interval, log_span, profiler_intervals
from stepline.model.picture.picture import Picture

BINS = 120
"""A chart on a phone is about 360 pixels wide: three for each bin."""
FINEST_S = 1.0
"""Logs print whole seconds; finer bins would be empty by rounding."""
MAX_MARKS = 40


class _Quantity(NamedTuple):
    field: str
    name: str
    unit: str


_SCHEDULER = (
    _Quantity("running", "running batch", "requests"),
    _Quantity("queued", "queued", "requests"),
    _Quantity("tok_s", "decode rate", "tok/s"),
    _Quantity("pool_usage", "KV pool used", "share"),
)
_GPU = (
    _Quantity("graphics_busy", "GPU busy", "share"),
    _Quantity("sm_busy", "SMs busy", "share"),
    _Quantity("tensor_busy", "tensor pipe busy", "share"),
    _Quantity("dram_busy", "memory busy", "share"),
    _Quantity("power_w", "power", "W"),
    _Quantity("sm_clock_mhz", "SM clock", "MHz"),
)


def timeline(picture: Picture) -> Timeline | None:
    """The run in at most `BINS` bins; None when nothing in it carries a time."""
    run = picture.run
    samples: Sequence[GpuSample] = align_clocks(run.gpu_samples, log_span(picture.plateaus))
    if not run.decodes:
        samples = run.gpu_samples
    span = _span(run.decodes or samples)
    if span is None:
        return None
    bin_s = max(FINEST_S, span.duration_s / (BINS - 1))
    per_rank = " of a rank" if len({report.dp for report in run.decodes}) > 1 else ""
    series = [
        *_series(run.decodes, _SCHEDULER, per_rank, span, bin_s),
        *_series(working_gpus(samples), _GPU, "", span, bin_s),
    ]
    marks = sorted(_marks(run, span), key=lambda mark: mark.start_s)
    return Timeline(
        starts=clock_time(run, span.start_s),
        bin_s=bin_s,
        series=tuple(series),
        marks=tuple(marks[:MAX_MARKS]),
    )


def _span(records: Iterable[Any]) -> Interval | None:
    times = [record.time_s for record in records if record.time_s is not None]
    return Interval(min(times), max(times)) if times else None


def _series(
    records: Sequence[Any], quantities: Sequence[_Quantity], whose: str, span: Interval, bin_s: float
) -> Iterable[Series]:
    """The mean of each quantity in each bin, for the quantities that any record in the span states."""
    inside = [r for r in records if r.time_s is not None and span.start_s <= r.time_s <= span.end_s]
    bins = int(span.duration_s / bin_s) + 1
    for quantity in quantities:
        found: dict[int, list[float]] = defaultdict(list)
        for record in inside:
            value = getattr(record, quantity.field)
            if value is not None:
                found[int((record.time_s - span.start_s) / bin_s)].append(value)
        if found:
            yield Series(
                name=quantity.name + whose,
                unit=quantity.unit,
                source=inside[0].origin.file,
                values=tuple(statistics.fmean(found[at]) if at in found else None for at in range(bins)),
            )


def _marks(run: Run, span: Interval) -> Iterable[TimelineMark]:
    for interval in profiler_intervals(run):
        if interval.overlaps(span):
            yield TimelineMark(
                text="profiler running",
                start_s=max(0.0, interval.start_s - span.start_s),
                end_s=min(span.end_s, interval.end_s) - span.start_s,
            )
    for event in run.events:
        told = event.kind not in ("profile-start", "profile-end")
        if told and event.time_s is not None and span.start_s <= event.time_s <= span.end_s:
            at = event.time_s - span.start_s
            yield TimelineMark(text=event.kind, start_s=at, end_s=at)
