"""Steps under steady traffic, where every decode line has a prefill inside: prefill is taken out by regression.

Streams that start one after another put a prefill into nearly every window, so no window is free of one. Over lines
of one batch, wall time a step grows with the tokens prefilled; where those vary, the intercept of a straight line is
the step without prefill. On two H200 captures it read 3 % and 7 % under the truth, so it fills in only for batches
that have no window of their own, and says so.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from stepline.model.measure.law import LawPoint
from stepline.model.measure.windows import MixedLine
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    min_lines = Threshold(
        12,
        "decode lines",
        why="Fewer leave too few degrees of freedom for the intercept's error.",
    )
    small_refill = Threshold(
        0.3,
        "share of the batch",
        why="Refilled in one window up to which the batch counts as unchanged throughout.",
    )
    max_error = Threshold(
        0.04,
        "share of the intercept",
        why="Its largest standard error: the step is to be right within a few percent.",
    )


def regressed_points(lines: Iterable[MixedLine], known: Iterable[float]) -> tuple[LawPoint, ...]:
    """One point for each running batch that has no window of its own and lines enough to regress."""
    taken = set(known)
    by_running: dict[int, list[MixedLine]] = defaultdict(list)
    for line in lines:
        if line.running not in taken and line.prefill_sequences <= T.small_refill * line.running:
            by_running[line.running].append(line)
    points = (_point(running, group) for running, group in sorted(by_running.items()))
    return tuple(point for point in points if point is not None)


def _point(running: int, lines: Sequence[MixedLine]) -> LawPoint | None:
    if len(lines) < T.min_lines:
        return None
    tokens = [float(line.prefill_tokens) for line in lines]
    walls = [line.wall_ms for line in lines]
    mean_tokens, mean_wall = statistics.fmean(tokens), statistics.fmean(walls)
    spread = sum((value - mean_tokens) ** 2 for value in tokens)
    if spread == 0:
        return None
    slope = sum((t - mean_tokens) * (w - mean_wall) for t, w in zip(tokens, walls, strict=True)) / spread
    step = mean_wall - slope * mean_tokens
    squares = sum((w - step - slope * t) ** 2 for t, w in zip(tokens, walls, strict=True))
    error = math.sqrt(squares / (len(lines) - 2) * (1 / len(lines) + mean_tokens**2 / spread))
    if slope <= 0 or step <= 0 or error > T.max_error * step:
        return None
    graphs = {line.graph for line in lines}
    return LawPoint(
        running=running,
        step_ms=step,
        windows=len(lines),
        spread_ms=error * math.sqrt(len(lines)),
        graph=graphs.pop() if len(graphs) == 1 else None,
    )
