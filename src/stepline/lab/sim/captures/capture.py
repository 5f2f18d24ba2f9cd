"""One simulated case from start to a capture folder, and its truth from a healthy twin."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.lab.sim.captures.cases import Case
from stepline.lab.sim.captures.load import VirtualClient
from stepline.lab.sim.captures.sweep import Level
from stepline.lab.sim.captures.truth import Repeats, Truth, true_of
from stepline.lab.sim.engine import Engine
from stepline.lab.sim.faults import Base, Fault, find_fault
from stepline.lab.sim.instruments.gpu import GpuSampler
from stepline.lab.sim.start import start
from stepline.lab.sim.surfaces import Surface, surface
from stepline.lab.sim.virtual import Virtual

EPOCH_S = 1_767_225_600.0
"""2026-01-01 00:00:00 UTC: simulated captures have a clock of their own."""
_WARM_S, _BETWEEN_S = 60.0, 1.0
_TRACED_STREAMS, _TRACED_STEPS = 16, 6
"""Half of the cases (by seed) are traced at the last level's own streams, half at no more than these."""


def write_capture(case: Case, out: Path) -> Truth:
    """Serve and load one case, and its healthy twin at the last level, on a virtual clock.

    Of a pair of faults also the twins that have but one of them.

    The folder appears only when it is whole.

    Raises:
        UsageError: the model does not fit.
    """
    files, rows, repeats = _serve(case, case.planted, case.levels, traced=True)
    healthy, _ = find_fault("healthy")
    twin = rows if case.fault == healthy.name else _serve(case, healthy, case.levels[-1:], traced=False)[1]
    cured = {}
    names = case.fault.split("+")
    for name in names if len(names) > 1 else ():
        left, _ = find_fault("+".join(other for other in names if other != name))
        cured[name] = _serve(case, left, case.levels[-1:], traced=False)[1][-1]
    truth = true_of(case, rows[-1], twin[-1], repeats, cured)
    folder = out / f"{case.name}.partial"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "truth.toml").write_text(truth.toml(case))
    (folder / "case.toml").write_text(truth.label(case, sorted(files)))
    shutil.rmtree(out / case.name, ignore_errors=True)
    folder.rename(out / case.name)
    return truth


def _serve(
    case: Case, fault: Fault, levels: Sequence[Level], *, traced: bool
) -> tuple[dict[str, bytes], list[dict[str, Any]], Repeats]:
    """The files of one run of a case with `fault`, its rows, and what retractions cost in it."""
    config = _config(case)
    heaviest = max(case.levels, key=lambda level: level.concurrency)
    longest = max(level.input_tokens + level.output_tokens for level in case.levels)
    started = start(
        case.engine,
        case.model,
        config,
        find_gpu(case.gpu),
        fault=fault,
        strength=case.strength,
        seed=case.seed,
        tp=case.tp,
        base=Base(step_ms=0.0, streams=heaviest.concurrency, need_tokens=heaviest.concurrency * longest),
    )
    log: list[str] = []
    virtual = Virtual(Engine(started.scheduler, started.front))
    virtual.now_s = _WARM_S  # start-up lines count back from it
    face = surface(started, virtual, log.append, epoch_s=EPOCH_S, address=("127.0.0.1", 30000))
    face.startup()
    sampler = GpuSampler(started.gpu, started.disturbance, started.shape.math, seed=case.seed)
    repeats = Repeats()
    listeners: tuple[Any, ...] = (sampler.forward, repeats.forward)
    virtual.engine.on_forward.extend(listeners)
    client = VirtualClient(virtual, seed=case.seed, epoch_s=EPOCH_S)
    rows = []
    for level in levels:
        virtual.run(virtual.now_s + _BETWEEN_S)
        repeats.begin()
        rows.append(client.level(level))
    end_s = virtual.now_s
    # Log and counters are read before the profile disturbs them.
    page, info = face.page(), face.info()
    streams = levels[-1].concurrency if case.seed % 2 else min(levels[-1].concurrency, _TRACED_STREAMS)
    text = "".join(log)
    traces = _traces(virtual, client, face, streams, levels[-1].input_tokens) if traced else {}
    files = {
        "server.log": text,
        "metrics.txt": page,
        "config.json": json.dumps(config, indent=1),
        "gpm.csv": sampler.rows(end_s, EPOCH_S),
    }
    if case.engine == "sglang":  # vLLM tells its settings by a route only in development mode
        files["server_info.json"] = json.dumps(info)
    else:  # and the cached part of a prompt only when it was started to
        rows = [row | {"cached_tokens": None} for row in rows]
    files["sweep.json"] = json.dumps(rows)
    return {name: text.encode() for name, text in files.items()} | traces, rows, repeats


def _traces(
    virtual: Virtual, client: VirtualClient, face: Surface, streams: int, input_tokens: int
) -> dict[str, bytes]:
    """A profile of some decode steps under a load of its own, one file a rank; none where no steps came."""
    with tempfile.TemporaryDirectory() as scratch:
        client.hold(streams, input_tokens, 2.0)
        face.begin_profile(
            Path(scratch), lambda rank: f"decode-TP-{rank}.trace.json.gz", _TRACED_STEPS, told="traces"
        )
        virtual.run(virtual.now_s + 2.0)
        client.let_go()
        if face.profiler.active:
            face.end_profile()
        return {path.name: path.read_bytes() for path in sorted(Path(scratch).iterdir())}


def _config(case: Case) -> dict[str, Any]:
    config = find_model(case.model).config
    return config if case.layers is None else config | {"num_hidden_layers": case.layers}
