"""A level's records as arrays, and the number of streams that decode and wait over time."""

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from stepline.sources.load.answer import Record

Floats = npt.NDArray[np.float64]
MIN_ROUNDS = 8
"""Tokens of every stream below which a time holds no rate: its two ends are each known to a part of a step only
(reads of one step are spread over the client's loop), which is beyond a tenth of fewer steps than these."""


class Seen:
    """A record with its chunks as arrays."""

    __slots__ = ("first", "last", "record", "times", "tokens", "until")

    def __init__(self, record: Record) -> None:
        self.record = record
        self.times: Floats = np.frombuffer(record.times)
        self.tokens: Floats = np.frombuffer(record.tokens)
        self.first = float(self.times[0]) if len(self.times) else None
        self.last = float(self.times[-1]) if len(self.times) else None
        self.until = self.last if record.end == "ok" and self.last is not None else record.ended_s
        """When it left the server's batch, as far as the client can tell: with its last token, or when it was
        dropped or given up."""

    @property
    def decodes(self) -> bool:
        """It was seen between a first and a later token; an answer of one chunk is over with its prompt."""
        return self.first is not None and self.first < self.until


Step = Literal["leave", "first", "send"]


class Change:
    """One change of what is in flight: a request is sent, its first token comes, it leaves."""

    __slots__ = ("seen", "step", "time")

    def __init__(self, time: float, step: Step, seen: Seen) -> None:
        self.time, self.step, self.seen = time, step, seen


_ORDER = {"leave": 0, "first": 1, "send": 2}


def changes(all_seen: Iterable[Seen]) -> list[Change]:
    """Every change in time order; at one instant those who leave go first."""
    found: list[Change] = []
    for seen in all_seen:
        if seen.record.sent_s is None:
            continue
        found.append(Change(seen.record.sent_s, "send", seen))
        if seen.first is not None and seen.decodes:
            found.append(Change(seen.first, "first", seen))
        found.append(Change(max(seen.until, seen.record.sent_s), "leave", seen))
    found.sort(key=lambda change: (change.time, _ORDER[change.step]))
    return found


def tokens_between(all_seen: Sequence[Seen], low: float, high: float) -> float:
    """Tokens that came after `low` and up to `high`."""
    return float(sum(seen.tokens[(seen.times > low) & (seen.times <= high)].sum() for seen in all_seen))


def overlap(spans: Iterable[tuple[float, float]], low: float, high: float) -> float:
    """Mean number of the spans that are open between `low` and `high`."""
    return sum(max(0.0, min(end, high) - max(start, low)) for start, end in spans) / (high - low)
