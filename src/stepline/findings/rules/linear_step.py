"""K403 linear-step.

What it means:
    The decode step grows with every request by more than memory traffic and arithmetic explain: a kernel treats the
    batch one by one, or rereads for each request what it could read once.

Why it costs:
    Batching gains nothing: the rate stops at the ceiling 1/b whatever concurrency is offered.

Evidence needed:
    A step law over at least two batches, and the roofline's slope (model, GPU, live context). To confirm: a trace.

How it decides:
    The per-request part is most of the step and over three times the roofline's slope. When the configured context far
    exceeds the live one, K401 explains the same line and goes first; K403 is then its rival. From a trace: kernels that
    every layer launches once for each of eight or more requests take at least 10 % of the step at the load, to which
    they grow with the batch. Without a law, from client levels or stated batches alone: three of them or more, the
    heaviest four times the lightest, and no rate above 1.25 times the lightest's. Suspected either way.

What would prove it wrong:
    A sweep of batches in which the step stays flat, or a slope that the KV reads of the true context explain.

What to try:
    A short trace without stacks at two batches; the kernel whose time doubles with the batch is the one.

References:
    docs/identifiability.md
"""

from stepline import units
from stepline.findings.cite import levers_ruled_out, not_bytes
from stepline.findings.outcome import (
    CannotTell,
    Clear,
    Fired,
    Observation,
    Outcome,
    Proof,
    Rival,
    Rule,
    RuledOut,
    Try,
    recovered,
)
from stepline.findings.roofline_excess import roofline_excess
from stepline.model.change.shorter_step import without_excess, without_work
from stepline.model.measure.law import StepLaw
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.signs.context_law import cache_at_load
from stepline.model.signs.flat_rate import FlatRate, flat_rate
from stepline.model.signs.kernel_paths import one_by_one
from stepline.model.signs.per_request_excess import PerRequestCost, capacity_explains


def check(picture: Picture) -> Outcome:
    """Decide whether the step grows with the batch beyond the roofline."""
    excess = roofline_excess(picture)
    flat = flat_rate(picture) if isinstance(excess, CannotTell) else None
    if flat is not None:
        return _flat(flat)
    cache = cache_at_load(picture)
    if isinstance(excess, tuple) and cache is not None and cache.matters:
        return Clear("the cost follows the live context: K402 accounts for it")
    seen = _one_by_one(picture)
    if seen is not None and (not isinstance(excess, tuple) or capacity_explains(picture)):
        return seen
    if not isinstance(excess, tuple):
        return excess
    law, cost = excess
    if capacity_explains(picture):
        return CannotTell(
            "what the per-request cost follows: a line in N at one context fits K401, K403 and K404 alike",
            "a short trace, a sweep of live context, or an A/B of the configured context",
        )
    return _fired(picture, law, cost)


def _flat(flat: FlatRate) -> Fired:
    """A rate that no further request raises; of client levels, waiting is the nearest rival."""
    rivals = [
        Rival(
            "K401 context-capacity-work", "configured and live context, then a trace or an A/B of the setting"
        ),
        Rival("K404 kernel-fallback", "a trace: kernel names and their paths"),
    ]
    if not flat.of_batches:
        rivals.insert(0, Rival("S201 batch-capped", "the running batch and queue in the log or /metrics"))
    what = "running" if flat.of_batches else "streams"
    return Fired(
        status="suspected",
        headline=f"{flat.heavy:g} {what} get {units.tok_s(flat.heavy_tok_s)}, {flat.light:g} "
        f"{units.tok_s(flat.light_tok_s)}: batching gains nothing",
        evidence=(
            Observation(
                f"per request {units.ms(1000 * flat.light / flat.light_tok_s)} a token at {flat.light:g} and "
                f"{units.ms(1000 * flat.heavy / flat.heavy_tok_s)} at {flat.heavy:g}: each further request costs what "
                "the first does, though the weights are read once for all"
            ),
        ),
        recoverable_tok_s=None,
        gain=None,
        ruled_out=(RuledOut("weight reads", "they are the same for every batch and cannot grow with it"),),
        rivals=tuple(rivals),
        tries=(
            Try(
                "take a short trace without stacks at two batches",
                "seconds of stalled service while it is written",
            ),
        ),
        proof=Proof("stepline trace on a capture at each of two batches", 10.0),
    )


def _one_by_one(picture: Picture) -> Fired | None:
    """Kernels launched for one request after the other, and their cost at the load; None where no trace has them."""
    traced, step = picture.traced, picture.step
    rows = () if traced is None else one_by_one(picture, traced.group)
    if traced is None or traced.group.batch is None or not rows:
        return None
    now_ms, batch = sum(kernel.busy_ms for kernel in rows), traced.group.batch
    cost_ms, step_ms, running = now_ms, traced.step_ms, float(batch)
    gain = None
    if step is not None and step.running >= batch and not step.upper_bound:
        running, step_ms = step.running, step.measured_ms
        cost_ms = now_ms * running / batch
        gain = without_work(picture, cost_ms)
    if cost_ms < SHARED.worth * step_ms:
        return None
    return Fired(
        status="suspected",
        headline=f"a kernel is launched for one request after the other: {units.percent(cost_ms / step_ms)} of a step "
        f"at {running:g} running",
        evidence=(
            Observation(
                f"{rows[0].per_step:,.0f} launches a step at {batch} running, {units.ms(now_ms)} of "
                f"{units.ms(traced.step_ms)}: `{rows[0].name[:60]}` [{traced.file}]"
            ),
        ),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=(RuledOut("H301 host-bound", f"these kernels take {units.ms(now_ms)} of GPU time"),),
        rivals=(Rival("K404 kernel-fallback", "operators or stacks: which part of the model launches it"),),
        tries=(Try("another backend for the part of the model that launches it", "a restart"),),
        proof=Proof("stepline trace on a capture at each of two batches", 10.0),
    )


def _fired(picture: Picture, law: StepLaw, cost: PerRequestCost) -> Fired:
    gain = without_excess(picture, cost)
    evidence = [
        Observation(
            f"step = {units.ms(law.fixed_ms)} + {units.ms(law.per_request_ms)} per running request "
            f"({len(law.points)} batches, {law.instrument})"
        )
    ]
    if law.ceiling_tok_s is not None:
        evidence.append(Observation(f"so no batch exceeds {units.tok_s(law.ceiling_tok_s)}"))
    if cost.ratio is not None:
        evidence.append(
            Observation(f"a further request costs {units.times(cost.ratio)} what the floor grants")
        )
    return Fired(
        status="suspected",
        headline=f"each further request costs {units.ms(law.per_request_ms)} a step: batching gains nothing",
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=(
            *not_bytes(picture, cost),
            RuledOut("H301 host-bound", "host time alone is flat in the batch; this step follows it"),
            *levers_ruled_out(picture),
        ),
        rivals=(
            Rival(
                "K401 context-capacity-work",
                "configured and live context, then a trace or an A/B of the setting",
            ),
            Rival("K404 kernel-fallback", "a trace: kernel names and their paths"),
        ),
        tries=(
            Try(
                "take a short trace without stacks at two batches",
                "seconds of stalled service while it is written",
            ),
        ),
        proof=Proof("stepline trace on a capture at each of two batches", 10.0),
    )


RULE = Rule("K403", "linear-step", "0.1.0", check, grows_with_request=True)
