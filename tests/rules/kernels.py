"""A condensed trace of one decode step from a list of kernels, for rules that look at kernels."""

import math
from collections import defaultdict

import msgspec

from stepline.evidence.load import StepRow
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.trace import ComponentTime, RankTrace, StepGroup, TraceKernel, TraceSummary
from stepline.facts import kernels as names
from tests.rules.server import server

SGEMM = "void sgemm_largek_lds64<true, false, 6, 3, 4, 5, 2, 66>(float*, float const*)"
NVJET = "nvjet_sm90_tst_128x8_64x12_2x1_v_bz_TNT"
COPY = "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<direct_copy>>(int)"
SPLITKV = "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>(Flash_fwd_params)"


class Kernel(msgspec.Struct, kw_only=True):
    """Busy milliseconds a step in kernels of one name; the component is the name's unless `owner` has it."""

    name: str
    busy_ms: float
    owner: str | None = None
    grid: tuple[int, int, int] | None = (128, 1, 1)
    context_multiple: float | None = None
    per_step: float = 10.0


def running(
    *kernels: Kernel,
    step_ms: float | None = None,
    batch: int | None = 4,
    context: int = 1024,
    measured_at: int | None = None,
    model: dict[str, object] | None = None,
    **facts: object,
) -> Run:
    """A run whose traced decode steps hold these kernels; with `step_ms` beside an unprofiled step."""
    base = server([], **facts) if model is None else server([], model=model, **facts)
    rows = tuple(_row(kernel) for kernel in kernels)
    sums: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        sums[row.component] += row.busy_ms
    busy = math.fsum(sums.values())
    group = StepGroup(
        kind="decode",
        batch=batch,
        found_by="annotation",
        steps=8,
        set_aside=0,
        busy_ms=busy,
        span_ms=busy,
        kernels=100.0,
        launches=1.0,
        graph_launches=1.0,
        components=tuple(
            ComponentTime(component=name, busy_ms=ms, work_ms=ms, kernels=10.0) for name, ms in sums.items()
        ),
        exposed_communication_ms=0.0,
        top=rows,
    )
    rank = RankTrace(
        file="decode.trace.json.gz", events=1, gpu_events=1, span_ms=busy, busy_ms=busy, groups=(group,)
    )
    stated = ()
    if step_ms is not None:
        stated = (
            StepRow(
                origin=Origin("steps.csv", 2),
                running=measured_at or batch or 4,
                step_ms=step_ms,
                context_tokens=context,
            ),
        )
    return msgspec.structs.replace(base, trace=TraceSummary(ranks=(rank,)), step_rows=stated)


def _row(kernel: Kernel) -> TraceKernel:
    return TraceKernel(
        name=kernel.name,
        component=kernel.owner or names.component(kernel.name).component,
        found_by="operator" if kernel.owner else "name",
        per_step=kernel.per_step,
        busy_ms=kernel.busy_ms,
        count=round(8 * kernel.per_step),
        total_ms=8 * kernel.busy_ms,
        mean_us=1000 * kernel.busy_ms / kernel.per_step,
        grid=kernel.grid,
        dtype=names.dtype(kernel.name),
        path=names.path(kernel.name),
        context_multiple=kernel.context_multiple,
    )
