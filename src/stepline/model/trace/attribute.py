"""For whom each row worked: by its name, else by operator or call stack, by its chain, or by its neighbours."""

from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace_arrays import COPY, FILL, Column
from stepline.facts import kernels
from stepline.model.trace import neighbours
from stepline.model.trace.names import named
from stepline.model.trace.ownership import merged
from stepline.model.trace.work import Work

FoundBy = Literal["name", "operator", "stack", "chain", "neighbours", "none"]
FOUND_BY: tuple[FoundBy, ...] = ("none", "name", "operator", "stack", "chain", "neighbours")


class Attribution:
    """Per row a component (an index into `components`) and how it was found (an index into FOUND_BY)."""

    def __init__(self, work: Work, step: Column | None) -> None:
        strings, gpu = work.raw.strings, work.raw.gpu
        names, row_name = np.unique(gpu.name, return_inverse=True)
        said = [kernels.component(strings[index]) for index in names.tolist()]
        self.components = sorted(
            {one.component for one in said} | {"indexer", "copy", "fill"} | {kernels.UNATTRIBUTED}
        )
        self._index = {name: index for index, name in enumerate(self.components)}
        by_name = np.array([self._index[one.component] for one in said] or [0])
        generic = np.array([one.generic for one in said] or [False])
        nobody = self._index[kernels.UNATTRIBUTED]
        self.component: NDArray[np.int64] = by_name[row_name]
        self.found_by = np.where(self.component == nobody, 0, 1)
        self.generic: NDArray[np.bool_] = generic[row_name]
        for label, sort in (("copy", COPY), ("fill", FILL)):
            rows = gpu.sort == sort
            self._set(rows, label, 1)
            self.generic |= rows
        self._by_owner(work)
        self._by_chain(work, step)
        self._by_neighbours(work, step)

    def of(self, *names: str) -> NDArray[np.bool_]:
        """Rows of these components."""
        return np.isin(self.component, [self._index[name] for name in names if name in self._index])

    def _set(self, rows: NDArray[np.bool_] | NDArray[np.int64], component: str, found_by: int) -> None:
        if component not in self._index:
            self._index[component] = len(self.components)
            self.components.append(component)
        self.component[rows] = self._index[component]
        self.found_by[rows] = found_by

    def _by_owner(self, work: Work) -> None:
        """Generic rows launched inside a frame, operator or annotation that belongs to a component."""
        raw = work.raw
        open_rows = self.generic & (work.call >= 0) & ~work.graph
        if not open_rows.any():
            return
        for spans, found_by in ((raw.frames, 3), (raw.operators, 2)):
            owners = {index: kernels.owner(raw.strings[index]) for index in np.unique(spans.name).tolist()}
            for component in dict.fromkeys(owner for owner in owners.values() if owner):
                mine = named(spans.name, raw.strings, partial(_works_for, component))
                for thread in np.unique(spans.thread[mine]).tolist():
                    here = mine & (spans.thread == thread)
                    left, right = merged(spans.start_ns[here], spans.end_ns[here])
                    at = np.searchsorted(left, work.launched_ns, "right") - 1
                    same = raw.calls.thread[work.call] == thread
                    inside = open_rows & same & (at >= 0) & (work.launched_ns < right[at])
                    self._set(inside & ((self.found_by < 2) | (component == "indexer")), component, found_by)

    def _by_chain(self, work: Work, step: Column | None) -> None:
        """Generic rows between a component's first and last named kernel, on the stream of the last."""
        raw = work.raw
        for chain in kernels.chains():
            first, last = (
                named(raw.gpu.name, raw.strings, pattern.search) for pattern in (chain.first, chain.last)
            )
            opened = np.flatnonzero(first)
            for end in np.flatnonzero(last).tolist():
                if not len(before := opened[opened < end]):
                    continue
                begin = int(before[-1])
                if last[begin + 1 : end].any() or (step is not None and step[begin] != step[end]):
                    continue
                rows = np.arange(begin + 1, end)
                same = (raw.gpu.stream[rows] == raw.gpu.stream[end]) & self.generic[rows]
                self._set(rows[same & (raw.gpu.start_ns[rows] >= raw.gpu.end_ns[begin])], chain.component, 4)

    def _by_neighbours(self, work: Work, step: Column | None) -> None:
        """Rows that nothing names, by the half of a layer that they recur in."""
        gpu, nobody = work.raw.gpu, self.component == self._index[kernels.UNATTRIBUTED]
        if not nobody.any():
            return
        lane = gpu.stream * (int(step.max()) + 2 if step is not None else 1) + (
            step if step is not None else 0
        )
        for name, owner in neighbours.owners(
            gpu.name, self.component, self.components, lane, gpu.start_ns
        ).items():
            self._set(nobody & (gpu.name == name), owner, 5)


def _works_for(component: str, name: str) -> bool:
    return kernels.owner(name) == component
