"""NVML GPM (Hopper and later): what the GPU was busy with, sampled beside the load."""

import importlib
import threading
import time
from pathlib import Path
from typing import Any, Self

_METRICS = {  # column: NVML's name
    "graphics_util": "GRAPHICS_UTIL",
    "sm_util": "SM_UTIL",
    "sm_occupancy": "SM_OCCUPANCY",
    "integer_util": "INTEGER_UTIL",
    "any_tensor_util": "ANY_TENSOR_UTIL",
    "fp32_util": "FP32_UTIL",
    "fp16_util": "FP16_UTIL",
    "dram_bw_util": "DRAM_BW_UTIL",
}
_HEADER = ",".join(["unix_s", *_METRICS, "sm_clock_mhz", "power_w", "clock_event_reasons"])


class GpmSampler:
    """Writes one row every `period_s` to a file between `__enter__` and `__exit__`.

    Utilisations are percent over the period that ends at `unix_s`, of the whole GPU, with all processes.
    Where NVML or GPM is absent nothing is written: a missing file means not measured.
    """

    def __init__(self, path: Path, *, index: int = 0, period_s: float = 0.5) -> None:
        self._path, self._index, self._period_s = path, index, period_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            nvml: Any = importlib.import_module("pynvml")  # optional: only where there is an NVIDIA GPU

            nvml.nvmlInit()
            device = nvml.nvmlDeviceGetHandleByIndex(self._index)
            if not nvml.nvmlGpmQueryDeviceSupport(device).isSupportedDevice:
                return
        except Exception:  # NVML raises its own classes, and only where it is installed
            return
        with self._path.open("w") as out:
            out.write(_HEADER + "\n")
            last, this = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
            nvml.nvmlGpmSampleGet(device, last)
            while not self._stop.wait(self._period_s):
                nvml.nvmlGpmSampleGet(device, this)
                out.write(_row(nvml, device, last, this) + "\n")
                last, this = this, last
        nvml.nvmlShutdown()


def _row(nvml: Any, device: Any, last: Any, this: Any) -> str:
    get = nvml.c_nvmlGpmMetricsGet_t()
    get.version, get.numMetrics, get.sample1, get.sample2 = (
        nvml.NVML_GPM_METRICS_GET_VERSION,
        len(_METRICS),
        last,
        this,
    )
    for slot, name in enumerate(_METRICS.values()):
        get.metrics[slot].metricId = getattr(nvml, f"NVML_GPM_METRIC_{name}")
    nvml.nvmlGpmMetricsGet(get)
    read = [get.metrics[slot] for slot in range(len(_METRICS))]
    utils = [
        "" if each.nvmlReturn else f"{each.value:.2f}" for each in read
    ]  # empty: this one was not measured
    clock = nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM)
    power = nvml.nvmlDeviceGetPowerUsage(device) // 1000
    return ",".join(
        [
            f"{time.time():.2f}",
            *utils,
            f"{clock}",
            f"{power}",
            f"{nvml.nvmlDeviceGetCurrentClocksEventReasons(device)}",
        ]
    )
