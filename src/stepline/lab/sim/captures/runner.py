"""Many simulated captures, several at a time."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from stepline.lab.sim.captures.capture import write_capture
from stepline.lab.sim.captures.cases import Case


def write_captures(cases: Iterable[Case], out: Path, jobs: int) -> Iterator[Path]:
    """Write one folder a case under `out`, `jobs` at a time, and yield each as it is done, in order.

    Raises:
        UsageError: a case's model does not fit its GPU.
    """
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(partial(_write, out=out), cases)


def _write(case: Case, out: Path) -> Path:
    write_capture(case, out)
    return out / case.name
