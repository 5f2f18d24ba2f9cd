"""NVIDIA's DCGM exporter: GPU counters as Prometheus text, for servers on other machines.

Names of dcgm-exporter 2.4 to 4.x (`etc/dcp-metrics-included.csv`); profiling fields are shares of 1.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from stepline.evidence.gpu import GpuSample
from stepline.evidence.origin import Origin

PREFIX = "DCGM_FI_"
_FIELDS = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "graphics_busy",
    "DCGM_FI_PROF_SM_ACTIVE": "sm_busy",
    "DCGM_FI_PROF_SM_OCCUPANCY": "sm_occupancy",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "tensor_busy",
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE": "fp32_busy",
    "DCGM_FI_PROF_DRAM_ACTIVE": "dram_busy",
    "DCGM_FI_DEV_SM_CLOCK": "sm_clock_mhz",
    "DCGM_FI_DEV_MEM_CLOCK": "memory_clock_mhz",
    "DCGM_FI_DEV_POWER_USAGE": "power_w",
    "DCGM_FI_DEV_GPU_TEMP": "temperature_c",
}
_REASONS = ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS")
"""The new and the old name of one bit mask, NVML's."""

Sample = tuple[str, Mapping[str, str], float]


def gpu_samples(samples: Sequence[Sample], origin: Origin, time_s: float | None) -> list[GpuSample]:
    """One record a GPU of a scrape. Parts of a GPU (MIG, with a `GPU_I_ID`) are left out: they are not the whole."""
    by_gpu: dict[int, dict[str, float]] = defaultdict(dict)
    reasons: dict[int, int] = {}
    for name, labels, value in samples:
        number = labels.get("gpu", "")
        if (
            not name.startswith(PREFIX)
            or not number.isdecimal()
            or labels.get("GPU_I_ID")
            or math.isnan(value)
        ):
            continue
        if name in _FIELDS:
            by_gpu[int(number)][_FIELDS[name]] = value
        elif name in _REASONS:
            reasons[int(number)] = int(value)
    return [
        GpuSample(
            origin=origin, time_s=time_s, gpu=gpu, clock_event_reasons=reasons.get(gpu), **by_gpu.get(gpu, {})
        )
        for gpu in sorted({*by_gpu, *reasons})
    ]


def gpu_name(samples: Sequence[Sample]) -> str | None:
    """The model of the GPUs, where all are alike."""
    names = {
        labels["modelName"]
        for name, labels, _ in samples
        if name.startswith(PREFIX) and labels.get("modelName")
    }
    return names.pop() if len(names) == 1 else None
