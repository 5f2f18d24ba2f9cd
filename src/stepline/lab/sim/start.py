"""From a model, a GPU and a fault to a scheduler that is ready to run."""

from collections.abc import Mapping
from typing import Any

import msgspec

from stepline.errors import UsageError
from stepline.facts.hardware import Gpu
from stepline.lab.sim.calibration import load_calibration
from stepline.lab.sim.faults import SERVED, Base, Fault, Start
from stepline.lab.sim.frontend import FrontEnd
from stepline.lab.sim.scheduler import Scheduler
from stepline.lab.sim.settings import LEAST_POOL, sglang_settings, vllm_settings
from stepline.lab.sim.sglang.policy import SglangScheduler
from stepline.lab.sim.shape import Shape, shape_of, widened
from stepline.lab.sim.vllm.policy import VllmScheduler
from stepline.lab.sim.world import Disturbance, Work, World

ENGINES = {"sglang": (sglang_settings, SglangScheduler), "vllm": (vllm_settings, VllmScheduler)}


class Started(msgspec.Struct, frozen=True):
    """One simulated engine after start-up."""

    scheduler: Scheduler
    front: FrontEnd
    disturbance: Disturbance
    shape: Shape
    gpu: Gpu


def start(
    engine: str,
    model: str,
    config: Mapping[str, Any],
    gpu: Gpu,
    *,
    fault: Fault,
    strength: int,
    seed: int,
    tp: int = 1,
    base: Base = SERVED,
    changes: Mapping[str, Any] | None = None,
) -> Started:
    """Start an engine.

    Args:
        engine: whose surface and scheduling it has.
        model: the name it serves under.
        config: the model's config.
        gpu: what it runs on.
        fault: what is planted.
        strength: how strongly, 1 to 3.
        seed: of its noise and of this server's peculiarities.
        tp: ranks that share every layer.
        base: the load that the fault is measured against; its step is filled in here.
        changes: settings other than the engine's defaults, before the fault.

    Raises:
        UsageError: The model does not fit the GPUs, or the engine has no simulation.
        UnknownFact: The model has parts that the simulation has no formula for.
    """
    if engine not in ENGINES:
        raise UsageError(f"no simulation of {engine!r}; there is one of {', '.join(ENGINES)}")
    shape = shape_of(config, tp)
    defaults, scheduler = ENGINES[engine]
    settings = defaults(model, gpu, shape, tp)
    settings = msgspec.structs.replace(settings, **(changes or {}))
    known = load_calibration()
    healthy = World(shape, gpu, settings, Disturbance(), known, seed=seed)
    step_ms = 1e3 * healthy.price(Work(decoding=1, live_tokens=600)).gpu_s
    planned = Start(settings, Disturbance(), msgspec.structs.replace(base, step_ms=step_ms))
    planted = fault.plant(planned, strength)
    if planted.disturbance.wide_parts:
        planted, shape = _in_32_bits(planted, shape)
    world = World(shape, gpu, planted.settings, planted.disturbance, known, seed=seed)
    return Started(
        scheduler(planted.settings, world),
        FrontEnd(known, planted.disturbance),
        planted.disturbance,
        shape,
        gpu,
    )


def _in_32_bits(planted: Start, shape: Shape) -> tuple[Start, Shape]:
    """The start and the shape after weights were widened: they take their room from the KV pool."""
    wide = widened(shape, planted.disturbance.wide_parts, planted.disturbance.wide_math)
    taken = int((wide.weight_bytes - shape.weight_bytes) / shape.kv_bytes_per_token)
    left = (planted.settings.kv_tokens - taken) // 16 * 16
    if left < LEAST_POOL:
        raise UsageError("the weights in 32 bits leave too little memory for a KV pool; take a smaller model")
    return planted.set(kv_tokens=left), wide
