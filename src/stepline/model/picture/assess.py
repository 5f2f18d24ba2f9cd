"""From a run to its picture: each number from the best instrument present, in one pass."""

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from stepline.errors import UnknownFact
from stepline.evidence.run import ReadingDoubt, Run
from stepline.model.measure.closed_loop import ClosedLoop, from_measured
from stepline.model.measure.context_probes import probe_levels, split, without
from stepline.model.measure.gpu_use import GpuUse, align_clocks, gpu_use
from stepline.model.measure.instruments import Instrument
from stepline.model.measure.law import LawPoint, fit
from stepline.model.measure.levels import OfferedLevel, offered_levels
from stepline.model.measure.log_clock import in_one_clock
from stepline.model.measure.operating_plateau import Operating, operating_plateau
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.measure.timeline import Interval, Plateau, log_span, plateaus
from stepline.model.measure.traced_step import traced_step, wall_points
from stepline.model.measure.windows import T as WINDOWS
from stepline.model.measure.windows import Windows, decode_windows, of_own_load
from stepline.model.picture.live_context import live_context
from stepline.model.picture.picture import (
    Floors,
    LiveContext,
    Load,
    Phases,
    Picture,
    Routing,
    Setup,
    Step,
    Target,
    floor_of,
)
from stepline.model.picture.step_points import best_points, point_at
from stepline.model.picture.target import find_target
from stepline.model.roofline.decode_floor import Floor
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.typical import Typical, typical_step
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    min_refills = Threshold(
        3,
        "decode lines with prefill inside",
        why="What a closed loop needs: one may hold a pause of the clients too.",
    )
    route = Threshold(
        0.25,
        "share of the running batch",
        why="Routes to it that differ by more are doubted: rate × time per token leaves out the "
        "prefill share of a request's life.",
        source="up to 23 % of the streams on the healthy H200 server at 64",
    )


def assess(run: Run, setup: Setup) -> Picture:
    """Compute the picture of a run."""
    whole = in_one_clock(run)
    run = of_own_load(whole)
    probes = probe_levels(run)
    own = without(run, probes)
    target, missing = find_target(run, setup)
    windows, probed = split(decode_windows(whole), probes)
    logged = plateaus(run)
    levels = offered_levels(own, logged)
    operating = operating_plateau(logged)
    load = _load(run, levels, logged, operating)
    points, instrument = best_points(run, windows, levels, load)
    experts = target.architecture is not None and bool(target.architecture.body.experts)
    law = fit(points, instrument, experts=experts)
    walls = () if instrument.holds_prefill else wall_points(run, windows, points)
    step = _step(load, points, instrument, levels, windows)
    context = live_context(own, windows.usable, load)
    if context is None and setup.context_length is not None and target.configured_context is None:
        context = LiveContext(tokens=float(setup.context_length), route="--context-length")
    floors, floors_missing = _floors(target, missing, step, context, points)
    samples = align_clocks(run.gpu_samples, log_span(logged) or _span(levels))
    stretches = _stretches(samples, logged, levels)
    use_by_running = _use_by_running(samples, stretches)
    loop = _loop(load, step) or _loop_from_log(run, step, windows)
    return Picture(
        run=run,
        target=target,
        windows=windows,
        probed=probed,
        law=law,
        plateaus=logged,
        levels=levels,
        load=load,
        step=step,
        context=context,
        floors=floors,
        floors_missing=floors_missing,
        gpu_use=_use_at_load(samples, stretches, load),
        gpu_use_by_running=use_by_running,
        loop=loop,
        wall_points=walls,
        traced=traced_step(run, walls),
        phases=_phases(load, levels),
        doubts=(*run.doubts, *_burst_doubts(load, operating), *_batch_doubts(levels), *_trace_doubts(run)),
    )


