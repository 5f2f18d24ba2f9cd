"""A RawTrace per process to one TraceSummary."""

from collections.abc import Iterable

import numpy as np

from stepline.evidence.trace import RankTrace, TraceDoubt, TraceSummary
from stepline.evidence.trace_arrays import RawTrace
from stepline.model.trace import accounting, context_work, groups
from stepline.model.trace.attribute import Attribution
from stepline.model.trace.doubts import doubts
from stepline.model.trace.ownership import shares
from stepline.model.trace.ranks import Arrivals, arrivals, clock_doubts, waits
from stepline.model.trace.steps import segment
from stepline.model.trace.table import Tables
from stepline.model.trace.work import per_device

STEPS_KEPT = 256
"""Steps saved one by one; the groups' means use all."""


def summarise(
    raws: Iterable[RawTrace], *, context_tokens: int | None = None, unprofiled_step_ms: float | None = None
) -> TraceSummary:
    """Condense the traces of one capture.

    Args:
        raws: one a process, taken one at a time so that only one need be in memory.
        context_tokens: the configured context length, where known.
        unprofiled_step_ms: wall of a decode step measured without the profiler.
    """
    return join(
        [rank(raw, context_tokens=context_tokens, unprofiled_step_ms=unprofiled_step_ms) for raw in raws],
        context_tokens=context_tokens,
    )


def join(parts: list[tuple[RankTrace, Arrivals]], *, context_tokens: int | None = None) -> TraceSummary:
    """Ranks that were condensed one by one (each may be done in a process of its own)."""
    ranks, arrived = [part[0] for part in parts], [part[1] for part in parts]
    order = sorted(range(len(ranks)), key=lambda i: (ranks[i].rank is None, ranks[i].rank or 0))
    arrived = [arrived[i] for i in order]
    return TraceSummary(
        ranks=tuple(ranks[i] for i in order),
        waits=waits(arrived),
        context_tokens=context_tokens,
        doubts=clock_doubts(arrived),
    )


def rank(
    raw: RawTrace, *, context_tokens: int | None = None, unprofiled_step_ms: float | None = None
) -> tuple[RankTrace, Arrivals]:
    """One process's trace on its busiest device, and when its collectives began and ended."""
    works = per_device(raw)
    if not works:
        empty = RankTrace(
            file=raw.file,
            rank=raw.rank,
            world_size=raw.world_size,
            events=raw.events,
            gpu_events=0,
            span_ms=0.0,
            busy_ms=0.0,
            doubts=(*raw.doubts, TraceDoubt(topic="devices", text="the trace holds no GPU work")),
        )
        return empty, arrivals(raw, np.zeros(0, bool))
    work = works[0]
    gpu, cut = work.raw.gpu, segment(work)
    attribution = Attribution(work, cut.step if cut else None)
    owned = shares(gpu.start_ns, gpu.end_ns, attribution.of("communication"))
    device = raw.devices.get(work.device)
    step = cut.step if cut else np.full(len(gpu), -1)
    batches = {start.batch for start in cut.starts if start.batch} if cut else set()
    found = context_work.find(work, step, context_tokens, device.sms if device else None, batches)
    tables = Tables(work, owned.owned, attribution, device, found)
    known = groups.Known(work, owned, attribution, tables, found)
    steps = accounting.steps(work, cut, owned) if cut else []
    everything = np.ones(len(gpu), bool)
    condensed = RankTrace(
        file=raw.file,
        rank=raw.rank,
        world_size=raw.world_size,
        device=device,
        events=raw.events,
        gpu_events=len(gpu),
        span_ms=float(gpu.end_ns.max() - gpu.start_ns[0]) / 1e6,
        busy_ms=float(owned.owned.sum()) / 1e6,
        with_stack=bool(len(raw.frames)) or raw.with_stack,
        record_shapes=raw.record_shapes,
        steps=tuple(steps[:STEPS_KEPT]),
        groups=groups.groups(known, cut, steps, unprofiled_step_ms) if cut else (),
        outside_ms=float(owned.owned[step < 0].sum()) / 1e6,
        totals=groups.components(known, everything, 1),
        top=() if cut else tables.of(everything, 1, groups.TABLE_ROWS)[0],
        doubts=(*raw.doubts, *doubts(raw, works, steps)),
    )
    return condensed, arrivals(work.raw, attribution.of("communication"))
