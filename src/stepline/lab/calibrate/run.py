"""Runs all plans within a budget of seconds; each on its own, so that one failure costs one number."""

import datetime as dt
import importlib
import platform
import time
from collections.abc import Callable, Iterator
from typing import Any

from stepline.errors import UsageError
from stepline.evidence.calibration import Calibration, Machine, Measured, NotMeasured
from stepline.lab.calibrate.allreduce import all_reduce
from stepline.lab.calibrate.bulk import Pool, bandwidth, peaks, streams
from stepline.lab.calibrate.clock import GpuClock
from stepline.lab.calibrate.conditions import Driver
from stepline.lab.calibrate.plan import Plan, remark
from stepline.lab.calibrate.small import attention, kernels, stack

Say = Callable[[str], None]

RANKS_TIMEOUT_S = 90.0
"""Every rank imports torch and connects before the first number."""


def calibrate(seconds: float, say: Say, *, version: str) -> Calibration:
    """Measure the GPUs here for about `seconds`, after torch has loaded; `say` hears of each part as it begins.

    Args:
        seconds: After these nothing new is begun; all-reduces over several GPUs come on top.
        say: Told each part in a few words.
        version: Of stepline, for the record.

    Raises:
        UsageError: torch is not installed, or sees no NVIDIA GPU.
    """
    start = time.monotonic()
    torch = load_torch()
    properties = torch.cuda.get_device_properties(0)
    driver = Driver(_bus_id(properties))
    with torch.inference_mode(), torch.cuda.stream(torch.cuda.Stream()):
        pool = Pool(torch)
        clock = GpuClock(torch, driver)
        clock.warm(lambda: pool.bf16.mul_(1.0))
        measured, missing = measure(pool, clock, seconds, say)
    gpus = torch.cuda.device_count()
    if gpus > 1:
        say(f"all-reduce over {gpus} GPUs")
    reduced, unreduced = all_reduce(gpus, RANKS_TIMEOUT_S)
    return Calibration(
        stepline=version,
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        seconds=round(time.monotonic() - start, 1),
        machine=_machine(torch, properties, driver, gpus),
        measured=(*measured, *reduced),
        not_measured=(*missing, *unreduced),
    )


def load_torch() -> Any:
    """Torch with a GPU it can use.

    Raises:
        UsageError: there is none.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise UsageError(f"calibrate measures with torch, which cannot be imported here ({error})") from None
    if torch.version.cuda is None or not torch.cuda.is_available():
        raise UsageError("calibrate measures GPUs, and torch sees no NVIDIA GPU here")
    return torch


def measure(
    pool: Pool, clock: GpuClock, seconds: float, say: Say
) -> tuple[list[Measured], list[NotMeasured]]:
    """Time every plan until the seconds are over; what was not timed is listed with its reason."""
    end = time.monotonic() + seconds
    measured: list[Measured] = []
    missing: list[NotMeasured] = []
    for title, plans in _parts(pool):
        say(title)
        for plan in plans:
            if time.monotonic() > end:
                reason = f"the {seconds:g} s were over (--seconds)"
                missing.append(NotMeasured(group=plan.group, name=_label(plan), reason=reason))
                continue
            try:
                timed = clock.graph(plan.bodies())
            except Exception as error:  # torch's, CUDA's or memory's: one number less
                missing.append(NotMeasured(group=plan.group, name=_label(plan), reason=remark(error)))
                continue
            measured.append(
                Measured(
                    group=plan.group,
                    name=plan.name,
                    dtype=plan.dtype,
                    shape=plan.shape,
                    method="graph",
                    bytes=plan.bytes,
                    flops=plan.flops,
                    **timed.summary,
                )
            )
    try:
        measured += _launches(pool.torch, clock)
    except Exception as error:
        missing.append(NotMeasured(group="launch", name="launches", reason=remark(error)))
    return measured, missing


def _parts(pool: Pool) -> Iterator[tuple[str, Iterator[Plan]]]:
    """What matters most first."""
    yield "bulk bandwidth", bandwidth(pool)
    yield "matrix products", peaks(pool)
    yield "weights streamed by small batches", streams(pool)
    yield "small kernels", kernels(pool)
    yield "decode attention", attention(pool, "FLASH_ATTENTION")
    yield "layers", stack(pool)
    yield "decode attention by cuDNN", attention(pool, "CUDNN_ATTENTION")


def _launches(torch: Any, clock: GpuClock) -> list[Measured]:
    """What the host takes to launch one small kernel by itself, or a graph of one and of a thousand."""
    left, right, out = (torch.ones(1, device="cuda") for _ in range(3))

    def add() -> None:
        torch.add(left, right, out=out)

    launches = [("one kernel, eager", clock.host(add, 500))]
    for nodes in (1, 1000):
        graph = clock.capture([add] * nodes)
        # Few enough that the queue of the driver is never full, which would time the GPU.
        launches.append((f"graph of {nodes}", clock.host(graph.replay, 100 if nodes == 1 else 5)))
    return [Measured(group="launch", name=name, method="host", **timed.summary) for name, timed in launches]


def _label(plan: Plan) -> str:
    sizes = " ".join(f"{key}={value}" for key, value in plan.shape.items())
    return " ".join(word for word in (plan.name, plan.dtype, sizes) if word)


def _bus_id(properties: Any) -> str | None:
    """PCI address as NVML takes it; torch counts GPUs in another order. Never part of the record."""
    try:
        return f"{properties.pci_domain_id:08X}:{properties.pci_bus_id:02X}:{properties.pci_device_id:02X}.0"
    except AttributeError:
        return None


def _machine(torch: Any, properties: Any, driver: Driver, gpus: int) -> Machine:
    try:
        nccl = ".".join(str(part) for part in torch.cuda.nccl.version())
    except Exception:  # a build without NCCL
        nccl = None
    return Machine(
        gpu=str(properties.name),
        gpus=gpus,
        l2_bytes=int(properties.L2_cache_size),
        sms=int(properties.multi_processor_count),
        driver=driver.version(),
        cuda=torch.version.cuda,
        torch=str(torch.__version__),
        nccl=nccl,
        python=platform.python_version(),
    )
