"""Sharing an instant of the GPU among the work that overlaps in it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace_arrays import Column


class Shares(NamedTuple):
    """Per row, in nanoseconds."""

    owned: NDArray[np.float64]
    """The row's equal share of every instant it runs in; the shares add up to the busy union."""
    exposed: NDArray[np.float64]
    """That share counted only while nothing but marked rows runs."""


def shares(start_ns: Column, end_ns: Column, marked: NDArray[np.bool_]) -> Shares:
    """Share time among overlapping rows.

    Args:
        start_ns: starts of n rows, any order.
        end_ns: their ends.
        marked: rows that count as communication.

    Cumulates 1 / (rows active) over time; a row owns the difference from its start to its end. O(n log n).
    """
    count = len(start_ns)
    times = np.concatenate([start_ns, end_ns])
    order = np.argsort(times, kind="stable")
    step = np.where(order < count, 1, -1)
    plain = np.concatenate([~marked, ~marked])[order]
    active = np.cumsum(step)
    unmarked = np.cumsum(np.where(plain, step, 0))
    length = np.diff(times[order], append=times[order[-1:]]).astype(np.float64)
    rate = np.divide(length, active, out=np.zeros_like(length), where=active > 0)
    owned = _between(np.cumsum(rate), order, count)
    alone = _between(np.cumsum(np.where(unmarked == 0, rate, 0.0)), order, count)
    return Shares(owned, np.where(marked, alone, 0.0))


def _between(cumulated: NDArray[np.float64], order: NDArray[np.intp], count: int) -> NDArray[np.float64]:
    """Cumulated value at each row's end less that at its start; `order` sorts starts then ends."""
    before = np.concatenate([[0.0], cumulated[:-1]]) if len(cumulated) else cumulated
    at = np.empty(2 * count)
    at[order] = before
    return at[count:] - at[:count]


def merged(start_ns: Column, end_ns: Column) -> tuple[Column, Column]:
    """The union of intervals as disjoint intervals, ordered."""
    if not len(start_ns):
        return start_ns, end_ns
    order = np.argsort(start_ns, kind="stable")
    start, reach = start_ns[order], np.maximum.accumulate(end_ns[order])
    first = np.concatenate([[True], start[1:] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return start[first], reach[last]


def covered(start_ns: Column, end_ns: Column, begin: Column, end: Column) -> NDArray[np.int64]:
    """How much of each [begin, end) lies inside the union of the intervals, in nanoseconds."""
    left, right = merged(start_ns, end_ns)
    total = np.concatenate([[0], np.cumsum(right - left)])

    def before(at: Column) -> NDArray[np.int64]:
        index = np.searchsorted(left, at, "right")
        inside = (
            np.where(index > 0, np.minimum(at, right[index - 1]) - left[index - 1], 0)
            if len(left)
            else at * 0
        )
        return total[np.maximum(index - 1, 0)] + inside if len(left) else at * 0

    return np.asarray(before(np.maximum(begin, end)) - before(begin))
