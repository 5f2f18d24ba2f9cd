"""One device's work with what links it to the host."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace_arrays import Column, RawTrace
from stepline.facts import kernels


@dataclass(frozen=True)
class Work:
    """The GPU rows of one device and, per row, the call that launched it (−1: not recorded)."""

    raw: RawTrace
    device: int
    call: Column
    launched_ns: Column
    """Start of that call, or of the row itself where no call was recorded."""
    graph: NDArray[np.bool_]
    """Part of a graph replay."""


def per_device(raw: RawTrace) -> list[Work]:
    """A Work for each device with rows, the busiest first."""
    gpu = raw.gpu
    found = []
    for device in np.unique(gpu.device).tolist():
        rows = gpu.device == device
        columns = {name: getattr(gpu, name)[rows] for name in gpu.__dataclass_fields__}
        found.append((int((columns["end_ns"] - columns["start_ns"]).sum()), device, replace(gpu, **columns)))
    return [
        _linked(replace(raw, gpu=own), device) for _, device, own in sorted(found, key=lambda item: -item[0])
    ]


def _linked(raw: RawTrace, device: int) -> Work:
    gpu, calls = raw.gpu, raw.calls
    call = np.full(len(gpu), -1, np.int64)
    usable = np.flatnonzero(calls.correlation > 0)
    if len(usable):
        order = usable[np.argsort(calls.correlation[usable], kind="stable")]
        keys = calls.correlation[order]
        at = np.minimum(np.searchsorted(keys, gpu.correlation), len(keys) - 1)
        call = np.where((gpu.correlation > 0) & (keys[at] == gpu.correlation), order[at], -1)
    graph_name = np.array([kernels.host(name, "graph_launches") for name in raw.strings] or [False])
    known = call >= 0
    graph = (gpu.graph_node > 0) | (
        known & graph_name[calls.name[call]] if len(calls) else np.zeros(len(gpu), bool)
    )
    launched = np.where(known, calls.start_ns[call], gpu.start_ns) if len(calls) else gpu.start_ns
    return Work(raw, device, call, launched, graph)
