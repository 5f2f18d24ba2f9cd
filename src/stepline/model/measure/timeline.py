"""When what happened: the profiler's intervals and the plateaus of offered load that a log shows."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import msgspec

from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport, PrefillReport
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    interval_s = Threshold(
        10.0,
        "s",
        why="What a line over a fixed time covers.",
        source="VLLM_LOG_STATS_INTERVAL, vLLM's default",
    )
    peak_high = Threshold(
        1.25,
        "times the peak offered so far",
        why="A line that offers more begins another level.",
    )
    peak_low = Threshold(
        0.75,
        "times the peak offered so far",
        why="A line that offers less, with another running batch, begins another level.",
    )


class Interval(msgspec.Struct, frozen=True):
    """A stretch of time in seconds since the epoch, in the log's time zone."""

    start_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self.end_s - self.start_s

    def overlaps(self, other: "Interval") -> bool:
        """True when the two share a moment."""
        return self.start_s <= other.end_s and other.start_s <= self.end_s


class Plateau(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of log with one offered load: running plus queued requests over all ranks."""

    offered: float
    running: float
    """Median running batch over the decode lines, summed over data-parallel ranks."""
    queued: float | None
    time: Interval | None
    """From its first line to its last one."""
    reaches_back_s: float = 0.0
    """What the first line covers before it was printed."""
    pool_usage: float | None
    """Fullest KV pool seen, as a share of 1."""
    decode_lines: int
    prefill_tokens: int
    cached_tokens: int
    """Prompt tokens that were found in the prefix cache and not computed."""
    prefill_requests: int
    prefill_prompts: int
    """Of them, those whose last chunk was computed: a prompt in chunks counts once."""
    profiled: bool
    graph_share: float | None
    """Share of the decode lines that used a graph; None when they do not say."""


def profiler_intervals(run: Run) -> tuple[Interval, ...]:
    """From each `profile-start` to its end; an unfinished one lasts to the end of the log."""
    intervals, start = [], None
    ends = [report.time_s for report in run.decodes if report.time_s is not None]
    last = max(ends, default=None)
    for event in sorted(run.events, key=lambda event: event.seq):
        if event.kind == "profile-start":
            start = event.time_s
        elif event.kind == "profile-end" and start is not None and event.time_s is not None:
            intervals.append(Interval(start, event.time_s))
            start = None
    if start is not None and last is not None:
        intervals.append(Interval(start, last))
    return tuple(intervals)


def plateaus(run: Run) -> tuple[Plateau, ...]:
    """Group decode lines by offered load in order of time; a change of over a quarter begins a new plateau.

    The queue drains at the end of a level and fills at its start, and streams come and go, so the upper quartile of
    a group's offered load counts.
    """
    ranks = max(1, len({report.dp for report in run.decodes}))
    groups: list[list[DecodeReport]] = []
    peak = 0
    for report in sorted(run.decodes, key=lambda report: report.seq):
        if groups and _same_load(groups[-1][-1], peak, report):
            groups[-1].append(report)
            peak = max(peak, _offered(report))
        else:
            groups.append([report])
            peak = _offered(report)
    profiles = profiler_intervals(run)
    prefills = sorted(run.prefills, key=lambda report: report.seq)
    # A lone line between levels is a ramp; in a short excerpt it is all there is.
    kept = [group for group in groups if len(group) > 1] or groups
    return tuple(_plateau(group, ranks, _between(prefills, group), profiles) for group in kept)


def _between(prefills: Sequence[PrefillReport], group: Sequence[DecodeReport]) -> Sequence[PrefillReport]:
    """Prefills, in order of `seq`, that were admitted between a group's first line and its last one."""
    start = bisect_right(prefills, group[0].seq, key=lambda report: report.seq)
    return prefills[start : bisect_left(prefills, group[-1].seq, key=lambda report: report.seq)]


def log_span(logged: Sequence[Plateau]) -> Interval | None:
    """From the first plateau's start to the last one's end; None when the log carries no times."""
    times = [plateau.time for plateau in logged if plateau.time is not None]
    return Interval(min(t.start_s for t in times), max(t.end_s for t in times)) if times else None


def _same_load(last: DecodeReport, peak: int, report: DecodeReport) -> bool:
    """Whether a line goes on with the load of a group whose last line is `last` and whose most offered is `peak`."""
    return (
        report.running > 0
        and _offered(report) <= T.peak_high * peak
        and (_offered(report) >= T.peak_low * peak or report.running == last.running)
    )


def _offered(report: DecodeReport) -> int:
    return report.running + (report.queued or 0)


def _plateau(
    group: list[DecodeReport], ranks: int, prefills: Sequence[PrefillReport], profiles: Iterable[Interval]
) -> Plateau:
    times = [report.time_s for report in group if report.time_s is not None]
    time = Interval(min(times), max(times)) if times else None
    queued = [report.queued for report in group if report.queued is not None]
    return Plateau(
        offered=upper_quartile([_offered(report) for report in group]) * ranks,
        running=_median([report.running for report in group]) * ranks,
        queued=_median(queued) * ranks if queued else None,
        time=time,
        reaches_back_s=T.interval_s if group[0].instrument == "interval" else 0.0,
        pool_usage=max((r.pool_usage for r in group if r.pool_usage is not None), default=None),
        decode_lines=len(group),
        prefill_tokens=sum(p.new_tokens for p in prefills),
        cached_tokens=sum(p.cached_tokens or 0 for p in prefills),
        prefill_requests=sum(p.new_sequences for p in prefills),
        prefill_prompts=sum(p.new_sequences - bool(p.pending_tokens) for p in prefills),
        graph_share=_graph_share(group),
        profiled=time is not None and any(time.overlaps(interval) for interval in profiles),
    )


def _graph_share(group: list[DecodeReport]) -> float | None:
    flags = [report.graph for report in group if report.graph is not None]
    return sum(flags) / len(flags) if flags else None


def upper_quartile(values: Sequence[float]) -> float:
    """The value that a quarter of them reach or pass."""
    return float(sorted(values)[round(0.75 * (len(values) - 1))])


def _median(values: list[int]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return float(ordered[middle]) if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
