"""Decode windows: the stretches of a log in which a step time can be read honestly.

A decode line reports the tokens since the previous decode line over the wall time since then, so a prefill, an
idle gap, a change of batch or a profiler in between sits inside that time. Only a line whose predecessor is a
decode line of the same rank with the same running batch, with nothing between the two, gives a step:
`step = running × accept length / rate` (SGLang `log_decode_stats`, all releases from 0.4.1 to 0.5.23).
Engines that print means over a fixed time (vLLM, ten seconds) give a step only where no prompt was computed in it;
one line per forward gives it as it stands.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport, PrefillReport, SchedulerEvent
from stepline.model.measure.client_health import overtaxed
from stepline.model.measure.interval_lines import Holds, held
from stepline.model.measure.levels import others_seen
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    same_batch = Threshold(
        0.06,
        "share of the batch",
        why="Batches this close are one level: requests come and go at the edges of a window.",
    )
    clock_s = Threshold(
        0.01,
        "s",
        why="A level's last stretch ends with the level; the two ends are the same moment, computed twice.",
    )
    cut_s = Threshold(
        1.5,
        "s",
        why="The log's clock has whole seconds, so a shorter window cannot be told from a cut.",
        source="SGLang's log format",
    )
    cut = Threshold(
        3,
        "times a window's usual time",
        why="A longer one was cut by a pause.",
    )
    interval_steps = Threshold(
        40,
        "decode steps",
        why="A line of the log covers so many where it does not say.",
        source="SGLang's decode_log_interval, the only default in any release read",
    )
    alike = Threshold(
        1.25,
        "times the median of windows that hold no prompt",
        why="A window that may hold one and takes no longer than this holds none that matters.",
    )
    one_batch = Threshold(
        0.5, "requests", why="Means of batches closer than half a request are one batch, however small."
    )


OWN_TOOL = "stepline"
"""The tool that live recordings name; others record levels without a log of the same time."""

Reason = Literal[
    "no rate",
    "prefill inside",
    "batch changed",
    "profiler running",
    "requests retracted",
    "kernels compiled",
    "start not seen",
    "first line after idle",
    "prefill counted later",
]


class DecodeWindow(msgspec.Struct, frozen=True, kw_only=True):
    """One valid window: mean step over `steps` forwards of `running` sequences of one rank."""

    origin: Origin
    seq: int
    time_s: float | None
    dp: int | None
    running: int
    queued: int | None
    step_ms: float
    accept_length: float
    speculative: bool
    """True when the line states an accept length, which engines do only while they speculate."""
    graph: bool | None
    pool_tokens: int | None
    count: int = 1
    """Windows of one kind that this one stands for."""


class MixedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A decode line of unchanged batch with prefill inside: `wall_ms` is wall time a step, prefill included."""

    origin: Origin
    running: int
    wall_ms: float
    prefill_tokens: int
    prefill_sequences: int
    graph: bool | None
    accept_length: float = 1.0


class Windows(msgspec.Struct, frozen=True, kw_only=True):
    """Valid windows, windows whose start was not seen, lines with prefill inside, and why lines were left out."""

    valid: tuple[DecodeWindow, ...]
    unverified: tuple[DecodeWindow, ...]
    bounded: tuple[DecodeWindow, ...]
    """Means over a fixed time with prefill inside: the step is at most theirs."""
    mixed: tuple[MixedLine, ...]
    discarded: dict[Reason, int]
    earlier: tuple[DecodeWindow, ...] = ()
    """Valid windows of the log from before a live recording drove its load: they tell since when, not how long."""
    by_client: bool = False
    """The valid windows are stretches that a client saw, because the log has none or has them at fewer levels."""

    @property
    def usable(self) -> tuple[DecodeWindow, ...]:
        """The valid windows, or where a pasted excerpt has none, those whose start was not seen."""
        return self.valid or self.unverified


def decode_windows(run: Run) -> Windows:
    """Sort every decode line into valid, unverified or left out with a reason."""
    valid: list[DecodeWindow] = []
    unverified: list[DecodeWindow] = []
    bounded: list[DecodeWindow] = []
    mixed: list[MixedLine] = []
    earlier: list[DecodeWindow] = []
    discarded: Counter[Reason] = Counter()
    since_s = recorded_since(run)
    for stream in _streams(run):
        mixed += _mixed_lines([record for record in stream if not before(record, since_s)])
        unsure: list[DecodeWindow] = []
        for report, reason in _judge(stream, _held(stream, run)):
            if before(report, since_s):
                earlier += [_window(report)] if reason is None else []
            elif reason is None:
                valid.append(_window(report))
            elif reason == "prefill counted later":
                unsure.append(_window(report))
            elif reason == "start not seen" and report.instrument == "window" and report.tok_s:
                unverified.append(_window(report))
                discarded[reason] += 1
            elif reason is not None:
                discarded[reason] += 1
                if report.instrument == "interval" and report.tok_s and report.running:
                    bounded.append(_window(report))
        alike, longer = _alike(unsure, valid)
        valid += alike
        bounded += longer
        if longer:
            discarded["prefill counted later"] += len(longer)
    seen = _stretches(run)
    by_client = _levels_covered(seen, run) > _levels_covered(valid, run) or (bool(seen) and not valid)
    return Windows(
        by_client=by_client,
        valid=seen if by_client else tuple(valid),
        unverified=tuple(unverified),
        bounded=tuple(bounded),
        mixed=tuple(mixed),
        earlier=tuple(earlier),
        discarded=dict(discarded),
    )


