"""GPU counters sampled over time."""

import msgspec

from stepline.evidence.origin import Origin


class GpuSample(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Mean activity of one GPU since the previous sample, each a share of 1 (NVML GPM, DCGM).

    `graphics_busy` is time with any work on the GPU, `sm_busy` the share of SM-cycles with a resident warp,
    `tensor_busy`, `fp32_busy` and `dram_busy` the share of cycles that pipe or the memory interface was busy.
    """

    origin: Origin
    time_s: float | None = None
    gpu: int = 0
    graphics_busy: float | None = None
    sm_busy: float | None = None
    sm_occupancy: float | None = None
    tensor_busy: float | None = None
    fp32_busy: float | None = None
    dram_busy: float | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    clock_event_reasons: int | None = None
    """NVML's bit mask of reasons for reduced clocks."""
