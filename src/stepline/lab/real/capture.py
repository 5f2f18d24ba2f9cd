"""Measure one running engine and write its capture folder."""

import asyncio
import gzip
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from stepline.lab.real import http
from stepline.lab.real.engine import Engine
from stepline.lab.real.gpm import GpmSampler
from stepline.lab.real.load import run_level
from stepline.lab.real.matrix import Case, Matrix
from stepline.lab.real.profile import take_trace
from stepline.lab.real.scrub import scrub

_BETWEEN_S = 1.0  # so that a level's requests are out of the engine before the next begins


async def _measure(
    engine: Engine, case: Case, config: dict[str, Any], folder: Path
) -> dict[str, tuple[float, float]]:
    vocab, rows = config["vocab_size"], []
    with GpmSampler(folder / "gpm.csv"):
        for number, level in enumerate(case.level):
            rows.append(await run_level(engine.port, level, seed=number + 1, vocab=vocab))
            (folder / "sweep.json").write_text(json.dumps(rows))
            await asyncio.sleep(_BETWEEN_S)
    (folder / "metrics.txt").write_bytes(await http.call(engine.port, "/metrics"))
    (folder / "server_info.json").write_bytes(await http.call(engine.port, "/server_info"))
    if case.profile is None:
        return {}
    with tempfile.TemporaryDirectory() as scratch:
        trace, start, end = await take_trace(
            engine.port, case.profile, case.level[-1], Path(scratch), vocab=vocab
        )
        if trace is not None:
            shutil.move(trace, folder / "decode-TP-0.trace.json.gz")
    return {"profile_unix_s": (round(start, 3), round(end, 3))}


def write_capture(
    engine: Engine, case: Case, matrix: Matrix, out: Path, *, work: Path, beside: list[str]
) -> None:
    """Drive the load of `case`, then write `out/<case>`; the folder appears only when it is whole.

    Args:
        engine: the server, ready.
        case: what it was started for.
        matrix: where engine, version and GPU are named.
        out: folder of captures.
        work: the engine's working directory, taken out of every path.
        beside: names of cases whose engines sit idle on the same GPU meanwhile.
    """
    folder, config = out / f"{case.name}.partial", matrix.model[case.model]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    times = asyncio.run(_measure(engine, case, config, folder))
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "server.log").write_text(engine.log.read_text(errors="replace"))
    for name in ("server.log", "server_info.json", "metrics.txt"):
        (folder / name).write_text(scrub((folder / name).read_text(), work))
    if (trace := folder / "decode-TP-0.trace.json.gz").exists():
        text = gzip.decompress(trace.read_bytes()).decode(errors="replace")
        trace.write_bytes(gzip.compress(scrub(text, work).encode()))
    (folder / "truth.toml").write_text(truth(case, matrix, beside, times))
    shutil.rmtree(out / case.name, ignore_errors=True)
    folder.rename(out / case.name)


def truth(case: Case, matrix: Matrix, beside: list[str], times: dict[str, tuple[float, float]]) -> str:
    """`truth.toml`: what was planted, what a diagnosis should and must not confirm, and how it was run."""
    values: dict[str, Any] = {
        "name": case.name,
        "fault": case.fault,
        "expected": case.expected,
        "also_true": list(case.also_true),
        "forbidden": list(case.forbidden),
        "twin": case.twin or "",
        "engine": matrix.engine,
        "version": matrix.version,
        "gpu": matrix.gpu,
        "model": case.model,
        "flags": list(case.flags),
        "idle_engines_on_the_gpu": beside,
    } | {k: list(v) for k, v in times.items()}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    lines.append("[environment]")
    lines += [f"{key} = {json.dumps(value)}" for key, value in case.environment.items()]
    return "\n".join(lines) + "\n"
