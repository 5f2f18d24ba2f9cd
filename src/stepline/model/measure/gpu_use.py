"""What the GPU did while a load ran, from sampled counters: the only busy share that no profiler disturbed."""

import statistics
from collections.abc import Sequence

import msgspec

from stepline.evidence.gpu import GpuSample
from stepline.model.measure.timeline import Interval
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    min_samples = Threshold(
        4,
        "samples in a plateau",
        why="Fewer say nothing: each is half a second, and the first and last second of a plateau are ramp.",
    )
    working = Threshold(
        0.5,
        "busy share over the busiest GPU's",
        why="A GPU this busy serves too: ranks of one server differ by less.",
    )
    covered = Threshold(
        0.8,
        "share of the shorter span",
        why="What log and samples must have in common before one clock is shifted onto the other.",
    )


class GpuUse(msgspec.Struct, frozen=True, kw_only=True):
    """Medians over the samples of one load; each a share of 1, None where not sampled."""

    samples: int
    graphics_busy: float | None
    sm_busy: float | None
    tensor_busy: float | None
    dram_busy: float | None
    fp32_busy: float | None
    power_w: float | None
    sm_clock_mhz: float | None
    file: str


def gpu_use(samples: Sequence[GpuSample], during: Interval | None) -> GpuUse | None:
    """Medians over the samples inside a plateau, its first second left out: samples look back."""
    if during is None:
        return None
    inside = [s for s in samples if s.time_s is not None and during.start_s + 1 <= s.time_s <= during.end_s]
    inside = working_gpus(inside)
    if len(inside) < T.min_samples:
        return None

    def median(field: str) -> float | None:
        values = [getattr(sample, field) for sample in inside]
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    return GpuUse(
        samples=len(inside),
        graphics_busy=median("graphics_busy"),
        sm_busy=median("sm_busy"),
        tensor_busy=median("tensor_busy"),
        dram_busy=median("dram_busy"),
        fp32_busy=median("fp32_busy"),
        power_w=median("power_w"),
        sm_clock_mhz=median("sm_clock_mhz"),
        file=inside[0].origin.file,
    )


def working_gpus(samples: Sequence[GpuSample]) -> list[GpuSample]:
    """The samples of the GPUs that served: a host's idle neighbours say nothing about this server."""
    busy: dict[int, float] = {}
    for gpu in {sample.gpu for sample in samples}:
        values = [s.graphics_busy for s in samples if s.gpu == gpu and s.graphics_busy is not None]
        busy[gpu] = statistics.median(values) if values else 0.0
    most = max(busy.values(), default=0.0)
    return [sample for sample in samples if busy[sample.gpu] >= T.working * most]


def align_clocks(samples: Sequence[GpuSample], log: Interval | None) -> tuple[GpuSample, ...]:
    """Shift samples into the log's time zone when the two clocks differ by whole quarter hours.

    A log writes local time and samples are in UTC; the shift is the one, of those that exist (−12 to +14 hours),
    that puts the samples over the log. Samples that no shift brings there are left out.
    """
    times = [sample.time_s for sample in samples if sample.time_s is not None]
    if log is None or not times:
        return ()
    span = Interval(min(times), max(times))
    for quarter in sorted(range(-48, 57), key=abs):
        shift = quarter * 900.0
        moved = Interval(span.start_s + shift, span.end_s + shift)
        common = min(moved.end_s, log.end_s) - max(moved.start_s, log.start_s)
        if shift == 0 and moved.overlaps(log):
            return tuple(samples)
        if common >= T.covered * max(1.0, min(moved.duration_s, log.duration_s)):
            return tuple(
                msgspec.structs.replace(sample, time_s=sample.time_s + shift)
                for sample in samples
                if sample.time_s is not None
            )
    return ()
