"""How much faster one side of a comparison is than the other, as a ratio with its interval.

Everything is done on logarithms of speeds (a rate, or one over a time), so that swapping the sides gives the
reciprocal. Runs are what is repeated: windows of one run follow each other and share the state of their start, so
they say how well that run is known and nothing about the next one. Where a side has one run, what the next would
differ by is taken from servers that were started more than once, and the report says so.

Variance of a run's value = spread between starts of sound servers, and where its own windows scatter beyond what those
of sound servers do, that excess twice: the next run may differ by it, and this one is known no better than its windows
allow. A side's runs, once there are several, correct this by what they show (a variance moderated as in Smyth 2004,
doi:10.2202/1544-6115.1027). The interval is Welch's with Satterthwaite's degrees of freedom.
"""

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from stepline.model.measure.thresholds import T as SHARED
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    run_spread = Threshold(
        0.006,
        "standard deviation of log speed",
        why="Between starts of a sound server.",
        source="0.58 % over eleven levels of seven pairs of H200 servers that differ in nothing that "
        "acts there (healthy/cap8, healthy_8b/graph_cap8, healthy_8b/kv_small, "
        "healthy_8b/shared_prefix, healthy_long_out/kv_retract, moe_healthy/moe_cap16, "
        "dense_graph/dense_eager)",
    )
    run_degrees = Threshold(
        7.0,
        "degrees of freedom",
        why="Of that figure.",
        source="the pairs it rests on",
    )
    quiet = Threshold(
        0.015,
        "spread of windows within a level",
        why="Up to here a server counts as sound. Above, the next run is taken to differ by what "
        "the windows do.",
        source="0.1 to 1.5 % on sound H200 servers; on host-limited ones windows of a level spread by "
        "4 to 18 % and levels of one start, which repeat the same host work, by 13 and 14 %",
    )
    noisy_degrees = Threshold(
        4.0,
        "degrees of freedom",
        why="Of that rule.",
        source="it rests on nine levels of three servers",
    )


MEDIAN = math.pi / 2
"""Variance of a median over that of a mean, for normal noise."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One run's value at one level."""

    log_speed: float
    """Natural logarithm of the rate, or of one over the time."""
    windows: int
    spread: float | None = None
    """Standard deviation of the logarithm over the run's windows; None where it has no repeats of its own."""
    independent: float = 1.0
    """Windows that would say as much if they did not follow each other."""


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """Speed after over speed before: above 1 is faster."""

    log_ratio: float
    half: float
    """Half width of the 95 % interval of the logarithm."""
    wide: float
    """The same, so wide that all of a comparison's lines hold at once (Bonferroni)."""

    @property
    def speedup(self) -> float:
        """The ratio itself."""
        return math.exp(self.log_ratio)

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval."""
        return math.exp(self.log_ratio - self.half)

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval."""
        return math.exp(self.log_ratio + self.half)


def from_windows(times_ms: Sequence[float]) -> Measured:
    """The median of a run's windows, in order of time; neighbours that resemble each other count for less."""
    logs = [-math.log(value) for value in times_ms]
    if len(logs) < 2:
        return Measured(log_speed=logs[0], windows=1)
    return Measured(
        log_speed=statistics.median(logs),
        windows=len(logs),
        spread=statistics.stdev(logs),
        independent=_independent(logs),
    )


def ratio(before: Sequence[Measured], after: Sequence[Measured], lines: int) -> Ratio:
    """The ratio of two sides of one or more runs each; `lines` is how many are judged together."""
    sides = [_side(before), _side(after)]
    half, wide = _halves(sides, (len(before), len(after)), lines)
    middle = _mean(after) - _mean(before)
    return Ratio(log_ratio=middle, half=half, wide=wide)


def runs_that_settle(
    before: Sequence[Measured], after: Sequence[Measured], lines: int, effect: float
) -> int | None:
    """Runs a side after which any true difference gives a verdict on `effect` (0.03 is 3 %); None for over 100.

    Whatever the middle of the interval then is, either the wide one leaves out no change or the 95 % one lies within
    the margin: both halves together are no longer than the margin.
    """
    sides = [_side(before), _side(after)]
    for runs in range(max(len(before), len(after)), 101):
        more = [
            (variance, degrees + runs - len(side))
            for (variance, degrees), side in zip(sides, (before, after), strict=True)
        ]
        if sum(_halves(more, (runs, runs), lines)) <= math.log1p(effect):
            return runs
    return None


def drift(side: Sequence[Measured]) -> float | None:
    """How much faster the last run of a side was than its first, as a share; None for one run."""
    return math.expm1(side[-1].log_speed - side[0].log_speed) if len(side) > 1 else None


def _mean(side: Sequence[Measured]) -> float:
    return statistics.fmean(run.log_speed for run in side)


def _side(side: Sequence[Measured]) -> tuple[float, float]:
    """(variance of one run's value, degrees of freedom): what is expected, corrected by what the runs show."""
    expected = [_expected(run) for run in side]
    variance = statistics.fmean(value for value, _ in expected)
    degrees = min(known for _, known in expected)
    more = len(side) - 1
    if more:
        shown = statistics.variance(run.log_speed for run in side)
        variance = (degrees * variance + more * shown) / (degrees + more)
    return variance, degrees + more


def _expected(run: Measured) -> tuple[float, float]:
    """(variance, degrees of freedom) that a run's own windows and servers like it let expect."""
    excess = max(0.0, (run.spread or 0.0) ** 2 - T.quiet**2)
    parts = [(T.run_spread**2, T.run_degrees), (excess * (1 + MEDIAN / run.independent), T.noisy_degrees)]
    total = sum(part for part, _ in parts)
    return total, total**2 / sum(part**2 / degrees for part, degrees in parts)


def _halves(sides: Sequence[tuple[float, float]], runs: tuple[int, int], lines: int) -> tuple[float, float]:
    """Half widths of the 95 % interval and of the one for all lines at once."""
    parts = [(variance / count, degrees) for (variance, degrees), count in zip(sides, runs, strict=True)]
    total = sum(part for part, _ in parts)
    degrees = total**2 / sum(part**2 / known for part, known in parts)
    error = math.sqrt(total)
    return error * _t(degrees, SHARED.confidence), error * _t(
        degrees, 1 - (1 - SHARED.confidence) / max(1, lines)
    )


def _independent(logs: Sequence[float]) -> float:
    """Effective number of values of a series with the correlation of its neighbours (first-order autoregression).

    The estimate of a short series reads low by about one over its length, which is added; below zero counts as none.
    """
    mean = statistics.fmean(logs)
    squares = sum((value - mean) ** 2 for value in logs)
    if squares == 0:
        return float(len(logs))
    products = sum((a - mean) * (b - mean) for a, b in pairwise(logs))
    correlation = min(0.99, max(0.0, products / squares + 1 / len(logs)))
    return max(1.0, len(logs) * (1 - correlation) / (1 + correlation))


def _t(degrees: float, confidence: float) -> float:
    from scipy.special import stdtrit  # noqa: PLC0415  # scipy.stats alone costs half a second

    return float(stdtrit(degrees, 0.5 + confidence / 2))
