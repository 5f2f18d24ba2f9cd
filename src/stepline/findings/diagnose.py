"""From a picture to a diagnosis: every rule asked, answers ranked by recoverable rate, doubts kept beside them."""

from stepline import units
from stepline.evidence.origin import Sourced
from stepline.evidence.run import Run
from stepline.findings import diagnosis as view
from stepline.findings import tables, together
from stepline.findings.accounting_view import accounted, accounting_lines, unexplained_ms
from stepline.findings.families import family
from stepline.findings.general import unexplained
from stepline.findings.outcome import CannotTell, Clear, Fired, Observation, Rule
from stepline.findings.registry import RULES
from stepline.findings.relations import outranks_all
from stepline.findings.roofline_view import roofline
from stepline.findings.timeline import timeline
from stepline.findings.tried import with_trials
from stepline.findings.verdict import below_floor, without_finding
from stepline.model.measure.counters import over_recording
from stepline.model.measure.drift import find_drift
from stepline.model.measure.law import Interval, NoLaw, StepLaw, law_or_none
from stepline.model.measure.log_clock import clock_time
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.measure.windows import DecodeWindow
from stepline.model.picture.picture import Picture
from stepline.model.picture.step_points import T as POINTS
from stepline.model.signs.host import gpu_busy
from stepline.model.signs.tensor_pipe import tensor_statement
from stepline.version import __version__

MAX_FINDINGS = 5


def diagnose(picture: Picture, *, general_only: bool = False) -> view.RunDiagnosis:
    """Ask every rule and put the answers together; with `general_only` none but the accounting's own findings."""
    asked = [rule for rule in RULES if rule.general or not general_only]
    answers = [(rule, with_trials(rule, rule.check(picture), picture)) for rule in asked]
    told = [(rule, answer) for rule, answer in answers if isinstance(answer, Fired)]
    specific = [pair for pair in told if not pair[0].general]
    fired = specific + unexplained([pair for pair in told if pair[0].general], specific)
    worth = sorted(
        (pair for pair in fired if pair[0].proven and _worth(pair[1], picture)), key=lambda pair: _rank(*pair)
    )
    notes = [pair for pair in fired if pair not in worth] + worth[MAX_FINDINGS:]
    findings = tuple(_finding(rule, answer) for rule, answer in worth[:MAX_FINDINGS])
    conclusive = bool(findings) or picture.step is not None or picture.traced is not None
    return view.RunDiagnosis(
        id=picture.run.id or "run",
        verdict=_verdict(findings, picture),
        conclusive=conclusive,
        target=_target(picture),
        load=_load(picture),
        step=_step(picture),
        life=_life(picture),
        accounting=accounting_lines(picture),
        accounted=accounted(picture),
        unexplained_ms=unexplained_ms(picture),
        phases=view.PhasesView(
            queue=picture.phases.queue_ms,
            prefill=picture.phases.prefill_ms,
            decode=picture.phases.decode_ms,
            worst=picture.phases.worst,
        ),
        health=_health(picture.run) + _since(picture),
        watched=bool(picture.run.decodes or picture.run.events or picture.run.metrics),
        findings=findings,
        notes=tuple(_note(rule, answer) for rule, answer in notes) + _statements(picture),
        clear=tuple(
            view.ClearView(code=rule.code, name=rule.codename, reason=answer.reason)
            for rule, answer in answers
            if isinstance(answer, Clear)
        ),
        cannot_tell=tuple(
            view.CannotTellView(
                code=rule.code, name=rule.codename, needs=answer.needs, command=answer.command
            )
            for rule, answer in answers
            if isinstance(answer, CannotTell)
        ),
        doubts=(*_below_floor(picture), *(view.Doubt(topic=d.topic, text=d.text) for d in picture.doubts)),
        roofline=roofline(picture),
        kernels=tables.kernels(picture),
        levels=tables.levels(picture),
        levers=tables.levers(picture),
        timeline=timeline(picture),
        provenance=_provenance(picture),
    )


def _below_floor(picture: Picture) -> tuple[view.Doubt, ...]:
    text = below_floor(picture)
    return () if text is None else (view.Doubt(topic="below-floor", text=text),)


def _worth(answer: Fired, picture: Picture) -> bool:
    """False when the cause costs under a tenth of the load's time; an unknown cost stays a finding."""
    rate = picture.rate_tok_s
    if answer.recoverable_tok_s is None or rate is None:
        return True
    return answer.recoverable_tok_s / (rate + answer.recoverable_tok_s) >= SHARED.worth


def _rank(rule: Rule, answer: Fired) -> tuple[bool, bool, float, bool, bool]:
    """Sort key: confirmed faults of the measurement, then known cost (largest first), then confirmed before suspected.

    Which faults of the measurement come first is said in `relations.py`.
    """
    cost, sure = answer.recoverable_tok_s, answer.status == "confirmed"
    doubt = family(rule.code) == "measurement"
    return (not (sure and outranks_all(rule.code)), cost is None, -(cost or 0.0), not sure, doubt)


