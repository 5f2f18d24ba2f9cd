"""Run the cases of a matrix: start engines, record them one at a time, keep every finished recording."""

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from stepline.errors import SteplineError, UsageError
from stepline.lab.real.beside import neighbour, traffic
from stepline.lab.real.engine import Engine, write_model
from stepline.lab.real.finish import finish
from stepline.lab.real.matrix import Case, Load, Matrix

Record = Callable[[str, Path, Path, Load], None]
"""Records the server at a URL into a folder, with its log and its load; raises a SteplineError when it cannot."""
_BETWEEN_STARTS_S = 4.0
"""An engine logs free GPU memory before and after it loads; a neighbour loading meanwhile falsifies both."""


def run_matrix(
    matrix: Matrix,
    out: Path,
    record: Record,
    *,
    only: Sequence[str] = (),
    ready_s: float = 600.0,
    grace_s: float = 10.0,
    port: int = 30000,
) -> list[str]:
    """Run every case that `out` does not hold yet, one wave of engines after another.

    Engines that were started together wait idle while one of them is recorded; `truth.toml` names them.
    A case that fails leaves `<name>.failed.log` and the others go on.

    Args:
        matrix: what to run.
        out: folder of recordings; a finished one is skipped, so an interrupted run can be repeated.
        record: drives one server and writes what it saw.
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
        bench = _Bench(matrix, out, work, record)
        for name in {bench.host(case).model for case in pending}:
            write_model(work / "models" / name, matrix.model[name])
        for _, cases in groupby(pending, key=lambda case: case.name if case.wave is None else case.wave):
            failed += bench.wave(list(cases), ready_s=ready_s, grace_s=grace_s, port=port)
    return failed


@dataclass(frozen=True)
class _Bench:
    """What every case of one run shares."""

    matrix: Matrix
    out: Path
    work: Path
    """Working directory of all engines."""
    record: Record

    def host(self, case: Case) -> Case:
        """The case whose engine this one is recorded on."""
        return next(other for other in self.matrix.case if other.name == (case.on or case.name))

    def wave(self, cases: Sequence[Case], *, ready_s: float, grace_s: float, port: int) -> list[str]:
        """Start the engines of these cases together, record one case after the other; names of those that failed."""
        hosts = {self.host(case).name: self.host(case) for case in cases}
        engines: dict[str, Engine] = {}
        failed: list[str] = []
        try:
            for i, host in enumerate(hosts.values()):
                time.sleep(_BETWEEN_STARTS_S if i else 0)
                engines[host.name] = Engine(self.matrix.engine, host, port + 100 * i, self.work)
            for engine in engines.values():  # all before the first recording: a start disturbs its neighbours
                engine.wait_ready(ready_s)
            for i, case in enumerate(cases):
                host = self.host(case)
                engine = engines[host.name]
                if why := engine.failed or self._record(case, engine, [n for n in engines if n != host.name]):
                    failed.append(case.name)
                    (self.out / f"{case.name}.failed.log").write_text(engine.log.read_text(errors="replace"))
                    sys.stderr.write(f"{case.name}: {why}\n")
                if host not in map(self.host, cases[i + 1 :]):
                    engines.pop(host.name).stop(grace_s)
        finally:
            for engine in engines.values():
                engine.stop(grace_s)
        return failed

    def _record(self, case: Case, engine: Engine, beside: list[str]) -> str | None:
        """Record one case; what went wrong, or None."""
        folder, start_s = self.out / f"{case.name}.partial", time.monotonic()
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was interrupted
        try:
            with self._beside(case, engine.url):
                self.record(engine.url, folder, engine.log, case.load)
        except (SteplineError, OSError) as e:  # the engine died or refused under load
            return str(e)
        seconds = time.monotonic() - start_s
        finish(folder, case, self.host(case), self.matrix, work=self.work, beside=beside, seconds=seconds)
        folder.rename(self.out / case.name)
        return None

    @contextlib.contextmanager
    def _beside(self, case: Case, url: str) -> Iterator[None]:
        """What the case wants to go on meanwhile."""
        with contextlib.ExitStack() as stack:
            if case.traffic:
                model = self.host(case).model
                words = self.matrix.model[model]["vocab_size"]
                stack.enter_context(traffic(url, f"models/{model}", words, case.traffic))
            if case.neighbour:
                stack.enter_context(neighbour(case.neighbour))
            yield
