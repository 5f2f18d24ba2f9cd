"""S203 kv-preemption.

What it means:
    Running requests are thrown out of a full KV pool and must be prefilled again from the start.

Why it costs:
    Each retraction repeats a whole prefill; with long contexts that takes seconds, interleaved with decode.

Evidence needed:
    Retraction lines or counters; live context and the closed loop tell what they cost.

How it decides:
    Confirmed when prefilling retracted requests again takes at least 10 % of the time; below that the pool's size is
    what costs (S202). Where prefilled tokens are not counted, that time is what the closed loop leaves beside decode
    steps and ordinary prompts: suspected. Suspected too when that time cannot be told, when a full pool loses a running
    request and a long prefill follows without the engine saying that it retracted, or when the time per token jumps as
    the pool fills.

What would prove it wrong:
    No retraction in a longer window at the same load.

What to try:
    A larger KV pool, fewer running requests, a more careful admission (`--schedule-conservativeness`).

References:
    sgl-project/sglang issue 26248; vllm-project/vllm pull request 44594
"""

from stepline import units
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
from stepline.model.change.gain import Gain
from stepline.model.change.larger_batch import with_larger_batch
from stepline.model.measure.preemption import (
    Cliff,
    LostRequest,
    Retractions,
    find_cliff,
    lost_request,
    repeated_share,
    retractions,
)
from stepline.model.measure.preemption import T as PREEMPTION
from stepline.model.picture.picture import Picture
from stepline.model.signs.batch_limit import T as LIMIT
from stepline.model.signs.batch_limit import running_limit
from stepline.model.signs.recompute import repeated_by_loop
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    repeated_most = Threshold(
        0.9,
        "share of the time",
        why="Bound on the repeated prefill that the fast end of the gain takes away: twice the "
        "estimate may exceed the whole.",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether retractions cost."""
    run = picture.run
    seen = retractions(run)
    if seen is not None:
        return _seen(picture, seen)
    counted = any(m.retracted_requests is not None for m in run.metrics)
    lost = None if counted else lost_request(run)
    if lost is not None:
        return _inferred(lost)
    cliff = None if counted else find_cliff(run)
    if cliff is not None:
        return _fell_off(cliff)
    usages = [d.pool_usage for d in run.decodes if d.pool_usage is not None]
    if counted or (usages and max(usages) < LIMIT.pool_full):
        return Clear(
            "no retraction was reported"
            + (f"; pool at most {units.percent(max(usages))} full" if usages else "")
        )
    return CannotTell("retraction counts", "record the server's log and /metrics over the slow period")


def _seen(picture: Picture, seen: Retractions) -> Outcome:
    context = None if picture.context is None else picture.context.tokens
    beside = None if picture.loop is None else 1 - picture.loop.decode_share
    counted = repeated_share(picture.run, context, beside)
    share = counted if counted is not None else repeated_by_loop(picture) or None
    if share is not None and share < PREEMPTION.repeated:
        return Clear(
            f"{seen.requests:,.0f} requests were thrown out, but prefilling them again takes {units.percent(share)} of "
            "the time: the size of the pool is what costs (S202)"
        )
    evidence = [Observation(f"{seen.requests:,.0f} requests were thrown out of the KV pool", seen.origin)]
    gain, rate = None, picture.rate_tok_s
    if share is not None:
        evidence.append(Observation(f"prefilling them again takes about {units.percent(share)} of the time"))
    if share is not None and rate is not None:
        gain = _gain(picture, rate, share)
    return Fired(
        status="confirmed" if counted is not None else "suspected",
        headline=f"a full KV pool throws running requests out ({seen.requests:,.0f} so far)",
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(rate, gain),
        gain=gain,
        ruled_out=(
            RuledOut("S201 batch-capped", "a cap queues requests; it never throws a running one out"),
        ),
        rivals=()
        if counted is not None
        else (Rival("S202 kv-capacity-bound", "the time spent prefilling them again"),),
        tries=_TRIES,
        proof=_PROOF,
    )


def _gain(picture: Picture, rate: float, share: float) -> Gain:
    """The same batch without repeats, half of them gone at the slow end; at the fast end all that is offered runs."""
    without = rate / (1 - share)
    limit = running_limit(picture)
    larger = None
    if limit is not None and limit.kind == "kv":
        larger = with_larger_batch(picture, limit.offered or limit.running, pool=True)
    high = rate / (1 - min(T.repeated_most, 2 * share)) if larger is None else max(without, larger.high)
    return Gain(tok_s=without, low=rate / (1 - share / 2), high=high, binds_next="the KV pool")


def _fell_off(cliff: Cliff) -> Fired:
    before, after = cliff.before, cliff.after
    slower = units.times((after.tpot_ms or 0.0) / (before.tpot_ms or 1.0))
    return Fired(
        status="suspected",
        headline=f"time per token jumps {slower} as the KV pool fills",
        evidence=tuple(
            Observation(
                f"{units.ms(level.tpot_ms or 0.0)} a token at {level.running:g} running, the pool "
                f"{units.percent(level.pool_usage or 0.0)} full",
                level.origin,
            )
            for level in (before, after)
        ),
        ruled_out=(
            RuledOut("K403 linear-step", f"no kernel takes {slower} as long for so little more batch"),
        ),
        rivals=(Rival("S202 kv-capacity-bound", "retraction or preemption counts"),),
        tries=_TRIES,
        proof=_PROOF,
    )


def _inferred(lost: LostRequest) -> Fired:
    return Fired(
        status="suspected",
        headline="a full KV pool lost a running request, and a long prefill followed",
        evidence=(
            Observation(f"{lost.running_before} requests ran with the pool full", lost.full_at),
            Observation(
                f"then {lost.running_after} ran with {units.count(lost.pending_tokens)} tokens pending prefill",
                lost.prefill_at,
            ),
        ),
        rivals=(Rival("S204 prefill-interference", "a retraction line, or num_retracted_requests_total"),),
        tries=_TRIES,
        proof=_PROOF,
    )


_TRIES = (
    Try(
        "run fewer requests at once, or admit more carefully (--schedule-conservativeness above 1)",
        "a restart; more queueing",
    ),
    Try("give the KV cache more memory", "a restart"),
)
_PROOF = Proof("stepline compare BEFORE AFTER, recorded with the pool as it is and relieved", 60.0)

RULE = Rule("S203", "kv-preemption", "0.1.0", check)
