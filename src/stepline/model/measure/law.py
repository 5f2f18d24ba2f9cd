"""The step law t(N) = a + b·N, with intervals, or the reason why there is none.

Least squares over the level medians; intervals are Student-t over the residuals of the levels (levels − 2 degrees
of freedom): within a level windows repeat each other and say little about how straight the line is. A model with
experts whose levels lie on no line has a law that levels off beside it (`saturation.py`).
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from stepline.model.measure.instruments import Instrument
from stepline.model.measure.saturation import Saturation, saturation
from stepline.model.measure.thresholds import T as SHARED
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    fall = Threshold(
        0.05,
        "share of the smaller batch's step",
        why="A larger batch that reads faster by more makes the points not monotone.",
        source="a host-limited H200 server read 13 % faster at 32 than at 16, while windows of one "
        "level of a healthy one spread by under 2 %",
    )
    bent = Threshold(
        0.03,
        "distance from a line over the step",
        why="A model with experts levels off: the law is to be right within 3 %.",
        source="the healthy Qwen3 of the H200 recordings lies 17 % off, dense models 1 % at most",
    )
    narrow = Threshold(
        2.0,
        "times the smallest batch",
        why="Over a narrower range a line has no start and no slope: extrapolated to one request and to none it "
        "multiplies the noise of its ends by more than itself.",
    )
    rounding = Threshold(
        0.001,
        "share of a step",
        why="What floating point and printed digits may miss of a bound that holds exactly.",
    )
    grows = Threshold(
        0.1,
        "share of the step at the largest batch",
        why="What the batch adds from which a law is called linear, not flat.",
    )


Shape = Literal["flat", "linear", "cliff", "saturating"]
Refusal = Literal["no step", "one batch", "narrow", "not monotone", "impossible"]


class LawPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One level: the median step over `windows` windows at one running batch."""

    running: float
    step_ms: float
    windows: int
    spread_ms: float | None = None
    """Standard deviation over the windows; None for a single one."""
    graph: bool | None = None


class Interval(msgspec.Struct, frozen=True):
    """A 95 % interval; None where the points cannot give one."""

    low: float
    high: float


class StepLaw(msgspec.Struct, frozen=True, kw_only=True):
    """t(N) = fixed + per_request·N in ms, from points of one instrument."""

    instrument: Instrument
    fixed_ms: float
    per_request_ms: float
    fixed_interval: Interval | None
    per_request_interval: Interval | None
    points: tuple[LawPoint, ...]
    shape: Shape
    """`cliff`: steps without decode graphs lie more than 10 % above the line of those with graphs; `saturating`: the
    step levels off, and the line is its mean growth over the batches measured."""
    residual_ms: float | None
    """Root mean square distance of the levels from the line; None for two levels."""
    eager: tuple[LawPoint, ...] = ()
    """Levels that ran without decode graphs beside levels that ran with them; never part of the fit."""
    saturation: Saturation | None = None

    @property
    def ceiling_tok_s(self) -> float | None:
        """Rate that no batch exceeds while the law holds, 1000/b; None unless straight with a slope above zero."""
        interval = self.per_request_interval
        lowest = self.per_request_ms if interval is None else min(interval.low, self.per_request_ms)
        straight = self.shape in {"linear", "cliff"}
        return 1000 / self.per_request_ms if straight and lowest > 0 else None

    def step_ms(self, running: float) -> float:
        """Predicted step at a running batch."""
        if self.saturation is not None:
            return self.saturation.step_ms(running)
        return self.fixed_ms + self.per_request_ms * running

    def step_interval(self, running: float) -> Interval | None:
        """95 % interval of the predicted mean step at a running batch; None where three levels fix three unknowns."""
        if self.saturation is not None:
            return None
        half = _half_width(self.points, self.residual_ms, running)
        middle = self.step_ms(running)
        return None if half is None else Interval(max(0.0, middle - half), middle + half)


