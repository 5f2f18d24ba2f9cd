"""What GPU counters would have read, from the forwards of a simulated engine."""

import random
from collections import defaultdict

from stepline.facts.hardware import Gpu
from stepline.lab.sim.calibration import load_calibration
from stepline.lab.sim.forward import Forward
from stepline.lab.sim.world import Disturbance, peak_of

PERIOD_S = 0.5
HEADER = (
    "unix_s,graphics_util,sm_util,sm_occupancy,integer_util,any_tensor_util,fp32_util,fp16_util,dram_bw_util,"
    "sm_clock_mhz,power_w,clock_event_reasons"
)
_POWER_CAP = 0x4
_SM_OF_BUSY, _OCCUPANCY_OF_BUSY = 0.67, 0.095
"""Shares of SM cycles and of warps of a busy GPU: healthy_8b at 1 running, tests/data/h200-sglang-2."""


class GpuSampler:
    """Adds up forwards in half seconds; percentages are of the whole GPU over the half second before `unix_s`."""

    def __init__(self, gpu: Gpu, disturbance: Disturbance, math: str, *, seed: int) -> None:
        self._gpu, self._disturbance, self._math = gpu, disturbance, math
        self._busy: dict[int, float] = defaultdict(float)
        self._bytes: dict[int, float] = defaultdict(float)
        self._flops: dict[int, float] = defaultdict(float)
        self._random = random.Random(seed)  # noqa: S311 - a simulation

    def forward(self, done: Forward) -> None:
        """Spread a forward's GPU time over the periods it touches."""
        start, end = done.start_s, done.start_s + done.cost.gpu_s
        length = max(1e-9, done.cost.gpu_s)
        period = int(start / PERIOD_S)
        while start < end:
            edge = min(end, (period + 1) * PERIOD_S)
            part = (edge - start) / length
            self._busy[period] += edge - start
            self._bytes[period] += done.cost.read_bytes * part
            self._flops[period] += done.cost.flops * part
            start, period = edge, period + 1

    def rows(self, until_s: float, epoch_s: float) -> str:
        """The file's text from second 0 to `until_s` of the engine's clock."""
        periods = range(int(until_s / PERIOD_S))
        rows = [f"{epoch_s + (period + 1) * PERIOD_S:.2f},{self._row(period)}" for period in periods]
        return "\n".join([HEADER, *rows]) + "\n"

    def _row(self, period: int) -> str:
        known, fault = load_calibration(), self._disturbance
        busy = min(1.0, self._busy[period] / PERIOD_S)
        dram = min(1.0, self._bytes[period] / PERIOD_S / self._gpu.bandwidth_bytes_s)
        on_tensor_cores = 0.0 if self._math == "fp32" else self._flops[period]
        tensor = min(1.0, on_tensor_cores / PERIOD_S / peak_of(self._gpu, self._math))
        asked_w = known.idle_w + known.memory_w * dram + known.tensor_w * tensor
        power = min(known.power_limit_w, asked_w) * fault.clock_share
        capped = asked_w > known.power_limit_w
        clock = known.sm_clock_mhz * fault.clock_share * (0.85 if capped else 1.0)
        reasons = fault.clock_reasons | (_POWER_CAP if capped else 0)

        def shown(share: float) -> str:
            return f"{100 * min(1.0, share * self._random.gauss(1, 0.01)):.2f}"

        return ",".join(
            (
                shown(busy),
                shown(busy * _SM_OF_BUSY),
                shown(busy * _OCCUPANCY_OF_BUSY),
                shown(0.015 * busy),
                shown(tensor),
                shown(0.0006 * busy),
                "0.00",
                shown(dram),
                f"{clock:.0f}",
                f"{power:.0f}",
                str(reasons),
            )
        )
