"""What a GPU trace says, condensed: small enough to keep in a bundle, complete enough to diagnose from.

A `TraceSummary` is made by `model.trace` from the columns a reader returns; a saved one never needs the
trace.
`busy` is time with at least one kernel, copy or fill on the GPU. Where several overlap each owns an equal
share of the instant, so that busy times of components, kernels and steps add up to the whole. `work` is the
plain sum of durations.
"""

from typing import Literal

import msgspec

SCHEMA_VERSION = 1

StepKind = Literal["decode", "prefill", "mixed", "draft", "verify", "step"]
"""`step` where work repeats but nothing says what it is."""


class TraceDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU as the trace describes it; None where it does not."""

    index: int = 0
    name: str | None = None
    capability: tuple[int, int] | None = None
    sms: int | None = None
    warp_threads: int | None = None
    threads_per_sm: int | None = None
    registers_per_sm: int | None = None
    shared_bytes_per_sm: int | None = None
    memory_bytes: int | None = None


class TraceStep(msgspec.Struct, frozen=True, kw_only=True):
    """One forward of the batch with the work around it, from its start to the next one's."""

    kind: StepKind
    batch: int | None = None
    tokens: int | None = None
    found_by: Literal["annotation", "graph launch", "repetition"]
    start_ms: float
    """Since the first GPU work of the trace."""
    period_ms: float | None = None
    """To the next step's start on the host; None for the last. Stretched by the profiler."""
    span_ms: float
    """First to last GPU work of the step, strays left out."""
    longest_pause_ms: float = 0.0
    """Longest time within the span without any GPU work."""
    busy_ms: float
    kernels: int
    launches: int
    """Host calls that started GPU work."""
    graph_launches: int = 0
    graph_kernels: int = 0
    graph_span_ms: float | None = None
    host_busy_ms: float | None = None
    """The period less what the launching thread spent waiting; an upper bound, stretched by the profiler."""
    set_aside: str | None = None
    """Why the step is not in its group's means."""


class ComponentTime(msgspec.Struct, frozen=True, kw_only=True):
    """What one component costs per step."""

    component: str
    busy_ms: float
    work_ms: float
    kernels: float


class IdleCause(msgspec.Struct, frozen=True, kw_only=True):
    """GPU idle time per step inside the trace, by what the host was doing.

    Never evidence of idleness by itself.
    """

    cause: Literal[
        "launch-bound", "scheduler", "sync", "results", "between queued kernels", "nothing queued", "unknown"
    ]
    traced_ms: float


