"""One load seen from both sides: what the engine decodes and how fast, beside what the client holds open and receives.

What is late, or missing from the engine, lies between the two. Times per token are compared over one stretch of time,
so that prompts computed between decode steps are on both sides: they make a client's gap on a healthy H200 server half
as long again as its step, and the two sides still agree.
"""

import statistics
from collections.abc import Sequence

import msgspec

from stepline.evidence.load import LoadLevel
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport
from stepline.model.measure.client_health import overtaxed
from stepline.model.measure.levels import T as LEVELS
from stepline.model.measure.preemption import lost_or_fell, retractions
from stepline.model.measure.timeline import T as TIMELINE
from stepline.model.measure.timeline import profiler_intervals, upper_quartile
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    min_lines = Threshold(
        3,
        "decode lines of a level",
        why="Where each covers some steps one may stand at the level's edge; where each covers a "
        "fixed time, one is enough.",
    )
    clock_s = Threshold(
        1.0,
        "s",
        why="Logs print whole seconds, so a line of a level's last one may tell of its drain.",
        source="SGLang's and vLLM's log formats",
    )
    late = Threshold(
        1.3,
        "client's over engine's time per token",
        why="Something between the two holds tokens up.",
        source="the two sides of 60 levels of sound front ends on the H200 differ by at most 1.09, of "
        "a simulated one busy with prompts by 1.23",
    )
    missing = Threshold(
        0.2,
        "share of the open requests",
        why="In neither batch nor queue.",
        source="on the same levels at most 0.06 by lines of the log, and by gauges 0.13, which is one "
        "of eight",
    )
    on_the_way = Threshold(
        2.0,
        "requests",
        why="From here a share of them means something: one is always on its way in or out.",
    )
    fed = Threshold(
        0.1,
        "share of the open requests",
        why="So many in the engine's queue, and it has all the work that it can take: requests that "
        "come in later cost nothing.",
    )


class BothSides(msgspec.Struct, frozen=True, kw_only=True):
    """A load by client and by engine; times in ms a token of one stream."""

    offered: float
    """Requests the client held open."""
    running: float
    """Requests that the engine decoded, over all ranks."""
    queued: float | None
    """Requests that waited in the engine; None where nobody says."""
    client_ms: float | None
    """None where the client does not say, or where a stream may have waited in the engine's queue."""
    engine_ms: float | None
    """Prompts computed between the steps included; None where only the engine's gauges tell of the load."""
    source: str
    innocent: bool
    """True when the client measured itself and kept up."""
    origin: Origin

    @property
    def late(self) -> float | None:
        """How many times longer a token takes to the client than in the engine."""
        return None if self.client_ms is None or self.engine_ms is None else self.client_ms / self.engine_ms

    @property
    def missing_share(self) -> float | None:
        """Share of the open requests that the engine neither runs nor has waiting."""
        if self.queued is None:
            return None
        return max(0.0, 1 - (self.running + self.queued) / self.offered)

    @property
    def tokens_late(self) -> bool:
        """True when tokens take that much longer to the client."""
        return self.late is not None and self.late >= T.late

    @property
    def requests_missing(self) -> bool:
        """True when that many requests are open and not in the engine, while it has none waiting."""
        share = self.missing_share
        fed = self.queued is not None and self.queued > max(T.on_the_way, T.fed * self.offered)
        return share is not None and not fed and share >= T.missing and share * self.offered >= T.on_the_way


@sign
def both_sides(picture: Picture) -> tuple[BothSides, ...]:
    """Every load that both sides tell of, lightest first; levels whose client was late are left out.

    With speculation a step makes several tokens and the two sides do not count alike, so there are none then. Requests
    thrown out of the pool wait in the queue in the middle of their answers, so no times are compared where any were.
    """
    run = picture.run
    if run.server.speculative is not None or any(report.accept_length is not None for report in run.decodes):
        return ()
    arm = run.levels[0].arm if run.levels else None
    mine = [level for level in run.levels if level.arm == arm and overtaxed(level.health) is None]
    found = (_logged(run, level) or _gauged(run, level) or _stated(run, level) for level in mine)
    sides = [side for side in found if side is not None]
    if retractions(run) is not None or lost_or_fell(run):
        sides = [msgspec.structs.replace(side, client_ms=None) for side in sides]
    return tuple(sorted(sides, key=lambda side: side.offered))


