"""Condensed traces of one decode batch, for rules that look into them."""

import msgspec

from stepline.evidence.run import Run
from stepline.evidence.trace import (
    ComponentTime,
    ContextWork,
    RankTrace,
    StepGroup,
    TraceKernel,
    TraceSummary,
)


def with_trace(
    run: Run,
    *,
    batch: int,
    busy_ms: float,
    context_ms: float = 0.0,
    context_tokens: int | None = 1_048_576,
    context_multiple: float | None = None,
    unattributed_ms: float = 0.0,
    attention: TraceKernel | None = None,
    eager: bool = False,
) -> Run:
    """The run with a trace whose decode steps keep the GPU busy for `busy_ms`, `context_ms` of it context-shaped.

    `context_multiple` is how often the grid of the one context-shaped kernel in its table holds the context's factor.
    """
    work = ContextWork(
        context_tokens=context_tokens,
        factor=4097,
        divisor=256,
        pad=1,
        seen_in="grids",
        chains=2.0,
        kernels=26.0,
        busy_ms=context_ms,
        enclosed_ms=0.0,
        per_chain_per_request_ms=context_ms / 2 / batch,
    )
    shaped = TraceKernel(
        name="index_elementwise_kernel",
        component="indexer",
        found_by="chain",
        per_step=26.0,
        busy_ms=context_ms,
        count=104,
        total_ms=4 * context_ms,
        mean_us=1000 * context_ms / 26,
        context_multiple=context_multiple,
    )
    parts = {
        "gemm": busy_ms - context_ms - unattributed_ms - (attention.busy_ms if attention else 0.0),
        "attention": attention.busy_ms if attention else 0.0,
        "indexer": context_ms,
        "unattributed": unattributed_ms,
    }
    group = StepGroup(
        kind="decode",
        batch=batch,
        found_by="annotation",
        steps=4,
        set_aside=0,
        busy_ms=busy_ms,
        span_ms=busy_ms,
        graph_span_ms=busy_ms,
        kernels=100.0,
        launches=100.0 if eager else 1.0,
        graph_launches=0.0 if eager else 1.0,
        components=tuple(
            ComponentTime(component=name, busy_ms=ms, work_ms=ms, kernels=10.0)
            for name, ms in parts.items()
            if ms
        ),
        exposed_communication_ms=0.0,
        context=(work,) if context_ms else (),
        top=(*((attention,) if attention else ()), *((shaped,) if context_multiple else ())),
    )
    rank = RankTrace(
        file="decode.trace.json.gz",
        events=1,
        gpu_events=1,
        span_ms=4 * busy_ms,
        busy_ms=busy_ms,
        groups=(group,),
    )
    return msgspec.structs.replace(run, trace=TraceSummary(ranks=(rank,)))
