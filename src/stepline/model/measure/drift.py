"""Since when: the moment from which steps of one batch take longer or shorter than before."""

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
    split = min(splits, key=lambda at: _deviation(steps[:at]) + _deviation(steps[at:]))
    before, after = steps[:split], steps[split:]
    low, high = statistics.median(before), statistics.median(after)
    spread = statistics.pstdev(before) + statistics.pstdev(after)
    if abs(math.log(high / low)) < math.log(T.change) or abs(high - low) < 2 * spread:
        return None
    first = same[split]
    return Drift(running=first.running, before_ms=low, after_ms=high, since=first.origin, time_s=first.time_s)


def _deviation(values: Sequence[float]) -> float:
    middle = statistics.median(values)
    return sum(abs(value - middle) for value in values)