def recorded_since(run: Run) -> float | None:
    """When a live recording's first level began: what its log shows of earlier times is other people's load."""
    starts = [level.start_s for level in run.levels if level.tool == OWN_TOOL and level.start_s is not None]
    return min(starts, default=None)


def before(record: "Record", since_s: float | None) -> bool:
    """True for a record of earlier whole seconds: a log's clock has no finer ones."""
    return since_s is not None and record.time_s is not None and record.time_s < math.floor(since_s)


OF_A_LOAD = ("retraction", "disconnect", "jit-compile")
"""Events that belong to the requests of their time; a crash or a start concerns the server for as long as it lives."""


def of_own_load(run: Run) -> Run:
    """Without what a live recording's log says of requests before its first level."""
    since_s = recorded_since(run)
    if since_s is None:
        return run
    return msgspec.structs.replace(
        run,
        decodes=tuple(report for report in run.decodes if not before(report, since_s)),
        prefills=tuple(report for report in run.prefills if not before(report, since_s)),
        events=tuple(
            event for event in run.events if event.kind not in OF_A_LOAD or not before(event, since_s)
        ),
    )


def _stretches(run: Run) -> tuple[DecodeWindow, ...]:
    """The client's stretches of constant batch, each a window: exact tokens over its wall time.

    Levels in which the client could not keep up have none. With speculation a step makes several tokens and the
    client cannot count steps, so there are none then, nor where others' prompts, which it cannot see, are computed
    in between.
    """
    speculates = run.server.speculative is not None or any(d.accept_length is not None for d in run.decodes)
    if speculates or others_seen(run):
        return ()
    late = [
        (level.start_s or 0.0, (level.end_s or 0.0) + T.clock_s)
        for level in run.levels
        if overtaxed(level.health)
    ]
    return tuple(
        _window(report)
        for report in run.stretches
        if report.running
        and report.tok_s
        and not any(start <= (report.time_s or 0.0) <= end for start, end in late)
    )


def _levels_covered(windows: Sequence[DecodeWindow], run: Run) -> int:
    """Client levels whose running batch some window has."""
    batches = [batch for level in run.levels if (batch := level.running or level.decoding)]
    return sum(
        any(abs(window.running - batch) <= max(T.one_batch, T.same_batch * batch) for window in windows)
        for batch in batches
    )


Record = DecodeReport | PrefillReport | SchedulerEvent


def _streams(run: Run) -> Iterable[list[Record]]:
    """Per file and data-parallel rank, the decode lines of that rank among everything that can disturb them.

    One pipeline rank is taken: the others repeat the same requests. A prefill of any rank stalls all of them
    under data-parallel attention, so prefills of every rank stay in each stream.
    """
    by_file: dict[str, list[Record]] = {}
    records: list[Record] = [*run.decodes, *run.prefills, *run.events]
    for record in sorted(records, key=lambda record: record.seq):
        by_file.setdefault(record.origin.file, []).append(record)
    for in_file in by_file.values():
        decodes = [record for record in in_file if isinstance(record, DecodeReport)]
        stage = min((d.pp for d in decodes if d.pp is not None), default=None)
        for dp in sorted({d.dp for d in decodes}, key=lambda rank: -1 if rank is None else rank):
            yield [
                record
                for record in in_file
                if isinstance(record, SchedulerEvent)
                or (record.pp == stage and (isinstance(record, PrefillReport) or record.dp == dp))
            ]


def _held(stream: Sequence[Record], run: Run) -> dict[int, Holds]:
    """What lines over a fixed time that print no prompts hold, by `seq`."""
    lines = [r for r in stream if isinstance(r, DecodeReport) and r.instrument == "interval"]
    pool, chunk = run.server.kv_capacity_tokens, run.server.chunked_prefill_tokens
    return held(
        lines,
        pool_tokens=None if pool is None else pool.value,
        chunk_tokens=None if chunk is None else chunk.value,
    )


