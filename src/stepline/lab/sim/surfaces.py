"""The surface of each engine by its name."""

from collections.abc import Callable
from typing import Any, cast

from stepline.lab.sim.engine import Clocked
from stepline.lab.sim.instruments.profiler import Profiler
from stepline.lab.sim.sglang.api import SglangApi
from stepline.lab.sim.sglang.log import SglangLog
from stepline.lab.sim.start import Started
from stepline.lab.sim.vllm.api import VllmApi
from stepline.lab.sim.vllm.log import VllmLog
from stepline.lab.sim.vllm.policy import VllmScheduler

Surface = SglangApi | VllmApi
"""Both answer calls, and tell `info()`, `page()` and, in the log, `startup()`."""


def surface(
    started: Started, live: Clocked, write: Callable[[str], Any], *, epoch_s: float, address: tuple[str, int]
) -> Surface:
    """Give a started engine its face; its log goes to `write`, stamped from `epoch_s` on."""
    settings, memory = started.scheduler.settings, started.gpu.memory_bytes
    profiler = Profiler(live.engine, started.shape, started.gpu, epoch_s=epoch_s)
    if settings.engine == "vllm":
        scheduler = cast("VllmScheduler", started.scheduler)
        return VllmApi(live, VllmLog(write, scheduler, started.shape, epoch_s=epoch_s), address, profiler)
    log = SglangLog(write, settings, started.shape, memory, epoch_s)
    return SglangApi(live, started.shape, log, address, profiler)