def _load(
    run: Run,
    levels: Sequence[OfferedLevel],
    logged: Sequence[Plateau],
    operating: Operating | None,
) -> Load | None:
    """The heaviest load measured undisturbed; without client levels, the heaviest plateau of the log that lasted."""
    usable = [level for level in levels if level.disturbed is None and level.running]
    if usable:
        level = usable[-1]
        assert level.running is not None  # noqa: S101  # filtered above
        prefills = [p.prefill_requests for p in logged if p.running == level.running.running]
        return Load(
            concurrency=level.concurrency,
            running=level.running.running,
            queued=level.queued,
            tok_s=level.tok_s,
            source=f"client level C = {level.concurrency:g} ({level.origin})",
            ttft_ms=level.ttft_ms,
            tpot_ms=level.tpot_ms,
            output_tokens=level.output_tokens,
            input_tokens=level.input_tokens,
            prefill_requests=sum(prefills) if prefills else None,
            ranks=_ranks(run),
        )
    if operating is not None:
        best = operating.plateau
        return Load(
            concurrency=None,
            running=best.running,
            queued=best.queued,
            tok_s=None,
            source=f"heaviest stretch of the log ({best.decode_lines} decode lines)",
            prefill_requests=best.prefill_requests,
            ranks=_ranks(run),
        )
    batches = [level for level in levels if level.running]
    if batches and batches[-1].running is not None:
        level = batches[-1]
        return Load(
            concurrency=None,
            running=batches[-1].running.running,
            queued=level.queued,
            tok_s=None,
            source=f"running batch as stated ({level.origin})",
        )
    stated = [row.running for row in run.step_rows]
    recorded = run.server.step_time_ms
    if stated or recorded is not None:
        largest = max([*stated, *(recorded.value if recorded is not None else {})])
        return Load(concurrency=None, running=largest, queued=None, tok_s=None, source="largest batch stated")
    return None


def _ranks(run: Run) -> int:
    return max(1, len({report.dp for report in run.decodes}))


def _step(
    load: Load | None,
    points: Sequence[LawPoint],
    instrument: Instrument,
    levels: Sequence[OfferedLevel],
    windows: Windows,
) -> Step | None:
    """The step at the load's running batch (per rank), from windows; else bounded by the client's rate."""
    if load is None:
        return None
    here = point_at(points, load.running / load.ranks)
    if here is not None:
        return _step_at(here, instrument, windows)
    mixed = [
        line
        for line in windows.mixed
        if abs(line.running - load.running / load.ranks) <= WINDOWS.same_batch * load.running / load.ranks
    ]
    if mixed:
        return Step(
            running=load.running / load.ranks,
            measured_ms=statistics.median(line.wall_ms for line in mixed),
            instrument=Instrument.MIXED,
            disturbance="prefill is inside every line at this batch: the step is at most this",
            windows=len(mixed),
            tokens_per_step=statistics.fmean(line.accept_length for line in mixed),
            upper_bound=True,
        )
    rated = [level for level in levels if level.tok_s and level.running and level.disturbed is None]
    if rated:
        level = rated[-1]
        assert level.running is not None and level.tok_s  # noqa: S101, PT018  # filtered above
        tokens = _accept_length(windows, level.running.running / load.ranks)
        return Step(
            running=level.running.running,
            measured_ms=1000 * level.running.running * tokens / level.tok_s,
            tokens_per_step=tokens,
            instrument=Instrument.CLIENT_RATE,
            disturbance="prefill and idle time are inside: the step is at most this",
            windows=1,
            upper_bound=True,
        )
    return None


def _step_at(point: LawPoint, instrument: Instrument, windows: Windows) -> Step:
    unverified = instrument == Instrument.WINDOW and not windows.valid
    if instrument.holds_prefill:
        disturbance = "prefill and changes of batch are inside: the step is at most this"
    elif unverified:
        disturbance = "the start of the window was not seen: a prefill or a gap may be inside"
    elif instrument in (Instrument.WINDOW, Instrument.WINDOW_FILLED):
        disturbance = "none seen: windows with prefill, batch changes or the profiler inside were left out"
    elif instrument == Instrument.STRETCH:
        disturbance = "front end and network are inside, averaged away; no prompt was computed meanwhile"
    elif instrument == Instrument.CLIENT_GAP:
        disturbance = "front end and network are inside; a median holds no prefill"
    else:
        disturbance = "unknown: somebody wrote the number down"
    return Step(
        running=point.running,
        measured_ms=point.step_ms,
        instrument=instrument,
        disturbance=disturbance,
        windows=point.windows,
        graph=point.graph,
        tokens_per_step=_accept_length(windows, point.running),
        upper_bound=unverified or instrument.holds_prefill,
    )


