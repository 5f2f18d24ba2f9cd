"""NVML on this machine: clocks, power and, from Hopper on, what the GPU's parts were busy with (GPM)."""

import contextlib
import importlib
import threading
import time
from pathlib import Path
from typing import Any, Self

GPM = {  # column: NVML's name
    "graphics_util": "GRAPHICS_UTIL",
    "sm_util": "SM_UTIL",
    "sm_occupancy": "SM_OCCUPANCY",
    "any_tensor_util": "ANY_TENSOR_UTIL",
    "fp32_util": "FP32_UTIL",
    "dram_bw_util": "DRAM_BW_UTIL",
}
PLAIN = ("sm_clock_mhz", "memory_clock_mhz", "power_w", "temperature_c", "clock_event_reasons")
_HEADER = ",".join(["unix_s", "gpu", *GPM, *PLAIN])


def gpu_names() -> tuple[str, ...]:
    """Names of the GPUs here; empty without NVML."""
    nvml = _nvml()
    if nvml is None:
        return ()
    with contextlib.suppress(nvml.NVMLError):
        count = nvml.nvmlDeviceGetCount()
        return tuple(
            str(nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(index))) for index in range(count)
        )
    return ()


def _nvml() -> Any:
    """The binding (nvidia-ml-py) ready for use, or None: it is optional, as the GPU is."""
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


class GpuSampler:
    """Writes one row a GPU every `period_s` to a CSV between `__enter__` and `__exit__`.

    Utilisations are percent over the period that ends at `unix_s`, of the whole GPU, with all processes; an
    empty cell was not measured. Without NVML there is no file.
    """

    def __init__(self, path: Path, *, period_s: float = 0.5) -> None:
        self._path, self._period_s = path, period_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpu sampler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        nvml = _nvml()
        if nvml is None:
            return
        try:
            gpus = [_Gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
            with self._path.open("w") as out:
                out.write(_HEADER + "\n")
                while not self._stop.wait(self._period_s):
                    out.writelines(f"{gpu.row()}\n" for gpu in gpus)
                    out.flush()
        except (nvml.NVMLError, OSError):
            return  # the rows so far stay


class _Gpu:
    """One device with its last GPM sample."""

    def __init__(self, nvml: Any, index: int) -> None:
        self._nvml, self._index = nvml, index
        self._device = nvml.nvmlDeviceGetHandleByIndex(index)
        self._last = None
        with contextlib.suppress(nvml.NVMLError, AttributeError):
            if nvml.nvmlGpmQueryDeviceSupport(self._device).isSupportedDevice:
                self._last, self._next = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
                nvml.nvmlGpmSampleGet(self._device, self._last)

    def row(self) -> str:
        """One line of the CSV."""
        nvml, device = self._nvml, self._device
        plain = [
            self._cell(lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM)),
            self._cell(lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM)),
            self._cell(lambda: round(nvml.nvmlDeviceGetPowerUsage(device) / 1000, 1)),
            self._cell(lambda: nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU)),
            self._cell(lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(device)),
        ]
        return ",".join([f"{time.time():.2f}", str(self._index), *self._gpm(), *plain])

    def _cell(self, ask: Any) -> str:
        try:
            return str(ask())
        except self._nvml.NVMLError:
            return ""

    def _gpm(self) -> list[str]:
        nvml = self._nvml
        if self._last is None:
            return [""] * len(GPM)
        nvml.nvmlGpmSampleGet(self._device, self._next)
        get = nvml.c_nvmlGpmMetricsGet_t()
        get.version, get.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, len(GPM)
        get.sample1, get.sample2 = self._last, self._next
        for slot, name in enumerate(GPM.values()):
            get.metrics[slot].metricId = getattr(nvml, f"NVML_GPM_METRIC_{name}")
        nvml.nvmlGpmMetricsGet(get)
        self._last, self._next = self._next, self._last
        read = [get.metrics[slot] for slot in range(len(GPM))]
        return ["" if each.nvmlReturn else f"{each.value:.2f}" for each in read]
