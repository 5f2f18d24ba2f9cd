"""The kernel table: rows that share name, launch shape and component, dearest first."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace import TraceDevice, TraceKernel
from stepline.evidence.trace_arrays import KERNEL, Column, GpuWork
from stepline.facts import kernels
from stepline.model.trace.attribute import FOUND_BY, Attribution
from stepline.model.trace.bandwidth import rates
from stepline.model.trace.context_work import Found
from stepline.model.trace.occupancy import occupancy
from stepline.model.trace.work import Work

_FRAMEWORK = re.compile(
    r"(^|/)(torch|triton|contextlib\.py|functools\.py|threading\.py)|^<|nn\.Module|_ops\.py|jit_kernel|<built-in"
)


@dataclass(frozen=True)
class Tables:
    """Makes kernel tables of any rows of one device."""

    work: Work
    owned_ns: NDArray[np.float64]
    attribution: Attribution
    device: TraceDevice | None
    context: Found | None

    def of(self, rows: NDArray[np.bool_], steps: int, most: int) -> tuple[tuple[TraceKernel, ...], float]:
        """The dearest kernels of these rows and the busy milliseconds per step of all below them."""
        gpu, chosen = self.work.raw.gpu, np.flatnonzero(rows)
        if not len(chosen):
            return (), 0.0
        first, group = _alike(gpu, self.attribution.component, chosen)
        busy = np.bincount(group, self.owned_ns[chosen])
        total = np.bincount(group, (gpu.end_ns - gpu.start_ns)[chosen])
        count = np.bincount(group)
        order = np.lexsort((first, -busy))  # among equals the first to run
        found = []
        for index in order[:most].tolist():
            row = int(chosen[first[index]])
            mean_ns = float(total[index] / count[index])
            byte_s, flop_s = rates(self.work, row, mean_ns)
            found.append(
                TraceKernel(
                    per_step=float(count[index]) / steps,
                    busy_ms=float(busy[index]) / 1e6 / steps,
                    count=int(count[index]),
                    total_ms=float(total[index]) / 1e6,
                    mean_us=mean_ns / 1e3,
                    site=site(self.work, row),
                    byte_s=byte_s,
                    flop_s=flop_s,
                    **self._described(row),
                )
            )
        return tuple(found), float(busy[order[most:]].sum()) / 1e6 / steps

    def _described(self, row: int) -> dict[str, Any]:
        work, device, context, attribution = self.work, self.device, self.context, self.attribution
        gpu, strings = work.raw.gpu, work.raw.strings
        name = strings[gpu.name[row]]
        grid, block = (
            tuple(int(n) for n in side[row]) if side[row][0] >= 1 else None for side in (gpu.grid, gpu.block)
        )
        registers, shared = int(gpu.registers[row]), int(gpu.shared_bytes[row])
        filled = None
        if device and grid and block and gpu.sort[row] == KERNEL:
            filled = occupancy(device, int(np.prod(grid)), int(np.prod(block)), registers, shared)
        multiple = float(context.multiple[row]) if context else -1.0
        return {
            "name": name[:240],
            "component": attribution.components[attribution.component[row]],
            "found_by": FOUND_BY[attribution.found_by[row]],
            "grid": grid,
            "block": block,
            "registers": registers if registers >= 0 else None,
            "shared_bytes": shared if shared >= 0 else None,
            "blocks_per_sm": filled.blocks_per_sm if filled else None,
            "occupancy": filled.occupancy if filled else None,
            "limited_by": filled.limited_by if filled else None,
            "waves": filled.waves if filled else None,
            "tail": filled.tail if filled else None,
            "path": kernels.path(name) if gpu.sort[row] == KERNEL else None,
            "dtype": kernels.dtype(name),
            "shapes": _shapes(work, row),
            "in_graph": bool(work.graph[row]) if work.call[row] >= 0 else None,
            "context_multiple": multiple if multiple > 0 else None,
        }


def _shapes(work: Work, row: int) -> str | None:
    operator, shapes = work.operator[row], work.raw.operators.shapes
    if operator < 0 or shapes[operator] < 0:
        return None
    return re.sub(r"\s+", "", work.raw.strings[shapes[operator]])[:160]


def _alike(gpu: GpuWork, component: Column, chosen: Column) -> tuple[Column, Column]:
    """First row and group number of rows that share name, launch shape and component."""
    key = np.zeros(len(chosen), np.uint64)
    for column in (gpu.name, gpu.registers, gpu.shared_bytes, *gpu.grid.T, *gpu.block.T, component):
        key = (key ^ column[chosen].astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)  # a mixed 64-bit key: equal rows collide, others practically never
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    return first, group


def site(work: Work, row: int) -> str | None:
    """Innermost frame outside the framework around a row's launch; graph replays have none of their own."""
    frames, calls, call = work.raw.frames, work.raw.calls, int(work.call[row])
    if call < 0 or work.graph[row] or not len(frames):
        return None
    at, thread = calls.start_ns[call], calls.thread[call]
    before = int(np.searchsorted(frames.start_ns, at, "right"))
    inside = np.flatnonzero((frames.end_ns[:before] > at) & (frames.thread[:before] == thread))
    names = (work.raw.strings[index] for index in frames.name[inside[::-1]].tolist())
    return next((name for name in names if not _FRAMEWORK.search(name)), None)
