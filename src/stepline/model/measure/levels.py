"""Client load levels beside the engine: how many streams were offered, how many really ran, and can it be trusted.

Little's law ties a closed-loop level together: streams = rate × time per token in decode, plus rate × waiting per
token. Where the two sides do not meet, something disturbed the level and its rate is no evidence.
"""

import statistics
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from stepline.evidence.load import LoadLevel
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.model.measure.client_health import overtaxed
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.measure.timeline import Interval, Plateau, profiler_intervals
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    little = Threshold(
        0.15,
        "share of the streams",
        why="What Little's law may miss.",
        source="undisturbed levels of the four H200 captures miss 1 to 10 % (medians stand for means); "
        "levels in which a profiler ran miss 20 to 86 %",
    )
    ramp_share = Threshold(
        0.5,
        "streams over requests",
        why="A run of few requests ramps up and drains: of two rounds of streams, half a round is "
        "missing on average.",
    )
    ramp = Threshold(
        0.25,
        "share of a level's time",
        why="Its opening, in which its streams are still being prefilled.",
        source="the recorder's own levels fill up within it",
    )
    covers = Threshold(
        0.5,
        "share of a level's time",
        why="A plateau that covers most of a level is its own.",
    )
    clock_s = Threshold(
        60.0,
        "s",
        why="Two clocks that agree to this are one; a log in another time zone is half an hour off at least.",
    )


Route = Literal[
    "engine's gauge",
    "scheduler log",
    "stated in the table",
    "streams past their first token",
    "rate × time per token",
]


class BatchRoute(msgspec.Struct, frozen=True, kw_only=True):
    """The running batch by one independent route."""

    route: Route
    running: float
    origin: Origin | None = None


class OfferedLevel(msgspec.Struct, frozen=True, kw_only=True):
    """One client level with the engine's side of it. Rates are None where the level was disturbed."""

    origin: Origin
    concurrency: float
    running: BatchRoute | None
    routes: tuple[BatchRoute, ...]
    queued: float | None
    tok_s: float | None
    tpot_ms: float | None
    ttft_ms: float | None
    itl_ms: float | None
    output_tokens: float | None
    input_tokens: float | None
    asked_output_tokens: float | None = None
    disturbed: str | None = None
    """Why the level's rate is no evidence; None when nothing speaks against it."""
    graph: bool | None = None
    """Whether decode used graphs at this level, where the log's lines agree."""
    pool_usage: float | None = None
    """Fullest KV pool that the engine's gauge showed meanwhile, as a share of 1."""
    time: Interval | None = None
    """When its streams were all being decoded, where the client tells its times."""


def offered_levels(run: Run, logged: Sequence[Plateau]) -> tuple[OfferedLevel, ...]:
    """Every client level in order of concurrency, matched with the plateaus of the scheduler's log."""
    output_tokens, input_tokens = _mean_lengths(run)
    profiles = profiler_intervals(run)
    # Arms of a comparison are different servers: the first is the one under diagnosis.
    arm = run.levels[0].arm if run.levels else None
    levels = [
        _offered(level, logged, _gauges(level, run.metrics), profiles, output_tokens, input_tokens)
        for level in run.levels
        if level.arm == arm and streams(level)
    ]
    return tuple(sorted(levels, key=lambda level: level.concurrency))


def streams(level: LoadLevel) -> float | None:
    """Requests in flight on average: those the client holds open, by Little's law where it sends at a rate.

    A client that sends at a rate states at most a cap on what is in flight: requests a second times latency counts what
    runs and waits, tokens a second times time per token what runs.
    """
    little = level.in_flight
    if little is None and level.requests_s and level.e2e_ms:
        little = level.requests_s * level.e2e_ms / 1000
    if (
        little is None
        and level.tok_s
        and level.tpot_ms
        and level.concurrency is None
        and level.running is None
    ):
        little = level.tok_s * level.tpot_ms / 1000
    if level.concurrency is not None and level.request_rate_s is not None and little is not None:
        return min(level.concurrency, little)
    if level.concurrency is not None:
        return level.concurrency
    if level.running is not None:
        return level.running + (level.queued or 0.0) or None
    return little


