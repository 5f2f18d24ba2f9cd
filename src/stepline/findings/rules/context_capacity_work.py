"""K401 context-capacity-work.

What it means:
    Kernels work over the context length the server is configured for, not over the tokens that are live: page tables,
    index logits or graph grids sized for the maximum are scanned for every request in every step.

Why it costs:
    A server set up for a million tokens pays for a million on every 300-token request: milliseconds per request per
    step where the roofline grants microseconds. `cuda graph: True` hides it, since the graph replays at full width.

Evidence needed:
    A step law linear in the batch beyond the roofline's slope, the configured context, and the live context. To
    confirm: a trace whose kernels carry the configured extent, a context sweep, or an A/B of the configured length.

How it decides:
    Confirmed when a trace shows at least a quarter of the step's GPU time in chains of kernels whose extents are the
    configured context (or its compressed, page-rounded part); suspected when it shows less at a smaller batch than the
    load's, whose sequences each have such work, which comes to a quarter of the load's step. From a law alone
    suspected: the per-request part is most of the step and over three times the roofline's slope (or longer than
    reading all memory), and the configured context is at least 8 times the live one; a line in N at one context fits
    K403 and K404 alike.

What would prove it wrong:
    With the configured context lowered, the step stays.

What to try:
    Lower `--context-length` / `--max-model-len` to what requests use; a restart, and longer requests are refused.

References:
    sgl-project/sglang issue 40441; vllm-project/vllm issue 40991; docs/identifiability.md
"""

