"""The decode step as a trace shows it, beside its wall time measured without the profiler.

Busy comes from the trace, wall from unprofiled windows at the same running batch, idle is wall less busy. Idle inside
a profiled trace alone is never evidence: the profiler stretches the wall (a healthy H200 server read 72 % busy in its
own trace and 97 % in truth).
"""

from collections.abc import Sequence

import msgspec

from stepline.evidence.run import Run
from stepline.evidence.trace import ContextWork, StepGroup
from stepline.model.law import LawPoint

CAPACITY_SHARE = 0.25
"""Share of a step's GPU time in work of the configured extent from which the capacity is what costs: below, removing
all of it gains less than a third."""


class TracedStep(msgspec.Struct, frozen=True, kw_only=True):
    """One group of decode steps in a trace, and the unprofiled step at its batch."""

    file: str
    group: StepGroup
    wall_ms: float | None
    """Unprofiled; None where no window was measured at the trace's batch."""

    @property
    def busy_share(self) -> float | None:
        """GPU busy time over the unprofiled step; None without one."""
        return None if self.wall_ms is None else min(1.0, self.group.busy_ms / self.wall_ms)

    @property
    def host_gap_ms(self) -> float | None:
        """What the wall holds beyond GPU work and exposed communication."""
        if self.wall_ms is None:
            return None
        return max(0.0, self.wall_ms - self.group.busy_ms)

    @property
    def capacity_work(self) -> ContextWork | None:
        """The largest work whose extents follow the configured context, when it is most of what matters."""
        told = [work for work in self.group.context if work.context_tokens is not None]
        largest = max(told, key=lambda work: work.busy_ms, default=None)
        if largest is None or largest.busy_ms < CAPACITY_SHARE * self.group.busy_ms:
            return None
        return largest


def traced_step(run: Run, points: Sequence[LawPoint]) -> TracedStep | None:
    """The decode group with most GPU time on the first rank that has one; None without a trace or decode in it."""
    if run.trace is None:
        return None
    for rank in run.trace.ranks:
        group = next((group for group in rank.groups if group.kind == "decode"), None)
        if group is None:
            continue
        wall = next((point.step_ms for point in points if point.running == group.batch), None)
        return TracedStep(file=rank.file, group=group, wall_ms=wall)
    return None
