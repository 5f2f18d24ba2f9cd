"""What one process's trace holds, as columns: large, read once, never saved.

A reader fills a `RawTrace`, `model.trace` condenses it into the small `TraceSummary` of `evidence.trace`.
Times are integer nanoseconds on the trace's own clock; names, shapes and types are indices into
`RawTrace.strings`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace import TraceDevice, TraceDoubt

Column = NDArray[np.int64]

KERNEL, COPY, FILL = 0, 1, 2
"""Values of `GpuWork.sort`: a kernel, a memory copy, a memory fill."""


@dataclass(frozen=True, kw_only=True)
class GpuWork:
    """Kernels, copies and fills, one row each, ordered by start. −1 stands for not recorded."""

    name: Column
    start_ns: Column
    end_ns: Column
    sort: Column
    device: Column
    stream: Column
    correlation: Column
    """Links to `Calls.correlation`; all work of one graph launch shares it."""
    operator: Column
    """The operator's external id, as in `Operators.external`."""
    registers: Column
    """Per thread."""
    shared_bytes: Column
    """Static and dynamic shared memory of one block."""
    grid: Column
    """n × 3 blocks."""
    block: Column
    """n × 3 threads."""
    moved_bytes: Column
    graph_node: Column
    collective: Column
    """A collective's name as JSON text, an index into strings."""

    def __len__(self) -> int:
        """Rows."""
        return len(self.start_ns)


@dataclass(frozen=True, kw_only=True)
class Spans:
    """Host-side intervals, ordered by start: Python frames, annotations."""

    name: Column
    start_ns: Column
    end_ns: Column
    thread: Column

    def __len__(self) -> int:
        """Rows."""
        return len(self.start_ns)


@dataclass(frozen=True, kw_only=True)
class Calls(Spans):
    """Runtime and driver calls; `correlation` is −1 where a call started no work."""

    correlation: Column


@dataclass(frozen=True, kw_only=True)
class Operators(Spans):
    """Framework operators with the id that kernels refer to and their input shapes and types (−1.

    Not recorded).
    """

    external: Column
    shapes: Column
    dtypes: Column


@dataclass(frozen=True, kw_only=True)
class RawTrace:
    """One process's trace: its columns, what it says about itself, and what went wrong while reading."""

    file: str
    rank: int | None
    world_size: int | None
    base_ns: int | None
    """Added to a time of this trace it gives the epoch; None where the file does not say."""
    devices: dict[int, TraceDevice]
    with_stack: bool | None
    record_shapes: bool | None
    strings: list[str]
    gpu: GpuWork
    calls: Calls
    operators: Operators
    frames: Spans
    marks: Spans
    """Annotations on the host's threads."""
    overheads: Spans
    """The profiler's own stalls: buffer requests, lazy loading."""
    events: int
    skipped: int
    """Events that could not be read."""
    raw_bytes: int
    doubts: tuple[TraceDoubt, ...]
