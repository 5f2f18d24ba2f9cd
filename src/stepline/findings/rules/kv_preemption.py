"""S203 kv-preemption.

What it means:
    Running requests are thrown out of a full KV pool and must be prefilled again from the start.

Why it costs:
    Each retraction repeats a whole prefill; with long contexts that takes seconds, interleaved with decode.

Evidence needed:
    Retraction lines or counters; the tokens recomputed and the time they take tell the cost.

How it decides:
    Confirmed when retractions were seen and the recomputed tokens are at least 10 % of all prefill. Suspected when a
    full pool loses a running request and a long prefill follows, without the engine saying that it retracted.

What would prove it wrong:
    No retraction in a longer window at the same load.

What to try:
    A larger KV pool, fewer running requests, a more careful admission (`--schedule-conservativeness`).

References:
    sgl-project/sglang issue 26248; vllm-project/vllm pull request 44594
"""

from stepline import units
from stepline.evidence.origin import Origin
from stepline.findings.outcome import (
    CannotTell,
    Clear,
    Fired,
    Gain,
    Observation,
    Outcome,
    Proof,
    Rival,
    Rule,
    Try,
    recovered,
)
from stepline.model.picture import Picture
from stepline.model.retraction import LostRequest, lost_request, retractions

WORTH = 0.1
"""Share of prefill that is repeated from which retractions count as a cause."""


def check(picture: Picture) -> Outcome:
    """Decide whether retractions cost."""
    run = picture.run
    seen = retractions(run)
    if seen is not None:
        return _seen(picture, seen.requests, seen.origin)
    lost = lost_request(run)
    if lost is not None:
        return _inferred(lost)
    counted = any(m.retracted_requests is not None for m in run.metrics)
    usages = [d.pool_usage for d in run.decodes if d.pool_usage is not None]
    if counted or (usages and max(usages) < 0.9) or len(run.decodes) > 20:
        return Clear(
            "no retraction was reported"
            + (f"; pool at most {units.percent(max(usages))} full" if usages else "")
        )
    return CannotTell("retraction counts", "record the server's log and /metrics over the slow period")


def _seen(picture: Picture, retracted: float, origin: Origin | None) -> Outcome:
    run = picture.run
    evidence = [Observation(f"{retracted:,.0f} requests were retracted from the KV pool", origin)]
    share = None
    prefilled = max((m.prefill_tokens or 0.0 for m in run.metrics), default=0.0) or sum(
        p.new_tokens for p in run.prefills
    )
    if picture.context is not None and prefilled:
        share = min(1.0, retracted * picture.context.tokens / prefilled)
        evidence.append(
            Observation(f"about {units.percent(share)} of all prefilled tokens were prefilled again")
        )
    if share is not None and share < WORTH:
        return Clear(f"{retracted:,.0f} retractions repeated only {units.percent(share)} of the prefill")
    rate, gain = picture.rate_tok_s, None
    if share is not None and picture.loop is not None and rate is not None:
        wasted = share * (1 - picture.loop.decode_share)
        gain = Gain(
            tok_s=rate / (1 - wasted),
            low=rate,
            high=rate / (1 - 2 * min(wasted, 0.45)),
            binds_next="the KV pool",
        )
    return Fired(
        status="confirmed" if share is not None else "suspected",
        headline=f"{retracted:,.0f} running requests were thrown out of a full KV pool",
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(rate, gain),
        gain=gain,
        rivals=()
        if share is not None
        else (Rival("S204 prefill-interference", "tokens prefilled again (live context)"),),
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
