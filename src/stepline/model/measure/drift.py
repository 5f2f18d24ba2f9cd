"""Since when: the moment from which steps of one batch take longer or shorter than before."""

import heapq
import math
import statistics
from collections.abc import Sequence

import msgspec

from stepline.evidence.origin import Origin
from stepline.model.measure.windows import DecodeWindow
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    each_side = Threshold(
        5,
        "windows",
        why="Windows on each side of a change, so that one odd window makes none.",
    )
    change = Threshold(
        1.15,
        "ratio of medians",
        why="A change worth a line.",
        source="windows of one sound level spread by under 2 %, of a host-limited one by up to 13 % (H200)",
    )


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the step at one running batch, and the first window after it."""

    running: int
    before_ms: float
    after_ms: float
    since: Origin
    time_s: float | None


def find_drift(windows: Sequence[DecodeWindow], running: float) -> Drift | None:
    """The split in time that leaves least deviation within its two sides; None when they hardly differ.

    They differ when their medians are over 15 % and more than twice their spreads apart.
    """
    same = sorted((window for window in windows if window.running == running), key=lambda window: window.seq)
    splits = range(T.each_side, len(same) - T.each_side + 1)
    if not splits:
        return None
    steps = [window.step_ms for window in same]
    first_part, second_part = _deviations(steps), _deviations(steps[::-1])
    split = min(splits, key=lambda at: first_part[at] + second_part[len(steps) - at])
    before, after = steps[:split], steps[split:]
    low, high = statistics.median(before), statistics.median(after)
    spread = statistics.pstdev(before) + statistics.pstdev(after)
    if abs(math.log(high / low)) < math.log(T.change) or abs(high - low) < 2 * spread:
        return None
    first = same[split]
    return Drift(running=first.running, before_ms=low, after_ms=high, since=first.origin, time_s=first.time_s)


def _deviations(values: Sequence[float]) -> list[float]:
    """For each length of opening of `values`, how far its members lie from their median, summed; in n log n."""
    below: list[float] = []  # the smaller half, negated: a heap whose first member is its largest
    above: list[float] = []
    below_sum = above_sum = 0.0
    sums = [0.0]
    for value in values:
        moved = -heapq.heappushpop(below, -value)
        heapq.heappush(above, moved)
        below_sum, above_sum = below_sum + value - moved, above_sum + moved
        if len(above) > len(below):
            back = heapq.heappop(above)
            heapq.heappush(below, -back)
            below_sum, above_sum = below_sum + back, above_sum - back
        middle = -below[0] if len(below) > len(above) else 0.0
        sums.append(above_sum - below_sum + middle)
    return sums