def _mean_lengths(run: Run) -> tuple[float | None, float | None]:
    """Mean output and input tokens a request, from counters since start; None when not exported."""
    for scrape in run.metrics:
        finished = scrape.finished_requests
        if finished:
            generated = scrape.generated_tokens
            prompts = (
                None if scrape.prefill_tokens is None else scrape.prefill_tokens + (scrape.cached_tokens or 0)
            )
            return (
                None if generated is None else generated / finished,
                None if prompts is None else prompts / finished,
            )
    return None, None


class Gauges(NamedTuple):
    """What the engine's gauges said while a level ran.

    Of the batch the largest, since a scrape between two requests of one stream misses it; of the queue the median.
    """

    running: float
    queued: float | None
    pool_usage: float | None
    origin: Origin


def _steady(level: LoadLevel) -> Interval | None:
    """A level without its opening; None where the client tells no times."""
    if level.start_s is None or level.end_s is None:
        return None
    return Interval(level.start_s + T.ramp * (level.end_s - level.start_s), level.end_s)


def others_seen(run: Run) -> bool:
    """Whether the engine's gauges once count more requests than the client holds open, beyond a level's opening.

    In 40 of 41 recordings that had the server to themselves they never do; in the other requests of the level before
    were still there.
    """
    for level in run.levels:
        steady = _steady(level)
        if steady is None or level.concurrency is None:
            continue
        for scrape in run.metrics:
            inside = scrape.time_s is not None and steady.start_s <= scrape.time_s < steady.end_s
            if inside and (scrape.running or 0) + (scrape.queued or 0) > level.concurrency:
                return True
    return False


def _gauges(level: LoadLevel, scrapes: Sequence[EngineMetrics]) -> Gauges | None:
    """The scrapes inside a level whose times are known; two at least, since one is an instant."""
    steady = _steady(level)
    if steady is None:
        return None
    inside = [
        s for s in scrapes if s.time_s is not None and steady.start_s <= s.time_s < steady.end_s and s.running
    ]
    if len(inside) < 2:
        return None
    queued = [scrape.queued for scrape in inside if scrape.queued is not None]
    usages = [scrape.pool_usage for scrape in inside if scrape.pool_usage is not None]
    return Gauges(
        running=max(scrape.running or 0.0 for scrape in inside),
        queued=statistics.median(queued) if queued else None,
        pool_usage=max(usages, default=None),
        origin=inside[0].origin,
    )


def _offered(  # noqa: PLR0917  # each is one source of evidence about the level
    level: LoadLevel,
    logged: Sequence[Plateau],
    gauges: Gauges | None,
    profiles: Sequence[Interval],
    output_tokens: float | None,
    input_tokens: float | None,
) -> OfferedLevel:
    concurrency = streams(level) or 0.0
    output = level.output_tokens or output_tokens
    tok_s = level.tok_s
    if tok_s is None and level.tok_s_per_request is not None and level.running is not None:
        tok_s = level.tok_s_per_request * level.running
    matching = _matching(level, logged)
    routes = _routes(level, matching, gauges, tok_s)
    queued = level.queued
    if queued is None and gauges is not None:
        queued = gauges.queued
    if queued is None:
        queues = [p.queued for p in matching if p.queued is not None]
        queued = max(queues) if queues else None
    return OfferedLevel(
        origin=level.origin,
        concurrency=concurrency,
        running=routes[0] if routes else None,
        routes=routes,
        queued=queued,
        tok_s=tok_s,
        tpot_ms=level.tpot_ms,
        ttft_ms=level.ttft_ms,
        itl_ms=level.itl_ms,
        output_tokens=output,
        asked_output_tokens=level.asked_output_tokens,
        input_tokens=level.input_tokens or input_tokens,
        disturbed=_disturbance(
            level, tok_s, output, matching, profiled=_profiled(level, logged, matching, profiles)
        ),
        graph=_graph(matching),
        pool_usage=None if gauges is None else gauges.pool_usage,
        time=_steady(level),
    )


def _at_its_time(level: LoadLevel, logged: Sequence[Plateau]) -> list[Plateau]:
    """The plateau that covers most of a level whose start and end are known; none when the two clocks do not meet."""
    if level.start_s is None or level.end_s is None:
        return []
    shares = {
        index: min(level.end_s, plateau.time.end_s)
        - max(level.start_s, plateau.time.start_s - plateau.reaches_back_s)
        for index, plateau in enumerate(logged)
        if plateau.time is not None
    }
    best = max(shares, key=lambda index: shares[index], default=None)
    if best is None or shares[best] < T.covers * (level.end_s - level.start_s):
        return []
    return [logged[best]]