def _finding(rule: Rule, answer: Fired) -> view.Finding:
    return view.Finding(
        code=rule.code,
        name=rule.codename,
        status=answer.status,
        headline=answer.headline,
        recoverable_tok_s=answer.recoverable_tok_s,
        gain=answer.gain,
        evidence=tuple(_cite(line) for line in answer.evidence),
        ruled_out=answer.ruled_out,
        rivals=answer.rivals,
        tries=answer.tries,
        proof=answer.proof,
    )


def _cite(line: Observation) -> view.Cited:
    return view.Cited(line.text, None if line.origin is None else str(line.origin))


def _note(rule: Rule, answer: Fired) -> view.Cited:
    cost = answer.recoverable_tok_s
    if not rule.proven:
        return view.Cited(
            f"{rule.code} {rule.codename}: {answer.headline} (a note: no capture has proven this rule yet)"
        )
    worth = "" if cost is None else f" (about {units.tok_s(cost)}, under a tenth of the load)"
    return view.Cited(f"{rule.code} {rule.codename}: {answer.headline}{worth}")


def _statements(picture: Picture) -> tuple[view.Cited, ...]:
    statement = tensor_statement(picture)
    return () if statement is None else (view.Cited(statement),)


def _verdict(findings: tuple[view.Finding, ...], picture: Picture) -> str:
    """The one sentence that answers."""
    if findings:
        top = findings[0]
        sure = "" if top.status == "confirmed" else "suspected: "
        gain = ""
        if top.gain is not None and picture.rate_tok_s:
            gain = (
                f"; removing it should give {units.tok_s(top.gain.tok_s)} "
                f"({units.count(top.gain.low)} to {units.count(top.gain.high)}), "
                f"{units.times(top.gain.tok_s / picture.rate_tok_s)} today's {units.tok_s(picture.rate_tok_s)}"
            )
        return f"{sure}{top.headline}{gain}"
    return without_finding(picture)


def _target(picture: Picture) -> view.TargetView:
    target, server = picture.target, picture.run.server
    knobs = []
    for name in (
        "context_length",
        "max_running",
        "kv_capacity_tokens",
        "kv_dtype",
        "quantization",
        "decode_graphs",
        "decode_graph_sizes",
        "overlap_schedule",
        "prefix_cache",
        "chunked_prefill_tokens",
        "attention_backend",
        "moe_backend",
        "speculative",
        "dummy_weights",
    ):
        known: Sourced[object] | None = getattr(server, name)
        if known is not None:
            knobs.append(view.KnobValue(name, str(known.value), str(known.origin)))
    layout = target.layout
    return view.TargetView(
        engine=target.engine,
        version=target.version,
        model=target.model or (target.architecture.name if target.architecture else None),
        gpu=None if target.gpu is None else target.gpu.name,
        layout={"tp": layout.tp, "ep": layout.ep, "dp": layout.dp, "pp": layout.pp},
        knobs=tuple(knobs),
    )


def _load(picture: Picture) -> view.LoadView | None:
    load = picture.load
    if load is None:
        return None
    return view.LoadView(
        concurrency=load.concurrency,
        running=load.running,
        queued=load.queued,
        tok_s=load.tok_s,
        source=load.source,
    )


def _step(picture: Picture) -> view.StepView | None:
    step = picture.step
    if step is None:
        return None
    floors, context = picture.floors, picture.context
    floor = None
    if floors is not None:
        floor = view.FloorView(
            strict_ms=floors.strict.total_ms,
            expected_ms=floors.expected.total_ms,
            typical_ms=None if floors.typical is None else floors.typical.ms,
            used=floors.used,
            not_counted=floors.expected.not_counted,
            parts=tuple(
                view.FloorPart(component=part.name, ms=part.ms, bytes=part.bytes, bound=part.bound)
                for part in floors.here.components
            ),
            collective_ms=floors.here.collectives.ms,
        )
    return view.StepView(
        running=step.running,
        context=None if context is None else context.tokens,
        context_source=None if context is None else context.route,
        measured_ms=step.measured_ms,
        instrument=step.instrument,
        disturbance=step.disturbance,
        upper_bound=step.upper_bound,
        interval=_span(step.interval),
        floor=floor,
        floor_missing=picture.floors_missing,
        gap=picture.gap,
        law=_law(picture.law, picture),
    )


def _law(law: StepLaw | NoLaw, picture: Picture) -> view.LawView:
    points = tuple(
        view.LawPointView(running=p.running, step_ms=p.step_ms, windows=p.windows)
        for p in (*law.points, *(law.eager if isinstance(law, StepLaw) else ()))
    )
    expected = None if picture.floors is None else picture.floors.expected_per_request_ms
    if isinstance(law, NoLaw):
        return view.LawView(
            instrument="",
            points=points,
            refused=law.reason,
            curve=_curve(law, picture),
            expected_per_request_ms=expected,
        )
    return view.LawView(
        instrument=law.instrument,
        points=points,
        shape=law.shape,
        fixed_ms=law.fixed_ms,
        per_request_ms=law.per_request_ms,
        ceiling_tok_s=law.ceiling_tok_s,
        fixed_interval=_span(law.fixed_interval),
        interval=_span(law.per_request_interval),
        curve=_curve(law, picture),
        expected_per_request_ms=expected,
        saturation=None
        if law.saturation is None
        else view.SaturationView(
            full_ms=law.saturation.full_ms,
            missing_ms=law.saturation.missing_ms,
            untouched=law.saturation.untouched,
        ),
    )


