"""Whether a trace can carry conclusions about decode steps."""

import msgspec

from stepline.evidence.trace import TraceSummary
from stepline.model.measure.traced_step import decode_of
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    under_recorded = Threshold(
        0.1,
        "share of the steps",
        why="Graph replays that lack kernels from which the recording is at fault.",
        source="sound captures have none",
    )


DECODES = ("decode", "verify", "mixed")
"""Kinds of steps that decode; `step` is one of which nothing says what it is."""
UNKNOWN = "step"
LOST = ("truncated", "damaged", "times")
"""Doubts that say that part of the file was not read."""


NO_GPU_WORK = "it holds no GPU work"


class Integrity(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a trace, each reason a sentence."""

    broken: tuple[str, ...]
    """Nothing about decode follows from it."""
    partial: tuple[str, ...]
    """What is whole was used; counts and shares over the capture are too small."""
    unnamed_steps: int
    """Steps of which nothing says what they are, where no other kind is there."""
    stretched: float | None
    """Step in the trace over the unprofiled step; None where either is unknown."""


@sign
def trace_integrity(picture: Picture) -> Integrity | None:
    """Judge the trace of a run; None without one."""
    trace = picture.run.trace
    if trace is None:
        left_out = tuple(doubt.text for doubt in picture.run.doubts if doubt.topic == "trace")
        return Integrity(broken=left_out, partial=(), unnamed_steps=0, stretched=None) if left_out else None
    traced = decode_of(trace, picture.wall_points)
    broken = list(_broken(trace))
    stretched = None
    if traced is not None and traced.wall_ms is not None:
        group, wall_ms = traced.group, traced.wall_ms
        if traced.contradicts_wall:
            broken.append(
                f"its decode step keeps the GPU busy for {group.busy_ms:.3g} ms, yet a whole step at "
                f"{group.batch} running takes {wall_ms:.3g} ms unprofiled"
            )
        if group.traced_period_ms is not None:
            stretched = max(group.traced_period_ms, group.span_ms) / wall_ms
    partial = [
        doubt.text
        for doubts in (trace.doubts, *(rank.doubts for rank in trace.ranks))
        for doubt in doubts
        if doubt.topic in LOST
    ]
    kinds = [step.kind for rank in trace.ranks for step in rank.steps]
    return Integrity(
        broken=tuple(broken),
        partial=tuple(partial),
        unnamed_steps=len(kinds) if set(kinds) == {UNKNOWN} else 0,
        stretched=stretched,
    )


def _broken(trace: TraceSummary) -> list[str]:
    if not any(rank.gpu_events for rank in trace.ranks):
        return [NO_GPU_WORK]
    steps = [step for rank in trace.ranks for step in rank.steps]
    kinds = sorted({step.kind for step in steps})
    if not steps:
        return ["nothing in it repeats or is marked as a step"]
    if not set(kinds) & {*DECODES, UNKNOWN}:
        return [f"it shows no decode step, only {', '.join(kinds)}"]
    lacking = [step for step in steps if step.set_aside and "under-recorded" in step.set_aside]
    if len(lacking) > T.under_recorded * len(steps):
        return [f"{len(lacking)} of {len(steps)} graph replays lack kernels that others of their batch show"]
    return []
