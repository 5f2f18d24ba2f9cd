"""One simulated case from start to a capture folder like those of `lab.real`."""

import json
import shutil
from pathlib import Path
from typing import Any

from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.lab.sim.cases import Case
from stepline.lab.sim.engine import Engine
from stepline.lab.sim.faults import Base
from stepline.lab.sim.gpu import GpuSampler
from stepline.lab.sim.load import VirtualClient
from stepline.lab.sim.start import start
from stepline.lab.sim.surfaces import surface
from stepline.lab.sim.virtual import Virtual

EPOCH_S = 1_767_225_600.0
"""2026-01-01 00:00:00 UTC: simulated captures have a clock of their own."""
_WARM_S, _BETWEEN_S = 60.0, 1.0


def write_capture(case: Case, out: Path) -> Path:
    """Serve and load one case on a virtual clock; the folder appears only when it is whole.

    Raises:
        UsageError: the model does not fit.
    """
    config = find_model(case.model).config
    if case.layers is not None:
        config = config | {"num_hidden_layers": case.layers}
    heaviest = max(case.levels, key=lambda level: level.concurrency)
    longest = max(level.input_tokens + level.output_tokens for level in case.levels)
    base = Base(step_ms=0.0, streams=heaviest.concurrency, need_tokens=heaviest.concurrency * longest)
    started = start(
        case.engine,
        case.model,
        config,
        find_gpu(case.gpu),
        fault=case.fault,
        strength=case.strength,
        seed=case.seed,
        tp=case.tp,
        base=base,
    )
    lines: list[str] = []
    virtual = Virtual(Engine(started.scheduler, started.front))
    virtual.now_s = _WARM_S  # start-up lines count back from it
    face = surface(started, virtual, lines.append, epoch_s=EPOCH_S, address=("127.0.0.1", 30000))
    face.startup()
    sampler = GpuSampler(started.gpu, started.disturbance, started.shape.math, seed=case.seed)
    virtual.engine.on_forward.append(sampler.forward)
    client = VirtualClient(virtual, seed=case.seed, epoch_s=EPOCH_S)
    rows: list[dict[str, Any]] = []
    for level in case.levels:
        virtual.run(virtual.now_s + _BETWEEN_S)
        rows.append(client.level(level))
    folder = out / f"{case.name}.partial"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "server.log").write_text("".join(lines))
    (folder / "metrics.txt").write_text(face.page())
    if case.engine == "sglang":  # vLLM tells its settings by a route only in development mode
        (folder / "server_info.json").write_text(json.dumps(face.info()))
    (folder / "sweep.json").write_text(json.dumps(rows))
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "gpm.csv").write_text(sampler.rows(virtual.now_s, EPOCH_S))
    (folder / "truth.toml").write_text(_truth(case))
    shutil.rmtree(out / case.name, ignore_errors=True)
    return folder.rename(out / case.name)


def _truth(case: Case) -> str:
    planted = case.fault.what if case.fault.expected else ""
    values = {
        "name": case.name,
        "fault": planted,
        "look_alike": "" if case.fault.expected else case.fault.name,
        "expected": case.fault.expected,
        "also_true": list(case.fault.also_true),
        "strength": case.strength,
        "seed": case.seed,
        "simulated": True,
        "engine": case.engine,
        "gpu": case.gpu,
        "tp": case.tp,
        "model": case.model,
    }
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
