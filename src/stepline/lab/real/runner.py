"""Run the cases of a matrix: start engines, measure them one at a time, keep every finished capture."""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from stepline.errors import UsageError
from stepline.lab.real.capture import write_capture
from stepline.lab.real.engine import Engine, EngineFailed, write_model
from stepline.lab.real.matrix import Case, Matrix

_BETWEEN_STARTS_S = 4.0
"""An engine logs free GPU memory before and after it loads; a neighbour loading meanwhile falsifies both."""


def run_matrix(
    matrix: Matrix,
    out: Path,
    *,
    only: Sequence[str] = (),
    ready_s: float = 600.0,
    grace_s: float = 10.0,
    port: int = 30000,
) -> list[str]:
    """Run every case that `out` does not hold yet, one wave of engines after another.

    Engines that were started together wait idle while one of them is measured; `truth.toml` names them.
    A case that fails leaves `<name>.failed.log` and the others go on.

    Args:
        matrix: what to run.
        out: folder of captures; a finished one is skipped, so an interrupted run can be repeated.
        only: names of cases to run; empty for all.
        ready_s: how long an engine may take to start.
        grace_s: how long an engine may take to stop before it is killed; 0 kills at once.
        port: the first port to serve on; those of a wave are 100 apart.

    Returns:
        Names of the cases that failed.

    Raises:
        UsageError: `only` names a case that the matrix does not have.
    """
    names = [c.name for c in matrix.case]
    if unknown := [name for name in only if name not in names]:
        raise UsageError(f"no case named {unknown[0]}; the matrix has {', '.join(names)}")
    out.mkdir(parents=True, exist_ok=True)
    pending = [
        c for c in matrix.case if (not only or c.name in only) and not (out / c.name / "truth.toml").exists()
    ]
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="stepline-lab-") as scratch:
        work = Path(scratch).resolve()
        for name in {c.model for c in pending}:
            write_model(work / "models" / name, matrix.model[name])
        for cases in _waves(pending):
            failed += _wave(cases, matrix, out, work, ready_s=ready_s, grace_s=grace_s, port=port)
    return failed


def _waves(cases: Sequence[Case]) -> list[list[Case]]:
    waves: list[list[Case]] = []
    for case in cases:
        if waves and case.wave is not None and waves[-1][-1].wave == case.wave:
            waves[-1].append(case)
        else:
            waves.append([case])
    return waves


def _wave(
    cases: Sequence[Case], matrix: Matrix, out: Path, work: Path, *, ready_s: float, grace_s: float, port: int
) -> list[str]:
    engines: dict[str, Engine] = {}
    failed: list[str] = []
    try:
        for i, case in enumerate(cases):
            time.sleep(_BETWEEN_STARTS_S if i else 0)
            engines[case.name] = Engine(case, port + 100 * i, work)
        for case in cases:  # all of them before the first measurement: a start disturbs its neighbours
            try:
                engines[case.name].wait_ready(ready_s)
            except EngineFailed as e:
                failed.append(_fail(case, engines.pop(case.name), out, str(e)))
        for case in cases:
            if case.name in engines:
                engine = engines[case.name]
                try:
                    beside = [n for n in engines if n != case.name]
                    write_capture(engine, case, matrix, out, work=work, beside=beside)
                except (OSError, EOFError) as e:  # the engine died or refused under load
                    failed.append(_fail(case, engine, out, f"{case.name}: {e}"))
                engines.pop(case.name).stop(grace_s)
    finally:
        for engine in engines.values():
            engine.stop(grace_s)
    return failed


def _fail(case: Case, engine: Engine, out: Path, why: str) -> str:
    engine.stop(0)
    (out / f"{case.name}.failed.log").write_text(engine.log.read_text(errors="replace"))
    sys.stderr.write(f"{why}\n")
    return case.name
