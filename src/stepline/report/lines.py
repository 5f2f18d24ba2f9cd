"""The sentences of a diagnosis that every report shows, whatever it is drawn with."""

from collections.abc import Iterable

from stepline import units
from stepline.findings.diagnosis import Finding, LawView, RunDiagnosis, SaturationView, StepView
from stepline.findings.families import family
from stepline.findings.outcome import Proof


def sentence(text: str) -> str:
    """A verdict or headline with its capital letter and full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def target_line(diagnosis: RunDiagnosis) -> str:
    """Engine, model, GPU and layout in one line."""
    target = diagnosis.target
    layout = " ".join(f"{name.upper()}{size}" for name, size in target.layout.items() if size > 1)
    server = " ".join(part for part in (target.engine, target.version) if part)
    parts = [
        server or "engine not known",
        target.model or "model not known",
        target.gpu or "GPU not known",
        layout,
    ]
    return " · ".join(part for part in parts if part)


def facts(diagnosis: RunDiagnosis) -> Iterable[tuple[str, str]]:
    """(label, sentence) of the load, the step, its law, the request's phases, the time and the health."""
    load, step = diagnosis.load, diagnosis.step
    if load is not None:
        offered = f"{load.concurrency:g} streams offered, " if load.concurrency is not None else ""
        queued = "queue not known" if load.queued is None else f"{load.queued:g} queued"
        rate = "" if load.tok_s is None else f", {units.tok_s(load.tok_s)}"
        yield "Load", f"{offered}{units.batch(load.running)} running, {queued}{rate}"
    if step is not None:
        yield "Step", step_line(step)
        yield "Law", law_line(step.law)
    phases = diagnosis.phases
    if phases.decode is not None and phases.queue is not None and phases.prefill is not None:
        parts = (("queue", phases.queue), ("prefill", phases.prefill), ("decode", phases.decode))
        times = " · ".join(f"{name} {units.ms(value)}" for name, value in parts)
        yield "Request", f"{times} → {phases.worst} hurts most"
    if diagnosis.life:
        yield "Time", " · ".join(f"{line.part} {units.percent(line.share or 0)}" for line in diagnosis.life)
    broken = "; ".join(f"{line.text}{at(line.source)}" for line in diagnosis.health)
    sound = (
        "not broken: no retraction, failure or restart seen"
        if diagnosis.watched
        else "not known: neither log nor counters, where a failure would show"
    )
    yield "Health", broken or sound


def step_line(step: StepView) -> str:
    """The measured step beside its floor."""
    most = "at most " if step.upper_bound else ""
    line = f"{most}{units.ms(step.measured_ms)} at {units.batch(step.running)} running ({step.instrument})"
    floor = step.floor
    if floor is None:
        return f"{line} · floor not known{'' if step.floor_missing is None else f': {step.floor_missing}'}"
    context = "" if step.context is None else f" at {step.context:,.0f} live tokens"
    least = f"floor {units.ms(least_ms(step) or 0)} ({floor.used}{context})"
    return f"{line} · {least} · {units.times(step.gap or 0)} the floor"


def least_ms(step: StepView) -> float | None:
    """The floor in use; None without one."""
    if step.floor is None:
        return None
    return step.floor.strict_ms if step.floor.used == "strict" else step.floor.expected_ms


def law_line(law: LawView) -> str:
    """The law as a formula, or why there is none."""
    if law.refused is not None:
        return f"none: {law.refused}"
    if law.saturation is not None:
        return saturating(law.saturation)
    per_request = law.per_request_ms or 0
    slope = f"{'-' if per_request < 0 else '+'} {units.fmt(abs(per_request))}"
    if law.interval is not None and law.per_request_ms is not None:
        slope += f" ± {units.fmt(law.interval.high - law.per_request_ms, 2)}"
    ceiling = "" if law.ceiling_tok_s is None else f" · ceiling {units.tok_s(law.ceiling_tok_s)}"
    expected = ""
    if law.expected_per_request_ms is not None:
        expected = f" · floor grows {units.ms(law.expected_per_request_ms)} a request"
    return f"step = {units.fmt(law.fixed_ms or 0)} {slope} N ms{ceiling}{expected}"


def saturating(law: SaturationView) -> str:
    """The law of a model with experts as a formula."""
    formula = f"{units.fmt(law.full_ms)} - {units.fmt(law.missing_ms)} · {units.fmt(law.untouched)}^N ms"
    return f"step = {formula} · levels off as the batch grows"


def kernel_floors(diagnosis: RunDiagnosis) -> str:
    """Why some kernels have a floor of their own and others have none."""
    if any(kernel.bytes_s is not None for kernel in diagnosis.kernels):
        return (
            "A floor and a rate need the shapes of a kernel's operands; where the rate is above memory's, what it read "
            "came from a cache and there is no floor."
        )
    return (
        "No kernel has a floor of its own: the trace holds no shapes of operands, as in replays of CUDA graphs. "
        "The parts of the step have theirs above."
    )


def worth(finding: Finding) -> str:
    """What removing the cause recovers; a measurement at fault costs no rate."""
    if finding.recoverable_tok_s is not None:
        return f"+{units.tok_s(finding.recoverable_tok_s)}"
    return "no decode rate to recover" if family(finding.code) == "measurement" else "cost not known"


def proof_line(proof: Proof) -> str:
    """The proving command with the server time it takes."""
    cost = "" if proof.cost_s is None else f" (about {proof.cost_s:.0f} s of server time)"
    return f"{proof.command}{cost}"


def evidence(diagnosis: RunDiagnosis) -> Iterable[str]:
    """What was read, what was used of it, how the instrument was disturbed, what was passed over."""
    provenance = diagnosis.provenance
    yield "read " + ", ".join(provenance.read)
    if provenance.window is not None:
        yield provenance.window
    if diagnosis.step is not None:
        yield f"disturbance: {diagnosis.step.disturbance}"
    yield from provenance.passed_over


def at(source: str | None) -> str:
    """Where a sentence was read, in brackets."""
    return "" if source is None else f" [{source}]"
