"""From a step's first to its last GPU work, without strays."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace_arrays import Column
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    stray_ns = Threshold(
        100_000_000,
        "ns",
        why="Work cut off by a longer pause, longer also than all of the step's work, may be a stray.",
    )
    stray = Threshold(
        0.01,
        "share of the step's work",
        why="It is one when it holds less than this.",
        source="a public decode trace has one 4 µs kernel 463 ms before its graph, and was read as 98 "
        "% idle for it",
    )


class Extents(NamedTuple):
    """Per step, nanoseconds; 0 for a step without work."""

    span_ns: Column
    pause_ns: Column
    """Longest pause inside the span."""


def extents(start: Column, end: Column, step: Column, count: int, owned: NDArray[np.float64]) -> Extents:
    """Spans of `count` steps; rows with step −1 belong to none."""
    order = np.lexsort((start, step))
    order = order[np.searchsorted(step[order], 0) :]
    edges = np.searchsorted(step[order], np.arange(count + 1))
    spans, pauses = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for index in np.flatnonzero(np.diff(edges)).tolist():
        rows = order[edges[index] : edges[index + 1]]
        spans[index], pauses[index] = _span(start[rows], np.maximum.accumulate(end[rows]), owned[rows])
    return Extents(spans, pauses)


def _span(start: Column, reach: Column, owned: NDArray[np.float64]) -> tuple[int, int]:
    pause = start[1:] - reach[:-1]
    total = float(owned.sum())
    done = np.cumsum(owned)
    first, last = 0, len(start) - 1
    for cut in np.flatnonzero(pause > max(total, T.stray_ns)).tolist():
        if done[cut] < T.stray * total:
            first = cut + 1
        elif total - done[cut] < T.stray * total:
            last = cut
            break
    inside = pause[first:last]
    return int(reach[last] - start[first]), max(0, int(inside.max())) if len(inside) else 0