class NoLaw(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no law, the points all the same, and what would give one."""

    refusal: Refusal
    reason: str
    """The refusal as a sentence, with its numbers."""
    needs: str
    points: tuple[LawPoint, ...] = ()


def law_or_none(law: StepLaw | NoLaw) -> StepLaw | None:
    """The law; None where it is refused."""
    return law if isinstance(law, StepLaw) else None


def follows_no_batch(law: StepLaw | NoLaw) -> bool:
    """True where a larger batch was seen to take a shorter step: something else sets it."""
    return isinstance(law, NoLaw) and law.refusal == "not monotone"


def level_points(steps: Iterable[tuple[float, float, bool | None]]) -> tuple[LawPoint, ...]:
    """Fold (running, step in ms, graph) into one point per running batch, in order of batch."""
    by_running: dict[float, list[tuple[float, bool | None]]] = defaultdict(list)
    for running, step, graph in steps:
        by_running[running].append((step, graph))
    points = []
    for running in sorted(by_running):
        values = [step for step, _ in by_running[running]]
        graphs = {graph for _, graph in by_running[running]}
        points.append(
            LawPoint(
                running=running,
                step_ms=statistics.median(values),
                windows=len(values),
                spread_ms=statistics.stdev(values) if len(values) > 1 else None,
                graph=graphs.pop() if len(graphs) == 1 else None,
            )
        )
    return tuple(points)


def fit(points: Sequence[LawPoint], instrument: Instrument, *, experts: bool = False) -> StepLaw | NoLaw:
    """Fit the law to level points of one instrument; `experts` says that the model has them.

    Points on both sides of the graph ceiling are never joined: eager steps follow another law.
    """
    covered = tuple(point for point in points if point.graph is not False)
    eager = tuple(point for point in points if point.graph is False)
    if covered and eager:
        law = fit(covered, instrument, experts=experts)
        if isinstance(law, StepLaw):
            jumps = any(point.step_ms > SHARED.off_law * law.step_ms(point.running) for point in eager)
            return msgspec.structs.replace(law, shape="cliff" if jumps else law.shape, eager=eager)
        return msgspec.structs.replace(law, points=tuple(points))
    if len(points) < 2:
        return NoLaw(
            refusal="one batch" if points else "no step",
            reason="one running batch was measured; a law needs two, and three to see whether it is straight"
            if points
            else "no valid step was measured",
            needs="decode windows at other running batches: offer fewer and more streams",
            points=tuple(points),
        )
    smallest, largest = points[0].running, points[-1].running
    if largest < T.narrow * smallest:
        return NoLaw(
            refusal="narrow",
            reason=f"steps were measured from {smallest:g} to {largest:g} running: too narrow for a start and a slope",
            needs=f"decode windows at {T.narrow:g} times the smallest batch or more: offer fewer and more streams",
            points=tuple(points),
        )
    fall = _largest_fall(points)
    if fall is not None:
        before, after = fall
        return NoLaw(
            refusal="not monotone",
            reason=(
                f"not monotone: the step falls from {before.step_ms:.2f} ms at {before.running:g} to "
                f"{after.step_ms:.2f} ms at {after.running:g} running, so something other than the batch sets it"
            ),
            needs="an unprofiled GPU busy share: when the GPU waits for the host, steps follow the host",
            points=tuple(points),
        )
    law = _least_squares(points, instrument)
    if law.per_request_ms < 0:
        law = _constant(points, law)
    impossible = _impossible(law)
    if impossible is not None:
        return NoLaw(
            refusal="impossible",
            reason=impossible,
            needs="more decode windows at each batch, at one context and without prefill inside",
            points=tuple(points),
        )
    bent = (law.residual_ms or 0.0) > T.bent * statistics.fmean(point.step_ms for point in points)
    levels_off = saturation([(p.running, p.step_ms) for p in points]) if experts and bent else None
    if levels_off is None or levels_off.residual_ms >= (law.residual_ms or 0.0):
        return law
    return msgspec.structs.replace(law, shape="saturating", saturation=levels_off)


def _impossible(law: StepLaw) -> str | None:
    """Why no server can follow this line; None where nothing speaks against it."""
    start = law.fixed_ms if law.fixed_interval is None else law.fixed_interval.high
    if start < -T.rounding * law.points[-1].step_ms:
        return (
            f"a line through the steps starts at {law.fixed_ms:.1f} ms without any request: "
            "the levels differ in more than the batch"
        )
    fastest = max(law.points, key=lambda point: point.running / point.step_ms)
    rate = 1000 * fastest.running / fastest.step_ms
    ceiling = law.ceiling_tok_s
    if ceiling is not None and rate > (1 + T.rounding) * ceiling:
        return f"a line through the steps ends at {ceiling:,.0f} tok/s, and {rate:,.0f} were measured"
    return None


def _constant(points: Sequence[LawPoint], line: StepLaw) -> StepLaw:
    """The step that does not grow: a larger batch shortens no step, so a line that falls within the noise is flat."""
    mean = statistics.fmean(point.step_ms for point in points)
    residual = statistics.stdev(point.step_ms for point in points) if len(points) > 2 else None
    half = None if residual is None else _t(len(points) - 1) * residual / math.sqrt(len(points))
    slope = line.per_request_interval
    return msgspec.structs.replace(
        line,
        fixed_ms=mean,
        per_request_ms=0.0,
        fixed_interval=None if half is None else Interval(mean - half, mean + half),
        per_request_interval=None if slope is None else Interval(0.0, max(0.0, slope.high)),
        shape="flat",
        residual_ms=residual,
    )


def _largest_fall(points: Sequence[LawPoint]) -> tuple[LawPoint, LawPoint] | None:
    worst, found = 0.0, None
    for index, before in enumerate(points):
        for after in points[index + 1 :]:
            fall = before.step_ms - after.step_ms
            if fall > T.fall * before.step_ms and fall > _noise(before, after) and fall > worst:
                worst, found = fall, (before, after)
    return found


def _noise(first: LawPoint, second: LawPoint) -> float:
    """Two standard errors of the difference of two medians, as far as the windows tell."""
    errors = [p.spread_ms**2 / p.windows for p in (first, second) if p.spread_ms is not None]
    return (
        2 * 1.25 * math.sqrt(sum(errors))
    )  # a median's standard error is 1.25 times a mean's (normal noise)


def _least_squares(points: Sequence[LawPoint], instrument: Instrument) -> StepLaw:
    mean_n = statistics.fmean(p.running for p in points)
    mean_t = statistics.fmean(p.step_ms for p in points)
    spread = sum((p.running - mean_n) ** 2 for p in points)
    slope = sum((p.running - mean_n) * (p.step_ms - mean_t) for p in points) / spread
    fixed = mean_t - slope * mean_n
    residual = None
    if len(points) > 2:
        squares = sum((p.step_ms - fixed - slope * p.running) ** 2 for p in points)
        residual = math.sqrt(squares / (len(points) - 2))
    fixed_half = _half_width(points, residual, 0.0)
    slope_half = None if residual is None else _t(len(points) - 2) * residual / math.sqrt(spread)
    largest = max(p.running for p in points)
    grows = slope * largest > T.grows * (fixed + slope * largest)
    return StepLaw(
        instrument=instrument,
        fixed_ms=fixed,
        per_request_ms=slope,
        fixed_interval=None if fixed_half is None else Interval(fixed - fixed_half, fixed + fixed_half),
        per_request_interval=None if slope_half is None else Interval(slope - slope_half, slope + slope_half),
        points=tuple(points),
        shape="linear" if grows else "flat",
        residual_ms=residual,
    )


def _half_width(points: Sequence[LawPoint], residual: float | None, running: float) -> float | None:
    if residual is None:
        return None
    mean_n = statistics.fmean(p.running for p in points)
    spread = sum((p.running - mean_n) ** 2 for p in points)
    leverage = 1 / len(points) + (running - mean_n) ** 2 / spread
    return _t(len(points) - 2) * residual * math.sqrt(leverage)


def _t(degrees: int) -> float:
    from scipy.special import stdtrit  # noqa: PLC0415  # scipy.stats alone costs half a second

    return float(stdtrit(degrees, 0.5 + SHARED.confidence / 2))