def _profiled(
    level: LoadLevel, logged: Sequence[Plateau], matching: Sequence[Plateau], profiles: Sequence[Interval]
) -> bool:
    """Whether a profiler ran inside a level: by the clock where log and client tell the same time."""
    if level.start_s is None or level.end_s is None:
        return any(plateau.profiled for plateau in matching)
    own = Interval(level.start_s, level.end_s)
    near = Interval(own.start_s - T.clock_s, own.end_s + T.clock_s)
    if any(plateau.time is not None and plateau.time.overlaps(near) for plateau in logged):
        return any(profile.overlaps(own) for profile in profiles)
    return any(plateau.profiled for plateau in matching)


def _graph(matching: Sequence[Plateau]) -> bool | None:
    shares = {plateau.graph_share for plateau in matching}
    return True if shares == {1.0} else False if shares == {0.0} else None


def _matching(level: LoadLevel, logged: Sequence[Plateau]) -> list[Plateau]:
    """Plateaus that offered what this level offered; a log that shows no queue matches by being the only one."""
    concurrency = level.concurrency or 0.0
    timed = _at_its_time(level, logged)
    if timed:
        return timed
    matching = [
        plateau for plateau in logged if abs(plateau.offered - concurrency) <= SHARED.same_load * concurrency
    ]
    if not matching and len(logged) == 1 and logged[0].queued is None and logged[0].running <= concurrency:
        return [logged[0]]
    return matching


def _routes(
    level: LoadLevel, matching: Sequence[Plateau], gauges: Gauges | None, tok_s: float | None
) -> tuple[BatchRoute, ...]:
    routes = []
    if gauges is not None:
        routes.append(BatchRoute(route="engine's gauge", running=gauges.running, origin=gauges.origin))
    if matching:
        logs = BatchRoute(route="scheduler log", running=statistics.fmean(p.running for p in matching))
        # More than the client holds open are others' requests, and the largest instant is not what ran beside it.
        others = gauges is not None and level.concurrency is not None and gauges.running > level.concurrency
        routes.insert(0 if others else len(routes), logs)
    if level.running is not None:
        routes.append(BatchRoute(route="stated in the table", running=level.running, origin=level.origin))
    if level.decoding is not None:
        routes.append(
            BatchRoute(route="streams past their first token", running=level.decoding, origin=level.origin)
        )
    if level.decoding is None and tok_s is not None and level.tpot_ms is not None:
        running = tok_s * level.tpot_ms / 1000
        if (
            level.concurrency
        ):  # a mean over the few requests that ended may overshoot what the client holds open
            running = min(running, level.concurrency)
        routes.append(BatchRoute(route="rate × time per token", running=running, origin=level.origin))
    return tuple(routes)


def _disturbance(
    level: LoadLevel,
    tok_s: float | None,
    output_tokens: float | None,
    matching: Sequence[Plateau],
    *,
    profiled: bool,
) -> str | None:
    late = overtaxed(level.health)
    if late is not None:
        return late
    if level.requests == 0 and level.failed:
        return f"none of its requests ended well, {level.failed} failed"
    if profiled:
        return "the profiler ran inside this level and froze the server"
    if tok_s is None and (level.running is None or level.tpot_ms is None):
        return "no steady window: the level has no rate"
    if tok_s is None:
        return None
    if matching:
        # The log shows what ran: requests thrown out or cut off unbalance the sum, and that is no disturbance.
        return None
    if level.tpot_ms is None or level.ttft_ms is None or not output_tokens or not level.concurrency:
        return None
    streams = tok_s * (level.tpot_ms * (output_tokens - 1) + level.ttft_ms) / output_tokens / 1000
    missing = 1 - streams / level.concurrency
    ramps = T.ramp_share * level.concurrency / level.requests if level.requests else 0.0
    if missing > T.little + ramps:
        return (
            f"rate and latencies account for {streams:.1f} of {level.concurrency:g} streams: "
            "the server stood still for part of this level"
        )
    return None
