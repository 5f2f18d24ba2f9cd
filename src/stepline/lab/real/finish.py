"""Make a recording fit to be passed on: names of this machine taken out, and what is true of it written down."""

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec

from stepline.lab.real.matrix import Case, Matrix
from stepline.lab.real.scrub import scrub


def finish(
    folder: Path, case: Case, host: Case, matrix: Matrix, *, work: Path, beside: list[str], seconds: float
) -> None:
    """Scrub every file of a recording and add `truth.toml`.

    Args:
        folder: the recording.
        case: what was recorded.
        host: the case whose engine it was recorded on: itself, or the one it names.
        matrix: where engine, version and GPU are named.
        work: the engine's working directory, taken out of every path.
        beside: names of cases whose engines sat idle on the same GPU meanwhile.
        seconds: how long the recording took, with the GPU held all the while.
    """
    for path in folder.iterdir():
        if path.suffix == ".gz":
            text = gzip.decompress(path.read_bytes()).decode(errors="replace")
            path.write_bytes(gzip.compress(scrub(text, work).encode()))
        elif path.is_file():
            path.write_text(scrub(path.read_text(errors="replace"), work))
    (folder / "config.json").write_text(json.dumps(matrix.model[host.model], indent=1))
    (folder / "truth.toml").write_text(truth(case, host, matrix, beside, seconds))


def truth(case: Case, host: Case, matrix: Matrix, beside: list[str], seconds: float) -> str:
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
        "model": host.model,
        "flags": list(host.flags),
        "idle_engines_on_the_gpu": beside,
        "recording_s": round(seconds, 1),
    }
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    if case.neighbour:
        lines.append(f"neighbour = {json.dumps(case.neighbour)}")
    lines += _table("load", msgspec.to_builtins(case.load))
    lines += _table("traffic", msgspec.to_builtins(case.traffic)) if case.traffic else []
    lines += _table("environment", host.environment)
    return "\n".join(lines) + "\n"


def _table(name: str, values: dict[str, Any]) -> list[str]:
    return [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
