"""From a model, a GPU and a fault to a scheduler that is ready to run."""

from collections.abc import Mapping
from typing import Any

import msgspec

from stepline.errors import UsageError
from stepline.facts.hardware import Gpu
from stepline.lab.sim.calibration import load_calibration
from stepline.lab.sim.faults import Fault
from stepline.lab.sim.frontend import FrontEnd
from stepline.lab.sim.scheduler import Scheduler
from stepline.lab.sim.settings import Settings
from stepline.lab.sim.sglang.policy import SglangScheduler
from stepline.lab.sim.shape import Shape, shape_of
from stepline.lab.sim.world import Disturbance, World

VERSIONS = {"sglang": "0.5.16"}
_POOL_SHARE = 0.88
"""Of the GPU's memory, weights and KV together, as engines take it by default."""


class Started(msgspec.Struct, frozen=True):
    """One simulated engine after start-up."""

    scheduler: Scheduler
    front: FrontEnd
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
        changes: settings other than the engine's defaults, before the fault.

    Raises:
        UsageError: The model does not fit the GPUs, or the engine has no simulation.
        UnknownFact: The model has parts that the simulation has no formula for.
    """
    if engine not in VERSIONS:
        raise UsageError(f"no simulation of {engine!r}; there is one of {', '.join(VERSIONS)}")
    shape = shape_of(config, tp)
    pool = gpu.memory_bytes * _POOL_SHARE - shape.weight_bytes
    tokens = int(pool / shape.kv_bytes_per_token)
    if tokens < 4096:
        raise UsageError(
            f"{model} needs {shape.weight_bytes / 2**30:.0f} GiB a rank and leaves too little of {gpu.name}; "
            "more ranks (--tp) or another GPU"
        )
    context = shape.positions
    estimate = min(max(int(tokens / context * 512), 2048), 4096)
    settings = Settings(
        engine=engine,
        version=VERSIONS[engine],
        model=model,
        gpu=gpu.name,
        tp=tp,
        context_length=context,
        max_running=min(estimate, tokens // 2),
        kv_tokens=tokens,
        **(changes or {}),
    )
    settings, disturbance = fault.plant((settings, Disturbance()), strength)
    world = World(shape, gpu, settings, disturbance, load_calibration(), seed=seed)
    return Started(SglangScheduler(settings, world), FrontEnd(load_calibration(), disturbance), shape, gpu)
