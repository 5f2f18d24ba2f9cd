"""Clocks, power and reasons for reduced clocks while the GPU works, by NVML where it is there."""

import importlib
from collections.abc import Callable
from typing import Any

from stepline.evidence.calibration import Conditions


class Driver:
    """NVML for one GPU; every reading is None where the driver or the binding (nvidia-ml-py) is missing."""

    def __init__(self, bus_id: str | None) -> None:
        self._nvml: Any = None
        try:
            self._nvml = importlib.import_module("pynvml")
            self._nvml.nvmlInit()
            self._device = (
                self._nvml.nvmlDeviceGetHandleByIndex(0)
                if bus_id is None
                else self._nvml.nvmlDeviceGetHandleByPciBusId(bus_id)
            )
        except Exception:  # an absent module, or one of NVML's own classes
            self._nvml = None

    def version(self) -> str | None:
        """The driver's version."""
        said = self._read(lambda nvml, _: nvml.nvmlSystemGetDriverVersion())
        return said.decode() if isinstance(said, bytes) else said

    def conditions(self) -> Conditions:
        """What holds now."""
        milliwatts = self._read(lambda nvml, device: nvml.nvmlDeviceGetPowerUsage(device))
        return Conditions(
            sm_clock_mhz=self._read(lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
            memory_clock_mhz=self._read(
                lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM)
            ),
            power_w=None if milliwatts is None else milliwatts / 1e3,
            temperature_c=self._read(
                lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)
            ),
            clock_event_reasons=self._read(
                lambda nvml, gpu: nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu)
            ),
        )

    def _read(self, ask: Callable[[Any, Any], Any]) -> Any:
        if self._nvml is None:
            return None
        try:
            return ask(self._nvml, self._device)
        except Exception:  # a reading that this GPU or container does not give
            return None
