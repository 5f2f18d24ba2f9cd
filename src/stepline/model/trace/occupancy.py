"""Occupancy, waves and tail from a launch's shape; the profiler's own field is 0 above 48 KB shared memory.

Allocation rules: CUDA C++ Programming Guide, technical specifications per compute capability, and the CUDA
Occupancy Calculator: registers are given to warps in units of 256, warps of a block in multiples of 4, shared
memory in units of 128 B (256 B on 7.x) plus 1 KB reserved a block from 8.0 on.
"""

import math
from typing import Literal

import msgspec

from stepline.evidence.trace import TraceDevice

_PER_SM = {
    (7, 0): (32, 2048), (7, 5): (16, 1024), (8, 0): (32, 2048), (8, 6): (16, 1536), (8, 7): (16, 1536),
    (8, 9): (24, 1536), (9, 0): (32, 2048), (10, 0): (32, 2048), (10, 3): (32, 2048), (12, 0): (24, 1536),
}  # fmt: skip
"""Resident blocks and threads an SM can hold (Programming Guide, table of technical specifications)."""

Limit = Literal["registers", "shared memory", "threads", "blocks", "grid"]


class Occupancy(msgspec.Struct, frozen=True, kw_only=True):
    """How a launch fills the GPU."""

    blocks_per_sm: int
    occupancy: float
    limited_by: Limit
    waves: float
    tail: float


def occupancy(
    device: TraceDevice, grid: int, threads: int, registers: int, shared_bytes: int
) -> Occupancy | None:
    """Resident blocks, warps, waves and tail of one launch.

    Args:
        device: an NVIDIA device with SM count, registers and shared memory.
        grid: blocks in the launch.
        threads: threads in a block.
        registers: registers a thread.
        shared_bytes: static and dynamic shared memory of a block.

    Returns:
        None where the device or launch is not described well enough (AMD devices, graph nodes without shape).
    """
    blocks_most, threads_most = _PER_SM.get(device.capability or (0, 0), (0, 0))
    if not (
        blocks_most and threads_most and device.sms and device.registers_per_sm and device.shared_bytes_per_sm
    ):
        return None
    if device.warp_threads not in (None, 32) or min(grid, threads) < 1 or min(registers, shared_bytes) < 0:
        return None
    major = (device.capability or (0, 0))[0]
    warps = math.ceil(threads / 32)
    limits: dict[Limit, int] = {"blocks": blocks_most, "threads": threads_most // 32 // warps}
    if registers:
        per_warp = 256 * math.ceil(registers * 32 / 256)
        limits["registers"] = (device.registers_per_sm // per_warp) // 4 * 4 // (4 * math.ceil(warps / 4))
    unit, reserved = (128, 1024) if major >= 8 else (256, 0)
    if block_bytes := unit * math.ceil(shared_bytes / unit) + reserved:
        limits["shared memory"] = device.shared_bytes_per_sm // block_bytes
    blocks = min(limits.values())
    if blocks < 1:
        return None
    binding: Limit = min(limits, key=lambda name: limits[name])
    waves = grid / (blocks * device.sms)
    resident = min(float(blocks), grid / device.sms)
    return Occupancy(
        blocks_per_sm=blocks,
        occupancy=resident * warps * 32 / threads_most,
        limited_by="grid" if grid < blocks * device.sms else binding,
        waves=waves,
        tail=1 - waves / math.ceil(waves),
    )
