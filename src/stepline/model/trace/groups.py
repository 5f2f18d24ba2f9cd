"""Groups of steps of one kind and batch: where a mean step's time goes."""

from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace import ComponentTime, IdleCause, StepGroup, TraceStep
from stepline.model.trace import context_work, idle
from stepline.model.trace.accounting import by_group
from stepline.model.trace.attribute import Attribution
from stepline.model.trace.ownership import Shares
from stepline.model.trace.steps import Segmentation
from stepline.model.trace.table import Tables
from stepline.model.trace.work import Work

TABLE_ROWS = 40
GROUPS_MOST = 8


@dataclass(frozen=True)
class Known:
    """All that is known of one device's rows when its groups are built."""

    work: Work
    shares: Shares
    attribution: Attribution
    tables: Tables
    context: context_work.Found | None


def groups(
    known: Known, cut: Segmentation, found: list[TraceStep], wall_ms: float | None
) -> tuple[StepGroup, ...]:
    """The groups with the most busy time; the unprofiled wall belongs to the largest decode-like one."""
    pauses = idle.gaps(known.work, cut.step)
    ranked = sorted(by_group(found).values(), key=lambda members: -sum(found[i].busy_ms for i in members))
    kinds = [found[members[0]].kind for members in ranked]
    likely = next((kinds.index(kind) for kind in ("decode", "verify", "step") if kind in kinds), None)
    built = []
    for rank, members in enumerate(ranked[:GROUPS_MOST]):
        used = [i for i in members if found[i].set_aside is None]
        if used:
            group = _group(known, cut, [found[i] for i in used], np.isin(cut.step, used))
            built.append(
                msgspec.structs.replace(
                    group,
                    set_aside=len(members) - len(used),
                    idle=_idle(pauses, used),
                    unprofiled_step_ms=wall_ms if rank == likely else None,
                )
            )
    return tuple(built)


def _group(known: Known, cut: Segmentation, sample: list[TraceStep], rows: NDArray[np.bool_]) -> StepGroup:
    steps, batch = len(sample), sample[0].batch
    top, rest = known.tables.of(rows, steps, TABLE_ROWS)
    busy = [step.busy_ms for step in sample]
    shaped = None
    if known.context:
        shaped = context_work.per_step(
            known.context, known.work, rows, known.shares.owned, steps=steps, batch=batch
        )
    return StepGroup(
        kind=sample[0].kind,
        batch=batch,
        found_by=cut.found_by,
        steps=steps,
        set_aside=0,
        busy_ms=sum(busy) / steps,
        busy_ms_spread=max(busy) - min(busy) if steps > 1 else None,
        span_ms=sum(step.span_ms for step in sample) / steps,
        graph_span_ms=_median([step.graph_span_ms for step in sample]),
        traced_period_ms=_median([step.period_ms for step in sample]),
        host_busy_ms=_median([step.host_busy_ms for step in sample]),
        kernels=sum(step.kernels for step in sample) / steps,
        launches=sum(step.launches for step in sample) / steps,
        graph_launches=sum(step.graph_launches for step in sample) / steps,
        components=components(known, rows, steps),
        exposed_communication_ms=float(known.shares.exposed[rows].sum()) / 1e6 / steps,
        top=top,
        rest_ms=rest,
        context=(shaped,) if shaped else (),
    )


def components(known: Known, rows: NDArray[np.bool_], steps: int) -> tuple[ComponentTime, ...]:
    """Per step and component, dearest first; busy times add up to the busy union."""
    labels, gpu = known.attribution.component[rows], known.work.raw.gpu
    names = known.attribution.components
    busy = np.bincount(labels, known.shares.owned[rows], len(names)) / 1e6 / steps
    work = np.bincount(labels, (gpu.end_ns - gpu.start_ns)[rows], len(names)) / 1e6 / steps
    count = np.bincount(labels, minlength=len(names)) / steps
    order = [i for i in np.argsort(-busy, kind="stable").tolist() if count[i]]
    return tuple(
        ComponentTime(
            component=names[i], busy_ms=float(busy[i]), work_ms=float(work[i]), kernels=float(count[i])
        )
        for i in order
    )


def _idle(pauses: idle.Gaps, used: list[int]) -> tuple[IdleCause, ...]:
    total = pauses.by_cause[np.isin(pauses.step, used)].sum(axis=0) / 1e6 / len(used)
    named = zip(idle.CAUSES, total.tolist(), strict=True)
    return tuple(
        IdleCause(cause=cause, traced_ms=ms)
        for cause, ms in sorted(named, key=lambda pair: -pair[1])
        if ms > 0
    )


def _median(values: list[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return float(np.median(present)) if present else None
