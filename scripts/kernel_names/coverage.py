"""How much of traces has a part: by kernel time of decode steps, and by name of everything on the GPU."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.facts.kernels import UNATTRIBUTED
from stepline.model.trace.attribute import FOUND_BY, Attribution
from stepline.model.trace.steps import segment
from stepline.model.trace.work import Work, per_device
from stepline.sources.readers import traces

_DECODE = ("decode", "verify", "draft", "step")


def show(paths: Iterable[Path], least: float, parts: Path | None = None) -> int:
    """Print a line a trace and the names without a part; 1 where a trace is below `least` of its decode time."""
    short, nameless = 0, defaultdict(float)
    print(f"{'time':>7} {'names':>11} {'inferred':>8}  trace")
    for path in traces.find(paths):
        for raw in traces.read(path):
            works = per_device(raw)
            if not works:
                continue
            work, gpu = works[0], works[0].raw.gpu
            cut = segment(work)
            found = Attribution(work, cut.step if cut else None)
            rows = np.ones(len(gpu), bool)
            if cut:
                decoding = np.array([start.kind in _DECODE for start in cut.starts])
                rows = (cut.step >= 0) & decoding[np.maximum(cut.step, 0)]
                rows = rows if rows.any() else np.ones(len(gpu), bool)
            length = (gpu.end_ns - gpu.start_ns) * rows
            nobody = found.of(UNATTRIBUTED)
            inferred = found.found_by == FOUND_BY.index("neighbours")
            total = float(length.sum()) or 1.0
            known = 1 - float(length[nobody].sum()) / total
            names, lost = np.unique(gpu.name), np.unique(gpu.name[nobody])
            for name in lost.tolist():
                nameless[raw.strings[name]] += float(length[nobody & (gpu.name == name)].sum()) / total
            short += known < least
            share = f"{len(names) - len(lost)}/{len(names)}"
            print(f"{known:7.2%} {share:>11} {float(length[inferred].sum()) / total:8.2%}  {path}")
            if parts:
                _keep(parts, path, found, work, length / total)
    for name, share in sorted(nameless.items(), key=lambda item: -item[1]):
        print(f"  no part: {share:7.2%} {name[:150]}")
    return int(short > 0)


def _keep(parts: Path, path: Path, found: Attribution, work: Work, share: NDArray[np.float64]) -> None:
    with parts.open("a") as file:
        keys = np.stack([work.raw.gpu.name, found.component, found.found_by], axis=1)
        for key in np.unique(keys, axis=0):
            rows = (keys == key).all(axis=1)
            columns = (path, found.components[key[1]], FOUND_BY[key[2]], f"{share[rows].sum():.5f}")
            print(*columns, work.raw.strings[key[0]][:300], sep="\t", file=file)
