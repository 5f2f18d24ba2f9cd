"""Every step of a trace: its extent, its launches, and why it is set aside where it is."""

from collections import defaultdict

import msgspec
import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace import TraceStep
from stepline.evidence.trace_arrays import Column
from stepline.model.trace import idle
from stepline.model.trace.extent import extents
from stepline.model.trace.ownership import Shares, covered, merged
from stepline.model.trace.steps import Segmentation
from stepline.model.trace.work import Work
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    warm_up = Threshold(
        1.5,
        "times the median GPU time",
        why="A step this long among at least three others is set aside: graphs, caches and JIT settle early.",
    )
    stall = Threshold(
        3.0,
        "times the median span",
        why="A longer span holds a pause from outside the step: JIT, the profiler, garbage collection.",
    )
    pause_ms = Threshold(
        100.0,
        "ms",
        why="A pause this long inside one step is no launch gap: a step of a served model takes "
        "less as a whole.",
    )
    half_empty = Threshold(
        0.5,
        "share of the usual kernels of a graph",
        why="A replay with fewer is damaged; other batches have smaller graphs where no batch is known.",
    )
    cut = Threshold(
        0.98, "share of the usual kernels", why="The last step of a capture with fewer was cut off."
    )
    others = Threshold(4, "steps of a group", why="Fewer give no median to hold one against.")


def steps(work: Work, cut: Segmentation, shares: Shares) -> list[TraceStep]:
    """Every step with GPU work or without, in order, with the reason where it is set aside."""
    gpu, count = work.raw.gpu, len(cut.starts)
    inside = cut.step >= 0
    index = cut.step[inside]

    def per_step(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(index, values[inside], count).astype(np.float64)

    busy, rows = per_step(shares.owned), np.bincount(index, minlength=count)
    graph_rows = per_step(work.graph.astype(np.float64))
    whole = extents(gpu.start_ns, gpu.end_ns, np.where(inside, cut.step, -1), count, shares.owned)
    graph = extents(
        gpu.start_ns, gpu.end_ns, np.where(inside & work.graph, cut.step, -1), count, shares.owned
    )
    launches, graph_launches = _launches(work, cut, count)
    at = np.array([start.at_ns for start in cut.starts])
    waits = covered(*merged(*idle.waiting(work)), at, np.append(at[1:], at[-1:]))
    origin = int(gpu.start_ns[0])
    found = []
    for i, start in enumerate(cut.starts):
        period = float(at[i + 1] - at[i]) / 1e6 if i + 1 < count else None
        found.append(
            TraceStep(
                kind=start.kind,
                batch=start.batch,
                tokens=start.tokens,
                found_by=cut.found_by,
                start_ms=(start.at_ns - origin) / 1e6,
                period_ms=period,
                span_ms=float(whole.span_ns[i]) / 1e6,
                longest_pause_ms=float(whole.pause_ns[i]) / 1e6,
                busy_ms=float(busy[i]) / 1e6,
                kernels=int(rows[i]),
                launches=int(launches[i]),
                graph_launches=int(graph_launches[i]),
                graph_kernels=int(graph_rows[i]),
                graph_span_ms=float(graph.span_ns[i]) / 1e6 if graph_rows[i] else None,
                host_busy_ms=period - float(waits[i]) / 1e6
                if period is not None and len(work.raw.calls)
                else None,
            )
        )
    return _set_aside(found)


def _launches(work: Work, cut: Segmentation, count: int) -> tuple[Column, Column]:
    """Host calls that started work, and graph launches among them, per step."""
    rows = (cut.step >= 0) & (work.call >= 0)
    calls, first = np.unique(work.call[rows], return_index=True)
    owner = cut.step[rows][first]
    graph = work.graph[rows][first]
    return np.bincount(owner, minlength=count), np.bincount(owner[graph], minlength=count) if len(
        calls
    ) else np.zeros(count, np.int64)


def _set_aside(found: list[TraceStep]) -> list[TraceStep]:
    reasons: dict[int, str] = {}
    for members in by_group(found).values():
        kernels = [found[i].kernels for i in members]
        usual = max(set(kernels), key=lambda n: (kernels.count(n), n))
        # without a known batch other graphs may be smaller, so only half-empty replays are damage
        usual_graph = max((found[i].graph_kernels for i in members), default=0)
        busy = float(
            np.median([found[i].busy_ms for i in members if found[i].kernels]) if any(kernels) else 0.0
        )
        span = float(np.median([found[i].span_ms for i in members]))
        for i in members:
            step = found[i]
            if not step.kernels:
                reasons[i] = "no GPU work was recorded for it"
            elif step.graph_launches and step.graph_kernels < usual_graph * (
                1.0 if step.batch else T.half_empty
            ):
                reasons[i] = f"under-recorded graph replay: {step.graph_kernels} of {usual_graph} kernels"
            elif i == len(found) - 1 and len(members) > 1 and step.kernels < usual * T.cut:
                reasons[i] = "cut off by the end of the capture"
            elif len(members) >= T.others and step.busy_ms > T.warm_up * busy:
                reasons[i] = f"warm-up or disturbance: {step.busy_ms / busy:.1f} times the median busy time"
            elif len(members) >= T.others and step.span_ms > T.stall * span:
                reasons[i] = f"stalled: its GPU work spans {step.span_ms / span:.1f} times the median"
            elif step.longest_pause_ms > max(T.pause_ms, step.busy_ms):
                reasons[i] = (
                    f"stalled: the GPU pauses {step.longest_pause_ms:,.0f} ms inside (JIT or the profiler)"
                )
    return [msgspec.structs.replace(step, set_aside=reasons.get(i)) for i, step in enumerate(found)]


def by_group(found: list[TraceStep]) -> dict[tuple[str, int | None], list[int]]:
    """Indices of the steps of each kind and batch."""
    groups: defaultdict[tuple[str, int | None], list[int]] = defaultdict(list)
    for index, step in enumerate(found):
        groups[step.kind, step.batch].append(index)
    return groups
