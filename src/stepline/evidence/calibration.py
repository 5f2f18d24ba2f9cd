"""What one machine's GPUs reach in measurements of single operations, as `stepline lab calibrate` saves it."""

from typing import Literal

import msgspec

SCHEMA_VERSION = 1

Group = Literal["bandwidth", "peak", "stream", "kernel", "launch", "attention", "stack", "allreduce"]
"""Bulk copies and reads; large matrix products; products of few rows that stream their weights; small kernels beside
them; launches; decode attention; whole layers of these parts; all-reduces."""


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """The GPU while it worked on one measurement; None where the driver would not say."""

    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    power_w: float | None = None
    """As the driver averages it, over up to a second: longer than most measurements."""
    temperature_c: int | None = None
    clock_event_reasons: int | None = None
    """NVML's bit mask of reasons for reduced clocks."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One operation, timed several times."""

    group: Group
    name: str
    dtype: str = ""
    """Of what is read or multiplied; empty where it does not matter."""
    shape: dict[str, int] = {}
    """Sizes by name: `rows`, `n` and `k` of a product of [rows, k] and [k, n]; `rows` of a small kernel; `tokens`."""
    method: Literal["graph", "host"]
    """GPU time inside a CUDA graph, or time the host takes to launch."""
    ms: float
    """Of one operation, median of the samples."""
    low_ms: float
    high_ms: float
    """The quickest and the slowest sample."""
    samples: int
    bytes: float = 0
    """Read and written in device memory by one operation; 0 where that is not the point."""
    flops: float = 0
    conditions: Conditions = Conditions()

    @property
    def bytes_s(self) -> float:
        """Bytes a second at the median."""
        return self.bytes / self.ms * 1e3

    @property
    def flops_s(self) -> float:
        """FLOPs a second at the median."""
        return self.flops / self.ms * 1e3


class NotMeasured(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement that gave no number, and why."""

    group: Group
    name: str
    reason: str


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured, without anything that tells this machine from others of its kind."""

    gpu: str
    """As the driver calls it."""
    gpus: int
    l2_bytes: int
    sms: int
    driver: str | None
    cuda: str | None
    torch: str
    nccl: str | None
    python: str


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """All measurements of one machine."""

    schema_version: int = SCHEMA_VERSION
    stepline: str
    date: str
    """Day of the measurement, UTC."""
    seconds: float
    """How long it took."""
    machine: Machine
    measured: tuple[Measured, ...]
    not_measured: tuple[NotMeasured, ...] = ()

    def of(self, group: Group) -> tuple[Measured, ...]:
        """The measurements of one group, in their order."""
        return tuple(each for each in self.measured if each.group == group)