class TraceKernel(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel with one launch shape, within one group of steps."""

    name: str
    component: str
    found_by: Literal["name", "operator", "stack", "chain", "neighbours", "none"]
    """`neighbours` is inferred: no name, operator or stack says it."""
    per_step: float
    busy_ms: float
    """Per step."""
    count: int
    total_ms: float
    mean_us: float
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    blocks_per_sm: int | None = None
    """Resident at once, recomputed from registers, shared memory and threads."""
    occupancy: float | None = None
    """Resident warps over the most an SM holds, bounded by the grid."""
    limited_by: Literal["registers", "shared memory", "threads", "blocks", "grid"] | None = None
    waves: float | None = None
    tail: float | None = None
    """Share of the last wave that stays empty."""
    path: Literal["tensor", "cuda-core"] | None = None
    dtype: str | None = None
    shapes: str | None = None
    """Input shapes of its operator."""
    byte_s: float | None = None
    flop_s: float | None = None
    site: str | None = None
    """Innermost Python frame outside the framework, `file(line): function`."""
    in_graph: bool | None = None
    context_multiple: float | None = None
    """Grid blocks per unit of the context factor, where the kernel is context-shaped."""


class ContextWork(msgspec.Struct, frozen=True, kw_only=True):
    """Work sized by the configured context, seen along chains of kernels or in input shapes."""

    context_tokens: int | None
    """The configured context, None where nobody told it and only the padded shape suggests one."""
    factor: int
    """The number that the extents or grids share: `context_tokens / divisor + pad`, else 2^k + 1."""
    divisor: int | None
    pad: int | None
    seen_in: Literal["grids", "shapes"]
    chains: float
    """Per step: runs of neighbouring kernels that share the factor, usually one a layer."""
    kernels: float
    """Per step."""
    busy_ms: float
    """Per step, of the kernels with the factor and those enclosed by them."""
    enclosed_ms: float
    """Per step, of the enclosed ones alone."""
    per_chain_per_request_ms: float | None = None
    example: str | None = None


class StepGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of one kind and batch: the accounting of their steady mean."""

    kind: StepKind
    batch: int | None = None
    found_by: Literal["annotation", "graph launch", "repetition"]
    steps: int
    set_aside: int
    busy_ms: float
    """Mean per step."""
    busy_ms_spread: float | None = None
    """Largest less smallest step."""
    span_ms: float
    graph_span_ms: float | None = None
    traced_period_ms: float | None = None
    host_busy_ms: float | None = None
    kernels: float
    launches: float
    graph_launches: float
    components: tuple[ComponentTime, ...]
    exposed_communication_ms: float
    idle: tuple[IdleCause, ...] = ()
    top: tuple[TraceKernel, ...] = ()
    rest_ms: float = 0.0
    """Busy time per step of the kernels below the table."""
    context: tuple[ContextWork, ...] = ()
    unprofiled_step_ms: float | None = None
    """Wall of a step without the profiler, measured elsewhere."""

    @property
    def attributed(self) -> float:
        """Share of busy time in named components."""
        named = sum(part.busy_ms for part in self.components if part.component != "unattributed")
        return named / self.busy_ms if self.busy_ms else 0.0

    @property
    def busy_share(self) -> float | None:
        """Busy time over the unprofiled step; None without one, as a profiled trace's idle proves nothing."""
        return min(1.0, self.busy_ms / self.unprofiled_step_ms) if self.unprofiled_step_ms else None

    @property
    def busy_in_span(self) -> float:
        """Busy share between the step's first and last GPU work.

        A lower bound of what the GPU does unprofiled.
        """
        return self.busy_ms / self.span_ms if self.span_ms else 0.0

    def component_ms(self, name: str) -> float:
        """Busy milliseconds per step of a component, 0 where the trace shows none of it."""
        return sum(part.busy_ms for part in self.components if part.component == name)


class TraceDoubt(msgspec.Struct, frozen=True, kw_only=True):
    """Something about the trace that weakens what follows from it."""

    topic: Literal[
        "truncated", "damaged", "times", "steps", "graph", "clocks", "disturbed", "devices", "memory"
    ]
    text: str


class RankTrace(msgspec.Struct, frozen=True, kw_only=True):
    """One process's work on one GPU."""

    file: str
    rank: int | None = None
    world_size: int | None = None
    device: TraceDevice | None = None
    events: int
    gpu_events: int
    span_ms: float
    busy_ms: float
    with_stack: bool | None = None
    record_shapes: bool | None = None
    steps: tuple[TraceStep, ...] = ()
    groups: tuple[StepGroup, ...] = ()
    """Largest share of the trace's busy time first."""
    outside_ms: float = 0.0
    """Busy time that belongs to no step."""
    totals: tuple[ComponentTime, ...] = ()
    """Over the whole trace, not per step."""
    top: tuple[TraceKernel, ...] = ()
    """Over the whole trace, where no steps were found."""
    doubts: tuple[TraceDoubt, ...] = ()


class RankWait(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank's collectives cost it: waiting for later ranks, then moving data."""

    rank: int
    collectives: int
    wait_ms: float
    transfer_ms: float
    last: int
    """How often this rank arrived last."""
    waited_for: int | None = None
    """The rank it waited for longest."""


class TraceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """All ranks of one capture."""

    schema_version: int = SCHEMA_VERSION
    ranks: tuple[RankTrace, ...]
    waits: tuple[RankWait, ...] = ()
    context_tokens: int | None = None
    doubts: tuple[TraceDoubt, ...] = ()

    def group(self, kind: StepKind = "decode") -> StepGroup | None:
        """The group of this kind with the most busy time, on the first rank that has one."""
        return next((group for rank in self.ranks for group in rank.groups if group.kind == kind), None)