def _curve(law: StepLaw | NoLaw, picture: Picture) -> tuple[view.LawCurvePoint, ...]:
    """Nine points are enough for the bend of the interval and of the floor."""
    largest = max((point.running for point in law.points), default=0.0)
    if largest == 0:
        return ()
    told = law if isinstance(law, StepLaw) else None
    used = None if picture.floors is None else picture.floors.used
    points = []
    for eighth in range(9):
        running = largest * eighth / 8
        floor = None if used is None or running == 0 else picture.floor_at(running, used)
        points.append(
            view.LawCurvePoint(
                running=running,
                step_ms=None if told is None else told.step_ms(running),
                interval=None if told is None else _span(told.step_interval(running)),
                floor_ms=None if floor is None else floor.total_ms,
            )
        )
    return tuple(points)


def _span(interval: Interval | None) -> together.Span | None:
    return None if interval is None else together.Span(interval.low, interval.high)


def _life(picture: Picture) -> tuple[view.LifeLine, ...]:
    """A second of the server's life at the load; the two first lines sum to 1."""
    loop = picture.loop
    if loop is None:
        return ()
    busy = gpu_busy(picture)
    lines = [
        view.LifeLine(
            part="decode steps",
            share=loop.decode_share,
            evidence="rate × step over running batch (closed loop)",
        ),
        view.LifeLine(
            part="prefill, admission and gaps",
            share=1 - loop.decode_share,
            evidence="the rest of the time; without a trace prefill is not told from idle",
        ),
    ]
    if busy is not None:
        lines.append(
            view.LifeLine(
                part="of all time, GPU idle",
                share=1 - busy.share,
                evidence=f"{busy.instrument}, while requests ran",
            )
        )
    return tuple(lines)


def _health(run: Run) -> tuple[view.Cited, ...]:
    """Slow or broken: retractions, failures, crashes, restarts."""
    names = {
        "retraction": "requests retracted from the KV pool",
        "out-of-memory": "out of memory",
        "crash": "the scheduler failed",
        "disconnect": "requests answered with a 5xx status",
    }
    lines = []
    for kind, text in names.items():
        events = [event for event in run.events if event.kind == kind]
        if events:
            lines.append(view.Cited(f"{len(events)} × {text}", str(events[0].origin)))
    counted = over_recording(run)
    errors = 0.0 if counted is None else counted.server_errors or 0.0
    if errors:
        lines.append(view.Cited(f"{errors:.0f} requests answered with a 5xx status (counter)"))
    failed = [level for level in run.levels if level.failures is not None and level.failed]
    if failed:
        total = sum(level.failed or 0 for level in failed)
        why = next((level.failures.first for level in failed if level.failures and level.failures.first), "")
        lines.append(view.Cited(f"{total} of the client's requests failed: {why}", str(failed[0].origin)))
    return tuple(lines)


def _since(picture: Picture) -> tuple[view.Cited, ...]:
    """Since when the step changed, where the log shows it."""
    step = picture.step
    earlier = tuple(window for window in picture.windows.earlier if _of_the_loads_context(window, picture))
    log = earlier + (() if picture.windows.by_client else picture.windows.valid)
    drift = None if step is None else find_drift(log, step.running)
    if drift is None:
        return ()
    clock = "" if drift.time_s is None else f" since {clock_time(picture.run, drift.time_s)}"
    times = f"{units.ms(drift.before_ms)} before, {units.ms(drift.after_ms)} after"
    text = f"steps at {drift.running} changed{clock}: {times}"
    return (view.Cited(text, str(drift.since)),)


def _of_the_loads_context(window: DecodeWindow, picture: Picture) -> bool:
    """Whether a window of earlier requests can be compared with the load's: a longer context is no change of step."""
    if picture.context is None or not window.pool_tokens:
        return False
    ratio = window.pool_tokens / window.running / picture.context.tokens
    return 1 / POINTS.same_context <= ratio <= POINTS.same_context


def _provenance(picture: Picture) -> view.Provenance:
    run = picture.run
    discarded = ", ".join(f"{count} {reason}" for reason, count in picture.windows.discarded.items())
    kept = len(picture.windows.usable)
    window = (
        f"{kept} decode windows used" + (f"; left out: {discarded}" if discarded else "")
        if run.decodes
        else None
    )
    law = law_or_none(picture.law)
    points = law.points if law is not None else picture.law.points
    return view.Provenance(
        stepline=__version__,
        read=tuple(f"{file.path} ({file.kind}, {file.records} records)" for file in run.files if file.kind),
        passed_over=tuple(file.note or file.path for file in run.files if not file.kind),
        window=window,
        samples_per_level={f"{point.running:g}": point.windows for point in points},
    )