def _accept_length(windows: Windows, running: float) -> float:
    """Mean accept length of the decode lines at a batch; 1 where none states any."""
    lines = windows.usable or windows.bounded or windows.mixed
    at_batch = [window.accept_length for window in lines if window.running == running]
    return statistics.fmean(at_batch) if at_batch else 1.0


def _floors(
    target: Target,
    missing: str | None,
    step: Step | None,
    context: LiveContext | None,
    points: Sequence[LawPoint],
) -> tuple[Floors | None, str | None]:
    if missing is not None or target.architecture is None or target.gpu is None:
        return None, missing
    if step is None:
        return None, "no step was measured, so there is no batch to compute a floor for"
    if context is None:
        return None, "the live context is not known: give a log with #token, or --context-length"
    tokens = context.tokens

    def floor(running: float, routing: Routing) -> Floor:
        return floor_of(target, running, tokens, routing)

    used: Routing = "strict" if target.dummy_weights else "expected"
    smallest = min((point.running for point in points), default=1.0)
    other = smallest if smallest < step.running else step.running + 1
    try:
        here: dict[Routing, Floor] = {
            "strict": floor(step.running, "strict"),
            "expected": floor(step.running, "expected"),
        }
        growth: dict[Routing, float] = {
            routing: (at_load.total_ms - floor(other, routing).total_ms) / (step.running - other)
            for routing, at_load in here.items()
        }
    except UnknownFact as error:
        return None, str(error)
    floors = Floors(
        strict=here["strict"],
        expected=here["expected"],
        typical=_typical(target, step.running, tokens),
        used=used,
        per_request_ms=growth[used],
        expected_per_request_ms=growth["expected"],
    )
    return floors, None


def _typical(target: Target, running: float, context_tokens: float) -> Typical | None:
    if target.architecture is None or target.gpu is None:
        return None
    return typical_step(
        Deployment(target.architecture, target.gpu, target.layout, kv_dtype=target.kv_dtype),
        batch=running,
        context_tokens=context_tokens,
        calibration=target.calibration,
    )


def _span(levels: Sequence[OfferedLevel]) -> Interval | None:
    """From the first client level to the last, where the client tells its times."""
    times = [level.time for level in levels if level.time is not None]
    return Interval(min(t.start_s for t in times), max(t.end_s for t in times)) if times else None


class _Stretch(NamedTuple):
    """A time of one load, undisturbed."""

    offered: float
    running: float
    time: Interval | None


def _stretches(
    samples: Sequence[Any], logged: Sequence[Plateau], levels: Sequence[OfferedLevel]
) -> list[_Stretch]:
    """The log's plateaus; where it prints too seldom to show one with samples in it, the client's levels."""
    by_log = [_Stretch(p.offered, p.running, p.time) for p in logged if not p.profiled]
    if any(gpu_use(samples, stretch.time) is not None for stretch in by_log):
        return by_log
    return [
        _Stretch(x.concurrency, x.running.running, x.time)
        for x in levels
        if x.running is not None and x.disturbed is None
    ]


def _use_by_running(samples: Sequence[Any], stretches: Sequence[_Stretch]) -> dict[float, GpuUse]:
    """GPU use per running batch; the longest stretch of a batch counts."""
    uses: dict[float, GpuUse] = {}
    for _, running, time in stretches:
        use = gpu_use(samples, time)
        if use is not None and (running not in uses or use.samples > uses[running].samples):
            uses[running] = use
    return uses


def _use_at_load(samples: Sequence[Any], stretches: Sequence[_Stretch], load: Load | None) -> GpuUse | None:
    if load is None:
        return None
    offered = load.concurrency or load.running + (load.queued or 0)
    near = [stretch for stretch in stretches if abs(stretch.offered - offered) <= SHARED.same_load * offered]
    uses = [use for stretch in near if (use := gpu_use(samples, stretch.time)) is not None]
    return max(uses, key=lambda use: use.samples) if uses else None


def _loop(load: Load | None, step: Step | None) -> ClosedLoop | None:
    if load is None or step is None or load.tok_s is None or not load.output_tokens or step.upper_bound:
        return None
    return from_measured(load.running, step.measured_ms, load.output_tokens, load.tok_s, step.tokens_per_step)


