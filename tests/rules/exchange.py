"""Condensed traces of decode steps that exchange data, for rules about ranks."""

import msgspec

from stepline.evidence.load import StepRow
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.trace import ComponentTime, RankTrace, RankWait, StepGroup, TraceStep, TraceSummary
from tests.rules.server import server


class Rank(msgspec.Struct, kw_only=True):
    """One rank's step: milliseconds of its own work and in collectives."""

    own_ms: float
    exposed_ms: float
    kernels: float = 128.0


def exchanging(
    *ranks: Rank,
    step_ms: float | None = 2.4,
    collectives: float = 16.0,
    transfer_us: float | None = None,
    world_size: int = 2,
    model: dict[str, object] | None = None,
    batch: int = 4,
    measured_at: int | None = None,
    first_rank: int = 0,
) -> Run:
    """Traces of these ranks; with `transfer_us` on one clock, with `step_ms` beside an unprofiled step."""
    base = server([]) if model is None else server([], model=model)
    found = tuple(
        _rank(first_rank + index, rank, collectives, world_size, batch) for index, rank in enumerate(ranks)
    )
    waits = ()
    if transfer_us is not None:
        waits = tuple(
            RankWait(rank=index, collectives=100, wait_ms=1.0, transfer_ms=transfer_us / 10, last=50)
            for index in range(len(ranks))
        )
    row = StepRow(
        origin=Origin("steps.csv", 2), running=measured_at or batch, step_ms=step_ms, context_tokens=1024
    )
    return msgspec.structs.replace(
        base, trace=TraceSummary(ranks=found, waits=waits), step_rows=() if step_ms is None else (row,)
    )


def _rank(index: int, rank: Rank, collectives: float, world_size: int, batch: int) -> RankTrace:
    busy = rank.own_ms + rank.exposed_ms
    parts = {"gemm": (rank.own_ms, 48.0), "communication": (rank.exposed_ms, collectives)}
    group = StepGroup(
        kind="decode",
        batch=batch,
        found_by="annotation",
        steps=8,
        set_aside=0,
        busy_ms=busy,
        span_ms=busy,
        kernels=rank.kernels,
        launches=1.0,
        graph_launches=1.0,
        components=tuple(
            ComponentTime(component=name, busy_ms=ms, work_ms=ms, kernels=count)
            for name, (ms, count) in parts.items()
            if ms
        ),
        exposed_communication_ms=rank.exposed_ms,
    )
    step = TraceStep(
        kind="decode",
        batch=batch,
        found_by="annotation",
        start_ms=0.0,
        span_ms=busy,
        busy_ms=busy,
        kernels=int(rank.kernels),
        launches=1,
    )
    return RankTrace(
        file=f"decode-TP-{index}.trace.json.gz",
        rank=index,
        world_size=world_size,
        events=1,
        gpu_events=1,
        span_ms=8 * busy,
        busy_ms=8 * busy,
        steps=(step,),
        groups=(group,),
    )