from stepline import units
from stepline.evidence.trace import ContextWork
from stepline.findings.cite import levers_ruled_out, not_bytes
from stepline.findings.outcome import (
    CannotTell,
    Clear,
    Fired,
    Foretold,
    Observation,
    Outcome,
    Proof,
    Rival,
    Rule,
    RuledOut,
    SettingChange,
    Try,
    recovered,
)
from stepline.findings.roofline_excess import roofline_excess
from stepline.model.change.shorter_step import without_excess, without_work
from stepline.model.measure.traced_step import T as TRACED
from stepline.model.measure.traced_step import TracedStep
from stepline.model.picture.picture import Picture
from stepline.model.signs.batch_limit import enough_context
from stepline.model.signs.context_law import cache_at_load
from stepline.model.signs.per_request_excess import PerRequestCost, capacity_explains, per_request_cost
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    attributed = Threshold(
        0.8,
        "share of a step's GPU time",
        why="A trace with so much of its time in named components, and none of it work over the "
        "capacity, speaks against the cause.",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether the work follows the configured context."""
    configured, live = picture.target.configured_context, picture.context
    if picture.traced is not None:
        work = picture.traced.capacity_work
        if work is not None:
            return _seen(picture, picture.traced, work)
        less = picture.traced.largest_capacity_work
        if less is not None and _share_at_load(picture, picture.traced) >= TRACED.capacity:
            return _seen(picture, picture.traced, less)
        if configured is not None and picture.traced.group.attributed > T.attributed:
            return Clear(
                f"no kernel of the decode step in {picture.traced.file} is sized by {configured:,} tokens"
            )
    excess = roofline_excess(picture)
    if not isinstance(excess, tuple):
        return excess
    _, cost = excess
    cache = cache_at_load(picture)
    if cache is not None and cache.matters:
        return Clear("the cost follows the live context (K402), not the configured one")
    if configured is None or live is None:
        what = "the configured context" if configured is None else "the live context"
        return CannotTell(what, "read context_len in the log, and #token in decode lines")
    if not capacity_explains(picture):
        return Clear(
            f"configured {configured:,} against {live.tokens:,.0f} live tokens: no room for capacity work"
        )
    return _fired(picture, cost, configured, live.tokens)


def _share_at_load(picture: Picture, traced: TracedStep) -> float:
    """Share of the load's step in work that the trace shows at a smaller batch; 0 where that cannot be told."""
    step = picture.step
    if step is None or step.upper_bound or traced.group.batch is None or step.running < traced.group.batch:
        return 0.0
    return (traced.capacity_ms_at(step.running) or 0.0) / step.measured_ms


def _seen(picture: Picture, traced: TracedStep, work: ContextWork) -> Fired:
    """The trace shows kernels whose extents are the configured context."""
    group, confirmed = traced.group, traced.capacity_work is not None
    share = work.busy_ms / group.busy_ms
    cost = per_request_cost(picture)
    gain = None if cost is None else without_excess(picture, cost)
    if not confirmed and picture.step is not None:
        gain = without_work(picture, _share_at_load(picture, traced) * picture.step.measured_ms)
    per = (
        ""
        if work.per_chain_per_request_ms is None
        else f", {units.ms(work.per_chain_per_request_ms)} a layer and request"
    )
    evidence = [
        Observation(
            f"{units.ms(work.busy_ms)} of {units.ms(group.busy_ms)} GPU time a step at {group.batch} running "
            f"({units.percent(share)}) is in {work.kernels:.0f} kernels of the configured extent{per} [{traced.file}]"
        ),
        Observation(
            f"their extents share the factor {work.factor:,} = {work.context_tokens:,} / {work.divisor} + {work.pad}, "
            f"seen in {work.seen_in}"
        ),
    ]
    if picture.context is not None:
        evidence.append(
            Observation(f"live context about {picture.context.tokens:,.0f} tokens ({picture.context.route})")
        )
    from stepline.model.trace.context_work import span_at  # noqa: PLC0415  # numpy, only where a trace was read

    lower = enough_context(picture)
    after = None if lower is None else span_at(group, lower)
    if after is not None:
        evidence.append(
            Observation(f"configured for {lower:,} tokens the step's GPU work would take {units.ms(after)}")
        )
    told = share if confirmed else _share_at_load(picture, traced)
    return Fired(
        status="confirmed" if confirmed else "suspected",
        headline=f"{units.percent(told)} of a decode step works over the configured {work.context_tokens:,} tokens",
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=(
            RuledOut(
                "K403 linear-step",
                "the extents of the kernels are the configured context, whatever the batch",
            ),
            RuledOut("H301 host-bound", f"the GPU works {units.ms(group.busy_ms)} of each step"),
            *(() if cost is None else not_bytes(picture, cost)),
            *levers_ruled_out(picture),
        ),
        tries=_TRIES,
        proof=_PROOF,
    )


def _fired(picture: Picture, cost: PerRequestCost, configured: int, live: float) -> Fired:
    gain = without_excess(picture, cost)
    evidence = [
        Observation(
            f"the step grows by {units.ms(cost.slope_ms)} for each further request, "
            f"{units.percent(cost.share)} of it at {cost.at_running:g} running"
        ),
        Observation(
            f"configured context {configured:,} tokens ({picture.target.configured_context_source}), live about "
            f"{live:,.0f} ({picture.context.route if picture.context else ''})"
        ),
    ]
    if cost.ratio is not None:
        grants = units.ms(cost.expected_slope_ms or 0.0)
        evidence.append(Observation(f"under uniform routing the floor grows by {grants} a request"))
    if picture.target.dummy_weights:
        evidence.append(
            Observation("dummy weights collapse expert routing, so only the strict floor can prove anything")
        )
    decided = (
        "a trace (extents equal to the configured context), a sweep of live context, or an A/B of the setting"
    )
    return Fired(
        status="suspected",
        headline=f"each request costs {units.ms(cost.slope_ms)} a step, as work over the configured context would",
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=(*not_bytes(picture, cost), *levers_ruled_out(picture)),
        rivals=(Rival("K403 linear-step", decided), Rival("K404 kernel-fallback", decided)),
        tries=_TRIES,
        proof=_PROOF,
    )


_TRIES = (
    Try(
        "lower the configured context (--context-length, --max-model-len) to what requests use",
        "a restart; longer requests are refused",
    ),
)
_PROOF = Proof("stepline compare BEFORE AFTER, recorded at the present and at a lowered context length", 60.0)


def _shorter_context(picture: Picture) -> SettingChange | None:
    """A configured context that leaves room over the live one."""
    enough, configured = enough_context(picture), picture.target.configured_context
    if enough is None or configured is None or enough >= configured:
        return None
    return SettingChange(setting="context_length", value=enough)


def _gpu_work(before: Picture, after: Picture) -> Foretold | None:
    """GPU time of a step at the context that AFTER is configured for, from BEFORE's trace and from AFTER's own."""
    ours, theirs, configured = before.traced, after.traced, after.target.configured_context
    if ours is None or configured is None:
        return None
    from stepline.model.trace.context_work import span_at  # noqa: PLC0415  # numpy, only where a trace was read

    predicted = span_at(ours.group, configured)
    if predicted is None:
        return None
    alike = theirs is not None and theirs.group.batch == ours.group.batch
    measured = (theirs.group.graph_span_ms or theirs.group.span_ms) if alike and theirs is not None else None
    return Foretold(
        f"GPU time of a step at {ours.group.batch} running, for {configured:,} tokens",
        "ms",
        predicted,
        measured,
    )


RULE = Rule(
    "K401",
    "context-capacity-work",
    "0.1.0",
    check,
    change=_shorter_context,
    grows_with_request=True,
    foretell=_gpu_work,
)
