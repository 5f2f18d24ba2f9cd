"""What about a trace weakens what follows from it."""

import numpy as np

from stepline.evidence.trace import TraceDoubt, TraceStep
from stepline.evidence.trace_arrays import RawTrace
from stepline.model.trace.work import Work
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    overrun_ns = Threshold(
        1_000_000,
        "ns",
        why="Work on one stream runs in order; programmatic dependent launch overlaps neighbours by "
        "microseconds only, so a millisecond is a broken duration.",
        source="74 overlaps of at most 3.7 µs in a public B200 trace",
    )
    stray_ms = Threshold(
        100.0,
        "ms",
        why="A pause this long between work is not a gap inside a served step.",
    )


def doubts(raw: RawTrace, works: list[Work], steps: list[TraceStep]) -> list[TraceDoubt]:
    """In the order a reader should weigh them."""
    gpu = works[0].raw.gpu
    found: list[TraceDoubt] = []
    if len(works) > 1:
        others = ", ".join(str(work.device) for work in works[1:])
        text = (
            f"the trace holds several GPUs; only the busiest, {works[0].device}, is accounted for "
            f"(others: {others})"
        )
        found.append(TraceDoubt(topic="devices", text=text))
    if overrun := _overruns(works[0]):
        text = (
            f"{overrun} kernels run over 1 ms past later work on their own stream: their durations "
            "are not believable"
        )
        found.append(TraceDoubt(topic="times", text=text))
    bad = [step for step in steps if step.set_aside and "graph replay" in step.set_aside]
    if bad:
        text = (
            f"{len(bad)} of {len(steps)} graph replays are under-recorded and set aside: nothing is "
            "idle because of them"
        )
        found.append(TraceDoubt(topic="graph", text=text))
    if empty := sum(1 for step in steps if not step.kernels):
        found.append(
            TraceDoubt(
                topic="steps", text=f"{empty} of {len(steps)} steps show no GPU work at all and are set aside"
            )
        )
    reach = np.maximum.accumulate(gpu.end_ns)[:-1]
    pause = float((gpu.start_ns[1:] - reach).max()) / 1e6 if len(gpu) > 1 else 0.0
    if pause > T.stray_ms:
        text = (
            f"the GPU pauses for {pause:,.0f} ms within the capture: a stray event or a stall, no "
            "part of any step"
        )
        found.append(TraceDoubt(topic="steps", text=text))
    if len(raw.frames):
        text = (
            "Python stacks were recorded, which stretches the host's time several times: the wall "
            "of these steps is not the server's"
        )
        found.append(TraceDoubt(topic="disturbed", text=text))
    return found


def _overruns(work: Work) -> int:
    gpu = work.raw.gpu
    order = np.lexsort((gpu.start_ns, gpu.stream))
    same = np.diff(gpu.stream[order]) == 0
    return int((same & (gpu.end_ns[order][:-1] - gpu.start_ns[order][1:] > T.overrun_ns)).sum())
