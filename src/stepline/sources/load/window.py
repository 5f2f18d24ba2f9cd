"""The steady part of a level."""

import math
from collections.abc import Sequence

from stepline.sources.load.level import LevelPlan
from stepline.sources.load.stream_counts import MIN_ROUNDS, Seen, changes, overlap, tokens_between

NEARLY_FULL = 0.9
"""Of the greatest batch seen, where the server never lets all streams in: a single peak above the usual batch
would else put off the window to the moment of that peak."""


def decoding_spans(all_seen: Sequence[Seen]) -> list[tuple[float, float]]:
    """From first token to leaving, of every request that got that far."""
    return [(seen.first, seen.until) for seen in all_seen if seen.first is not None]


def steady_window(plan: LevelPlan, all_seen: Sequence[Seen], end: float) -> tuple[float, float] | None:
    """From when the batch is full to the level's end; None where that is too short for a rate.

    Full is, in a closed loop, all streams decoding, or where the server lets fewer in, nearly as many as ever
    were; in an open loop the first finish, from which on requests leave as well as come.
    """
    low = _first_finish(all_seen) if plan.concurrency is None else _first_full(plan.concurrency, all_seen)
    if low is None or low >= end:
        return None
    decoding = overlap(decoding_spans(all_seen), low, end)
    if decoding <= 0 or tokens_between(all_seen, low, end) < MIN_ROUNDS * decoding:
        return None
    return low, end


def _first_finish(all_seen: Sequence[Seen]) -> float | None:
    ends = [seen.last for seen in all_seen if seen.record.end == "ok" and seen.last is not None]
    return min(ends, default=None)


def _first_full(concurrency: int, all_seen: Sequence[Seen]) -> float | None:
    decoding, counts = 0, []
    for change in changes(all_seen):
        if not change.seen.decodes or change.step == "send":
            continue
        decoding += 1 if change.step == "first" else -1
        counts.append((change.time, decoding))
    most = max((count for _, count in counts), default=0)
    full = concurrency if most >= concurrency else math.ceil(NEARLY_FULL * most)
    return next((time for time, count in counts if count >= full > 0), None)
