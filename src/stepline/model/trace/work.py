"""One device's work with what links it to the host."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace_arrays import Column, RawTrace
from stepline.facts import kernels
from stepline.model.trace.names import named


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
    operator: Column
    """The framework's operator it belongs to (−1: not recorded)."""


def per_device(raw: RawTrace) -> list[Work]:
    """A Work for each device with rows, the busiest first."""
    gpu = raw.gpu
    devices = np.unique(gpu.device).tolist()
    if len(devices) == 1:
        return [_linked(raw, devices[0])]
    found = []
    for device in devices:
        rows = gpu.device == device
        columns = {name: getattr(gpu, name)[rows] for name in gpu.__dataclass_fields__}
        found.append((int((columns["end_ns"] - columns["start_ns"]).sum()), device, replace(gpu, **columns)))
    return [
        _linked(replace(raw, gpu=own), device) for _, device, own in sorted(found, key=lambda item: -item[0])
    ]


def _linked(raw: RawTrace, device: int) -> Work:
    gpu, calls = raw.gpu, raw.calls
    call = _found(calls.correlation, gpu.correlation)
    launches = named(calls.name, raw.strings, lambda name: kernels.host(name, "graph_launches"))
    known = call >= 0
    graph = (gpu.graph_node > 0) | (known & launches[call] if len(calls) else np.zeros(len(gpu), bool))
    launched = np.where(known, calls.start_ns[call], gpu.start_ns) if len(calls) else gpu.start_ns
    return Work(raw, device, call, launched, graph, _found(raw.operators.external, gpu.operator))


def _found(ids: Column, wanted: Column) -> Column:
    """Per wanted id its first place among the ids, −1 where it is not there; ids count from 1."""
    usable = np.flatnonzero(ids > 0)
    if not len(usable):
        return np.full(len(wanted), -1, np.int64)
    order = usable[np.argsort(ids[usable], kind="stable")]
    keys = ids[order]
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((wanted > 0) & (keys[at] == wanted), order[at], -1)