def _loop_from_log(run: Run, step: Step | None, windows: Windows) -> ClosedLoop | None:
    """The closed loop by the log alone: what lines with prefill inside take beyond their decode steps.

    Lines at the load's batch hold a fixed number of steps, so their count gives the tokens made, the prompts admitted
    in them the requests, and their excess wall time what a request costs beside decode. On the capped H200 capture this
    reads 5.8 ms a request where the client's rate gives 6.3. Needs engines that print by steps, and refills seen.
    """
    interval = run.server.decode_report_interval_steps
    if (
        step is None
        or step.instrument not in (Instrument.WINDOW, Instrument.WINDOW_FILLED)
        or step.upper_bound
    ):
        return None
    if any(report.instrument != "window" for report in run.decodes):
        return None
    mixed = [
        line for line in windows.mixed if line.running == step.running and line.wall_ms > step.measured_ms
    ]
    requests = sum(line.prefill_sequences for line in mixed)
    pure = sum(window.count for window in windows.valid if window.running == step.running)
    if len(mixed) < T.min_refills or not pure:
        return None
    steps = WINDOWS.interval_steps if interval is None else interval.value
    beside_ms = sum((line.wall_ms - step.measured_ms) * steps for line in mixed)
    return ClosedLoop(
        running=step.running,
        step_ms=step.measured_ms,
        output_tokens=(pure + len(mixed)) * steps * step.running * step.tokens_per_step / requests,
        other_ms_per_request=beside_ms / requests,
        tokens_per_step=step.tokens_per_step,
    )


def _phases(load: Load | None, levels: Sequence[OfferedLevel]) -> Phases:
    """Queue is what first-token time grew by over the lightest undisturbed level, whose first tokens do not wait."""
    if load is None or load.ttft_ms is None or load.tpot_ms is None or not load.output_tokens:
        return Phases(queue_ms=None, prefill_ms=None, decode_ms=None)
    decode = load.tpot_ms * (load.output_tokens - 1)
    light = [
        level.ttft_ms
        for level in levels
        if level.disturbed is None
        and level.ttft_ms is not None
        and level.concurrency < (load.concurrency or 0.0)
        and level.input_tokens == load.input_tokens
    ]
    if not light:
        return Phases(queue_ms=None, prefill_ms=None, decode_ms=decode)
    alone = min(light)
    return Phases(queue_ms=max(0.0, load.ttft_ms - alone), prefill_ms=alone, decode_ms=decode)


def _burst_doubts(load: Load | None, operating: Operating | None) -> list[ReadingDoubt]:
    """A heavier stretch of the log that did not last, where the log alone says what the load is."""
    if load is None or load.concurrency is not None or operating is None or operating.burst is None:
        return []
    burst = operating.burst
    text = (
        f"up to {burst.offered:g} requests were there for {burst.decode_lines} decode lines: a burst; "
        f"the load is the heaviest that lasted, {operating.plateau.offered:g} for {operating.plateau.decode_lines}"
    )
    return [ReadingDoubt(topic="burst", text=text)]


def _batch_doubts(levels: Sequence[OfferedLevel]) -> list[ReadingDoubt]:
    """Doubts about levels: disturbed ones, and routes to the running batch that do not meet."""
    doubts = []
    for level in levels:
        if level.disturbed is not None:
            doubts.append(
                ReadingDoubt(
                    topic="disturbed-level",
                    text=f"level C = {level.concurrency:g} left out: {level.disturbed}",
                    origin=level.origin,
                )
            )
            continue
        running = [route.running for route in level.routes]
        if len(running) > 1 and max(running) > (1 + T.route) * statistics.median(running):
            said = ", ".join(f"{route.running:.1f} by {route.route}" for route in level.routes)
            doubts.append(
                ReadingDoubt(
                    topic="running-batch", text=f"at C = {level.concurrency:g} routes differ: {said}"
                )
            )
    return doubts


def _trace_doubts(run: Run) -> list[ReadingDoubt]:
    if run.trace is None:
        return []
    doubts = [*run.trace.doubts, *(doubt for rank in run.trace.ranks for doubt in rank.doubts)]
    return [ReadingDoubt(topic=f"trace-{doubt.topic}", text=doubt.text) for doubt in doubts]
