"""Kernels, levels and levers of a picture as rows for a report."""

from stepline.facts.levers import find_lever
from stepline.findings.detail import KernelView, LevelView, LeverView
from stepline.model.picture.picture import Picture
from stepline.model.signs.traced_floors import kernel_floor_ms

MAX_KERNELS = 12
MAX_LEVERS = 40
KERNEL_NAME = 200
"""Characters of a kernel's name that are kept; template arguments make some of them thousands long."""


def kernels(picture: Picture) -> tuple[KernelView, ...]:
    """The dearest kernels of the traced decode step."""
    if picture.traced is None:
        return ()
    gpu = picture.target.gpu
    return tuple(
        KernelView(
            name=kernel.name if len(kernel.name) <= KERNEL_NAME else f"{kernel.name[:KERNEL_NAME]}…",
            component=kernel.component,
            busy_ms=kernel.busy_ms,
            per_step=kernel.per_step,
            context_shaped=kernel.context_multiple is not None,
            site=kernel.site,
            bytes_s=kernel.byte_s,
            flop_s=kernel.flop_s,
            floor_ms=None if gpu is None else kernel_floor_ms(kernel, gpu),
        )
        for kernel in picture.traced.group.top[:MAX_KERNELS]
    )


def levels(picture: Picture) -> tuple[LevelView, ...]:
    """The client's levels beside what the engine ran."""
    return tuple(
        LevelView(
            concurrency=level.concurrency,
            running=None if level.running is None else level.running.running,
            queued=level.queued,
            tok_s=level.tok_s,
            ttft_ms=level.ttft_ms,
            tpot_ms=level.tpot_ms,
            disturbed=level.disturbed,
            source=str(level.origin),
        )
        for level in picture.levels
    )


def levers(picture: Picture) -> tuple[LeverView, ...]:
    """Every change tried, with what its lever acts on where that is known."""
    rows = []
    for trial in picture.run.levers[:MAX_LEVERS]:
        known = find_lever(trial.lever)
        rows.append(
            LeverView(
                lever=trial.lever,
                running=trial.running,
                concurrency=trial.concurrency,
                before=trial.before,
                after=trial.after,
                unit="tok/s" if trial.measure == "tok_s" else "ms",
                speedup=trial.speedup,
                acts_on=None if known is None else known.acts_on,
                condition=trial.condition,
                source=str(trial.origin),
            )
        )
    return tuple(rows)