def _alike(
    unsure: Sequence[DecodeWindow], sure: Sequence[DecodeWindow]
) -> tuple[list[DecodeWindow], list[DecodeWindow]]:
    """Of windows that may hold a prompt: those that take no longer than windows that hold none, and upper bounds."""
    known: dict[int, list[float]] = {}
    for window in sure:
        known.setdefault(window.running, []).append(window.step_ms)
    most = {running: T.alike * statistics.median(steps) for running, steps in known.items()}
    alike: list[DecodeWindow] = []
    longer: list[DecodeWindow] = []
    for window in unsure:
        (alike if window.step_ms <= most.get(window.running, 0.0) else longer).append(window)
    return alike, longer


def _judge(
    stream: Sequence[Record], holds: Mapping[int, Holds]
) -> Iterable[tuple[DecodeReport, Reason | None]]:
    """Each decode line with None when it gives a step, else the first reason why not."""
    previous: DecodeReport | None = None
    between: Reason | None = "start not seen"
    profiling = False
    for record in stream:
        if isinstance(record, PrefillReport):
            between = between or "prefill inside"
            if between == "start not seen":
                between = "prefill inside"
        elif isinstance(record, SchedulerEvent):
            if record.kind == "profile-start":
                profiling = True
            elif record.kind == "profile-end":
                profiling = False
            between = _EVENT_REASONS.get(record.kind, between)
        else:
            reason = _reason(record, previous, between, profiling=profiling)
            yield record, reason or _HELD.get(holds.get(record.seq, "decode"))
            previous, between = record, ("profiler running" if profiling else None)


def _mixed_lines(stream: Sequence[Record]) -> Iterable[MixedLine]:
    """Lines between two decode lines of one batch with only prefills in between."""
    previous: DecodeReport | None = None
    prefills: list[PrefillReport] = []
    for record in stream:
        if isinstance(record, PrefillReport):
            prefills.append(record)
        elif isinstance(record, SchedulerEvent):
            previous, prefills = None, []
        else:
            same = previous is not None and previous.running == record.running
            if same and prefills and record.tok_s:
                yield MixedLine(
                    origin=record.origin,
                    running=record.running,
                    wall_ms=1000 * record.running * (record.accept_length or 1.0) / record.tok_s,
                    prefill_tokens=sum(p.new_tokens for p in prefills),
                    prefill_sequences=sum(p.new_sequences for p in prefills),
                    graph=record.graph,
                    accept_length=record.accept_length or 1.0,
                )
            previous, prefills = record, []


_HELD: dict[Holds, Reason] = {
    "prefill": "prefill inside",
    "fewer requests": "batch changed",
    "unknown": "prefill counted later",
}
_EVENT_REASONS: dict[str, Reason] = {
    "profile-start": "profiler running",
    "profile-end": "profiler running",
    "retraction": "requests retracted",
    "jit-compile": "kernels compiled",
}


def _reason(
    report: DecodeReport, previous: DecodeReport | None, between: Reason | None, *, profiling: bool
) -> Reason | None:
    if report.running == 0 or not (report.tok_s or report.step_ms):
        return "no rate"
    if profiling or between == "profiler running":
        return "profiler running"
    if report.instrument == "step":
        return "prefill inside" if report.prefill_tokens else None
    if report.instrument == "interval" and report.prefill_tok_s != 0:
        return "prefill inside"
    if between is not None:
        return between
    if previous is None:
        return "start not seen"
    if previous.running != report.running:
        return "batch changed"
    return "start not seen" if _lines_missing(report, previous) else None


def _lines_missing(report: DecodeReport, previous: DecodeReport) -> bool:
    """True when the clock says that more than one window passed between two lines: an excerpt with cuts.

    The log's clock has whole seconds, so a window of up to 1.5 s cannot be told from a cut.
    """
    if report.instrument != "window" or report.windows > 1:
        return False
    if report.time_s is None or previous.time_s is None or not report.tok_s or not previous.tok_s:
        return False
    elapsed = report.time_s - previous.time_s
    return (
        elapsed
        > T.cut_s + T.cut * T.interval_steps * report.running * (report.accept_length or 1.0) / report.tok_s
    )


def _window(report: DecodeReport) -> DecodeWindow:
    accept = report.accept_length or 1.0
    step_ms = report.step_ms
    if step_ms is None:
        step_ms = 1000 * report.running * accept / (report.tok_s or math.nan)
    return DecodeWindow(
        origin=report.origin,
        seq=report.seq,
        time_s=report.time_s,
        dp=report.dp,
        running=report.running,
        queued=report.queued,
        step_ms=step_ms,
        accept_length=accept,
        speculative=report.accept_length is not None,
        graph=report.graph,
        pool_tokens=report.pool_tokens,
        count=report.windows,
    )