def _logged(run: Run, level: LoadLevel) -> BothSides | None:
    """A level beside the decode lines that were printed while it ran."""
    offered = level.in_flight or level.concurrency
    if level.start_s is None or level.end_s is None or not offered:
        return None
    profiled = profiler_intervals(run)
    if any(level.start_s <= each.end_s and each.start_s <= level.end_s for each in profiled):
        return None
    opening_s = level.start_s + LEVELS.ramp * (level.end_s - level.start_s)
    lines = _between(run, opening_s, level.end_s)
    timed = [report for report in lines if report.tok_s]
    by_clock = all(report.instrument == "interval" for report in timed)
    if len(timed) < (1 if by_clock else T.min_lines):
        return None
    # Requests that end early in the later part began in the opening, where many prompts are computed; its first line
    # holds the pause before the level.
    opened = _between(run, level.start_s, level.end_s)[1:] or timed
    ranks = len({report.dp for report in lines})
    seen = _instants(run, opening_s, level.end_s)
    queues = [report.queued for report in seen if report.queued is not None]
    running = statistics.fmean(report.running for report in seen)
    return BothSides(
        offered=offered,
        running=ranks * running,
        queued=ranks * statistics.fmean(queues) if queues else None,
        client_ms=level.tpot_ms,
        # A moment's batch says little of the ten seconds that a rate covers where it goes up and down.
        engine_ms=max(_token_ms(lines, running if by_clock else None) for lines in (timed, opened)),
        source=f"mean of {len(timed)} decode lines, prompts between the steps included",
        innocent=level.health is not None,
        origin=level.origin,
    )


def _token_ms(lines: Sequence[DecodeReport], running: float | None) -> float:
    """Mean time a token by the lines' own batches, or by a mean batch."""
    return statistics.fmean(1000 * (running or line.running) / line.tok_s for line in lines if line.tok_s)


def _instants(run: Run, start_s: float, end_s: float) -> list[DecodeReport]:
    """Lines printed in a stretch of time, as logs print it: without fractions of a second.

    Batch and queue in a line are those of its moment, whatever time its rate covers.
    """
    return [
        line
        for line in run.decodes
        if line.running and line.time_s is not None and start_s <= line.time_s <= end_s - T.clock_s
    ]


def _between(run: Run, start_s: float, end_s: float) -> list[DecodeReport]:
    """Lines of a stretch of time whose steps lie in it wholly."""
    return [
        line
        for line in _instants(run, start_s, end_s)
        if (line.time_s or 0.0) - (TIMELINE.interval_s if line.instrument == "interval" else 0.0) >= start_s
    ]


def _gauged(run: Run, level: LoadLevel) -> BothSides | None:
    """A level beside the engine's gauges while it ran.

    Upper quartiles: a gauge lags by some steps, and counts nowhere the requests whose prompts are being computed.
    """
    offered = level.in_flight or level.concurrency
    if level.start_s is None or level.end_s is None or not offered:
        return None
    opening = level.start_s + LEVELS.ramp * (level.end_s - level.start_s)
    inside = [s for s in run.metrics if s.time_s is not None and opening <= s.time_s <= level.end_s]
    running = [scrape.running for scrape in inside if scrape.running is not None]
    queues = [scrape.queued for scrape in inside if scrape.queued is not None]
    if len(running) < T.min_lines or not queues:
        return None
    return BothSides(
        offered=offered,
        running=upper_quartile(running),
        queued=upper_quartile(queues),
        client_ms=level.tpot_ms,
        engine_ms=None,
        source=f"upper quartile of {len(running)} scrapes",
        innocent=level.health is not None,
        origin=level.origin,
    )


def _stated(run: Run, level: LoadLevel) -> BothSides | None:
    """A client's gap and the engine's step as somebody wrote both down for one batch."""
    steps = [row.step_ms for row in run.step_rows if row.running == level.running and row.step_ms]
    gap = level.itl_ms if level.tpot_ms is None else level.tpot_ms
    if not steps or level.running is None or gap is None:
        return None
    return BothSides(
        offered=level.running,
        running=level.running,
        queued=None,
        client_ms=gap,
        engine_ms=steps[0],
        source="as stated",
        innocent=False,
        origin=level.origin,
    )
