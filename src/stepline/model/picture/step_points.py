"""Step times at running batches, from one instrument: what the law is fitted to."""

import statistics
from collections.abc import Sequence

from stepline.evidence.run import Run
from stepline.model.measure.instruments import Instrument
from stepline.model.measure.law import LawPoint, level_points
from stepline.model.measure.levels import OfferedLevel
from stepline.model.measure.steady_regression import regressed_points
from stepline.model.measure.windows import DecodeWindow, Windows
from stepline.model.measure.windows import T as WINDOWS
from stepline.model.picture.picture import Load
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    same_context = Threshold(
        2.0,
        "times the context",
        why="Contexts within this factor share a law: streams of one level differ by their output length.",
        source="the context doubled within levels of the captures (256 prompt and up to 128 output "
        "tokens, 512 and 192)",
    )
    one_token = Threshold(
        1.05,
        "gap over time per token",
        why="A client whose median gap is no longer than its mean time per token sees each token alone.",
    )


def best_points(
    run: Run, windows: Windows, levels: Sequence[OfferedLevel], load: Load | None
) -> tuple[tuple[LawPoint, ...], Instrument]:
    """Level points of one instrument: the best that saw the load, else the best that saw anything.

    Instruments are never mixed in one law. In order: windows free of prefill (the log's, or the client's where
    the log has fewer levels), decode lines with prefill regressed
    out where no window is free of it, the client's median gaps, the engine's own record, what somebody wrote down.
    """
    seen = points_by_instrument(run, windows, levels, load)
    if load is not None:
        per_rank = load.running / load.ranks
        for points, instrument in seen:
            if point_at(points, per_rank) is not None:
                return points, instrument
    return seen[0] if seen else ((), Instrument.WINDOW)


def points_by_instrument(
    run: Run, windows: Windows, levels: Sequence[OfferedLevel], load: Load | None
) -> tuple[tuple[tuple[LawPoint, ...], Instrument], ...]:
    """The level points of every instrument that saw any, best instrument first."""
    near = windows.usable if windows.by_client else _near_context(run, windows.usable, load)
    pure = level_points((w.running, w.step_ms, w.graph) for w in near)
    filled = [] if windows.by_client else regressed_points(windows.mixed, (point.running for point in pure))
    both = tuple(sorted((*pure, *filled), key=lambda point: point.running)) if filled else ()
    recorded = run.server.step_time_ms
    by_engine = ((n, step, None) for n, step in (recorded.value if recorded else {}).items())
    stated = [(row.running, row.step_ms, row.graph) for row in run.step_rows if row.step_ms is not None]
    rates = [(row.running, 1000 * row.running / row.tok_s, row.graph) for row in run.step_rows if row.tok_s]
    candidates = [
        (pure, Instrument.STRETCH if windows.by_client else Instrument.WINDOW),
        (both, Instrument.WINDOW_FILLED),
        (_client_gaps(levels), Instrument.CLIENT_GAP),
        (level_points((w.running, w.step_ms, w.graph) for w in windows.bounded), Instrument.INTERVAL),
        (_times_per_token(levels), Instrument.TPOT),
        (level_points(by_engine), Instrument.RECORDED),
        (level_points(stated), Instrument.STATED),
        (level_points(rates), Instrument.STATED_RATE),
    ]
    return tuple(candidate for candidate in candidates if candidate[0])


def _near_context(run: Run, windows: Sequence[DecodeWindow], load: Load | None) -> Sequence[DecodeWindow]:
    """Windows at about the load's context: a law in the batch alone holds at one context.

    Pools that count whole pages do not tell contexts apart well enough, so there all windows stay.
    """
    page = run.server.page_tokens
    if load is None or (page is not None and page.value > 1):
        return windows
    at_load = [
        w.pool_tokens / w.running for w in windows if w.pool_tokens and w.running == load.running / load.ranks
    ]
    if not at_load:
        return windows
    context = statistics.median(at_load)
    return [
        w
        for w in windows
        if not w.pool_tokens
        or context / T.same_context <= w.pool_tokens / w.running <= T.same_context * context
    ]


def _client_gaps(levels: Sequence[OfferedLevel]) -> tuple[LawPoint, ...]:
    """Median gaps between tokens at each level's running batch; the median gap holds no prefill.

    A gap longer than the time per token comes from chunks of several tokens and is no step; nor is one that holds a
    prompt.
    """
    points: list[tuple[float, float, bool | None]] = []
    for level in levels:
        if level.disturbed is None and level.running and level.itl_ms and _one_token_each(level):
            point = (level.running.running, level.itl_ms, level.graph)
            if not (points and _holds_a_prompt(level, point, points[-1])):
                points.append(point)
    return level_points(points)


def _holds_a_prompt(
    level: OfferedLevel, point: tuple[float, float, bool | None], lighter: tuple[float, float, bool | None]
) -> bool:
    """True where prompts come for at least every second token and the gap outgrows the batch, as no step does."""
    crowded = level.output_tokens is not None and level.concurrency >= level.output_tokens / 2
    return crowded and point[1] / lighter[1] > max(1.0, point[0] / lighter[0])


def _times_per_token(levels: Sequence[OfferedLevel]) -> tuple[LawPoint, ...]:
    """Mean time per token at levels whose running batch somebody stated; prefill of others is inside."""
    return level_points(
        (level.running.running, level.tpot_ms, level.graph)
        for level in levels
        if level.disturbed is None
        and level.tpot_ms
        and level.running
        and level.running.route == "stated in the table"
    )


def _one_token_each(level: OfferedLevel) -> bool:
    return level.itl_ms is not None and (level.tpot_ms is None or level.itl_ms <= T.one_token * level.tpot_ms)


def point_at(points: Sequence[LawPoint], running: float) -> LawPoint | None:
    """The point at a running batch, or at one that differs by no more than requests that come and go."""
    near = [point for point in points if abs(point.running - running) <= WINDOWS.same_batch * running]
    # The batch most often seen is the load's; one met in passing, as streams come and go, is no better for being near.
    return max(near, key=lambda point: (point.windows, -abs(point.running - running))) if near else None
