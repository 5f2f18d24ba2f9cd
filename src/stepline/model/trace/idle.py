"""Gaps between GPU work by what the host was doing. The profiler stretches them: causes, not sizes."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace_arrays import Column, Spans
from stepline.facts import kernels
from stepline.model.trace.names import named
from stepline.model.trace.ownership import covered, merged
from stepline.model.trace.work import Work
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    stall_ns = Threshold(
        100_000_000,
        "ns",
        why="Longer pauses are stalls of the capture (see `doubts`), not gaps of a step.",
    )


Cause = Literal[
    "between queued kernels", "sync", "results", "launch-bound", "scheduler", "nothing queued", "unknown"
]
CAUSES: tuple[Cause, ...] = (
    "between queued kernels",
    "sync",
    "results",
    "launch-bound",
    "scheduler",
    "nothing queued",
    "unknown",
)


@dataclass(frozen=True)
class Gaps:
    """Idle nanoseconds by cause (columns as CAUSES), a row a gap, and the step of the work that ended it."""

    by_cause: NDArray[np.int64]
    step: Column


def gaps(work: Work, step: Column) -> Gaps:
    """Every pause of the GPU between its first and last work, stalls left out.

    A pause whose next kernel had been launched before it began is the GPU's own; else the host's time until
    that launch is split, in this order, over blocking calls, results, launching within a step, scheduling.
    """
    gpu = work.raw.gpu
    reach = np.maximum.accumulate(gpu.end_ns)
    pause = gpu.start_ns[1:] - reach[:-1]
    row = np.flatnonzero((pause > 0) & (pause < T.stall_ns)) + 1
    begin, end = reach[row - 1], gpu.start_ns[row]
    table = np.zeros((len(row), len(CAUSES)), np.int64)
    known = work.call[row] >= 0
    called = np.where(known, work.launched_ns[row], end)
    host_end = np.clip(called, begin, end)
    queued = known & (called <= begin)
    table[:, 0] = np.where(queued, end - begin, 0)
    table[:, 3] = np.where(known & ~queued, end - host_end, 0)
    table[:, 6] = np.where(known, 0, end - begin)
    left = np.where(known & ~queued, host_end - begin, 0)
    raw = work.raw
    waits = _named(raw.calls, raw.strings, "waits")
    covers = [
        (1, waits),
        (2, _named(raw.marks, raw.strings, "results")),
        (3, _steps(raw.marks, raw.strings)),
        (4, _named(raw.marks, raw.strings, "scheduler")),
        (3, (raw.operators.start_ns, raw.operators.end_ns)),
        (3, (raw.calls.start_ns, raw.calls.end_ns)),
    ]
    open_ = np.flatnonzero(left > 0)
    begin, host_end, left = begin[open_], host_end[open_], left[open_]
    before = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    taken = np.zeros(len(open_), np.int64)
    for cause, spans in covers:
        before = merged(np.concatenate([before[0], spans[0]]), np.concatenate([before[1], spans[1]]))
        total = covered(*before, begin, host_end)
        table[open_, cause] += np.minimum(total - taken, left)
        taken = total
    table[open_, 5] += left - np.minimum(taken, left)
    return Gaps(table, step[row])


def waiting(work: Work) -> tuple[Column, Column]:
    """Intervals in which a host thread sat in a blocking call."""
    return _named(work.raw.calls, work.raw.strings, "waits")


def _named(spans: Spans, strings: list[str], activity: kernels.Activity) -> tuple[Column, Column]:
    mine = named(spans.name, strings, lambda name: kernels.host(name, activity))
    return spans.start_ns[mine], spans.end_ns[mine]


def _steps(spans: Spans, strings: list[str]) -> tuple[Column, Column]:
    mine = named(spans.name, strings, kernels.step)
    return spans.start_ns[mine], spans.end_ns[mine]
