"""Who waits for whom: collectives of several ranks on a common clock."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace import RankWait, TraceDoubt
from stepline.evidence.trace_arrays import Column, RawTrace


@dataclass(frozen=True)
class Arrivals:
    """One rank's collectives in order, on the epoch where the trace has a base."""

    rank: int | None
    base_ns: int | None
    start_ns: Column
    end_ns: Column


def arrivals(raw: RawTrace, rows: NDArray[np.bool_]) -> Arrivals:
    """The collectives among these rows of a trace."""
    base = raw.base_ns or 0
    return Arrivals(raw.rank, raw.base_ns, raw.gpu.start_ns[rows] + base, raw.gpu.end_ns[rows] + base)


def waits(ranks: list[Arrivals]) -> tuple[RankWait, ...]:
    """Split each collective into waiting for the last rank to arrive and moving data after that.

    The n-th collective of a rank meets the n-th of the others: ranks of one group run the same program. Ranks
    with another number of collectives, or that never overlap in time, are not compared.
    """
    if len(ranks) < 2 or not _comparable(ranks):
        return ()
    start = np.stack([rank.start_ns for rank in ranks])
    end = np.stack([rank.end_ns for rank in ranks])
    latest, which = start.max(axis=0), start.argmax(axis=0)
    found = []
    for index, rank in enumerate(ranks):
        wait = np.clip(np.minimum(latest, end[index]) - start[index], 0, None)
        for_whom = np.bincount(which, wait, len(ranks))
        longest = int(for_whom.argmax())
        found.append(
            RankWait(
                rank=rank.rank if rank.rank is not None else index,
                collectives=start.shape[1],
                wait_ms=float(wait.sum()) / 1e6,
                transfer_ms=float((end[index] - start[index] - wait).sum()) / 1e6,
                last=int((which == index).sum()),
                waited_for=ranks[longest].rank if for_whom[longest] > 0 else None,
            )
        )
    return tuple(found)


def clock_doubts(ranks: list[Arrivals]) -> tuple[TraceDoubt, ...]:
    """Why ranks of one capture cannot be compared."""
    if len(ranks) < 2:
        return ()
    if not _comparable(ranks):
        counts = sorted({len(rank.start_ns) for rank in ranks})
        text = (
            f"the ranks show {' and '.join(map(str, counts))} collectives: who waits for whom cannot be told"
            if len(counts) > 1 or counts == [0]
            else "the ranks share no clock or their collectives do not overlap: who waits cannot be told"
        )
        return (TraceDoubt(topic="clocks", text=text),)
    return ()


def _comparable(ranks: list[Arrivals]) -> bool:
    counts = {len(rank.start_ns) for rank in ranks}
    if len(counts) != 1 or counts == {0} or len({rank.base_ns is None for rank in ranks}) != 1:
        return False
    start, end = np.stack([r.start_ns for r in ranks]), np.stack([r.end_ns for r in ranks])
    return bool(np.median(end.min(axis=0) - start.max(axis=0)) > 0)
