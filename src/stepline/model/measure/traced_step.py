"""The decode step as a trace shows it, beside its wall time measured without the profiler.

Busy comes from the trace, wall from unprofiled windows at the same running batch, idle is wall less busy. Idle inside
a profiled trace alone is never evidence: the profiler stretches the wall (a healthy H200 server read 72 % busy in its
own trace and 97 % in truth).
"""

from collections.abc import Sequence

import msgspec

from stepline.evidence.run import Run
from stepline.evidence.trace import ContextWork, StepGroup, TraceSummary
from stepline.model.measure.law import LawPoint, level_points
from stepline.model.measure.timeline import profiler_intervals
from stepline.model.measure.windows import T as WINDOWS
from stepline.model.measure.windows import Windows
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    capacity = Threshold(
        0.25,
        "share of a step's GPU time",
        why="Work of the configured extent from which the capacity is what costs: below, removing "
        "all of it gains less than a third.",
        source="arithmetic",
    )
    contradiction = Threshold(
        1.1,
        "GPU work over the unprofiled step",
        why="From here the two cannot both be true.",
        source="at most 1.02 times on the H200 captures",
    )
    before_s = Threshold(
        3.0,
        "s",
        why="A profile has a load of its own whose contexts keep growing; this long before it they "
        "are nearly the same.",
    )


class TracedStep(msgspec.Struct, frozen=True, kw_only=True):
    """One group of decode steps in a trace, and the unprofiled step at its batch."""

    file: str
    group: StepGroup
    wall_ms: float | None
    """Unprofiled; None where no window was measured at the trace's batch."""

    @property
    def step_ms(self) -> float:
        """The unprofiled step; where none was measured, first to last GPU work in the trace, which is no shorter."""
        return self.group.span_ms if self.wall_ms is None else self.wall_ms

    @property
    def contradicts_wall(self) -> bool:
        """True when the GPU worked longer than the step took: the profiler slowed it, or the batch differs."""
        return self.wall_ms is not None and self.group.busy_ms > T.contradiction * self.wall_ms

    @property
    def busy_share(self) -> float | None:
        """GPU busy time over the unprofiled step; None without one."""
        return None if self.wall_ms is None else min(1.0, self.group.busy_ms / self.wall_ms)

    @property
    def capacity_work(self) -> ContextWork | None:
        """The largest work whose extents follow the configured context, when it is most of what matters."""
        largest = self.largest_capacity_work
        if largest is None or largest.busy_ms < T.capacity * self.group.busy_ms:
            return None
        return largest

    @property
    def largest_capacity_work(self) -> ContextWork | None:
        """The largest such work, whatever it costs."""
        told = [work for work in self.group.context if work.context_tokens is not None]
        return max(told, key=lambda work: work.busy_ms, default=None)

    def capacity_ms_at(self, running: float) -> float | None:
        """What that work takes at another batch; None unless its grids hold the whole context for each sequence."""
        largest, batch = self.largest_capacity_work, self.group.batch
        told = (kernel.context_multiple for kernel in self.group.top if kernel.context_multiple)
        if largest is None or not batch or not any(multiple % batch == 0 for multiple in told):
            return None
        return largest.busy_ms * running / batch


def wall_points(run: Run, windows: Windows, points: Sequence[LawPoint]) -> tuple[LawPoint, ...]:
    """Unprofiled steps to set a trace beside: at each batch those right before the profiler, else the law's points."""
    starts = [interval.start_s for interval in profiler_intervals(run)]
    before = level_points(
        (window.running, window.step_ms, window.graph)
        for window in windows.usable
        if window.time_s is not None and any(0 <= start - window.time_s <= T.before_s for start in starts)
    )
    batches = {point.running for point in before}
    return (*before, *(point for point in points if point.running not in batches))


def decode_of(trace: TraceSummary, points: Sequence[LawPoint]) -> TracedStep | None:
    """The decode group with most GPU time on the first rank that has one; None without decode in the trace.

    Where drafts cost the GPU nothing (n-grams), verifying them is the whole step and stands for it.
    """
    for rank in trace.ranks:
        kinds = {group.kind: group for group in reversed(rank.groups)}
        group = kinds.get("decode") or (None if "draft" in kinds else kinds.get("verify"))
        if group is None:
            continue
        return TracedStep(file=rank.file, group=group, wall_ms=_wall_ms(group.batch, points))
    return None


def _wall_ms(batch: int | None, points: Sequence[LawPoint]) -> float | None:
    """The unprofiled step at the trace's batch, or at one that differs by no more than requests that come and go."""
    if batch is None:
        return None
    near = [point for point in points if abs(point.running - batch) <= WINDOWS.same_batch * batch]
    return min(near, key=lambda point: abs(point.running - batch)).step_ms if near else None


def traced_step(run: Run, points: Sequence[LawPoint]) -> TracedStep | None:
    """The decode step that rules may use; None without one, or where it contradicts the unprofiled step."""
    found = None if run.trace is None else decode_of(run.trace, points)
    return None if found is None or found.contradicts_wall else found
