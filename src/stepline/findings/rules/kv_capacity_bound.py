"""S202 kv-capacity-bound.

What it means:
    Requests wait because the KV pool cannot hold one more, not because a setting caps the batch.

Why it costs:
    The batch stays smaller than the load, so weight reads are shared by fewer requests, and the rest queue.

Evidence needed:
    A queue (or streams beyond the running batch) and the pool's use, or its capacity and the requests' lengths.

How it decides:
    Offered exceeds running by over 15 % and the pool is at least 90 % full, or holds no further request of the load's
    mean length. Confirmed when the engine shows queue and pool use, and even the slow end of the gain is a tenth of the
    load's time; suspected when only arithmetic says so, or when a somewhat larger batch may gain less.

What would prove it wrong:
    With a larger pool (or shorter outputs) the running batch stays.

What to try:
    More memory for KV (`--mem-fraction-static`, `--gpu-memory-utilization`), an fp8 KV cache, shorter contexts.

References:
    docs/identifiability.md
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
from stepline.model.change.larger_batch import with_larger_batch
from stepline.model.measure.preemption import lost_or_fell
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.signs.batch_limit import RunningLimit, running_limit
from stepline.model.signs.batch_limit import T as LIMIT


def check(picture: Picture) -> Outcome:
    """Decide whether the KV pool keeps the batch below the load."""
    limit = running_limit(picture)
    if limit is None or limit.offered is None:
        return CannotTell("running batch and queue", "save the log and curl /metrics under load")
    if limit.kind == "nothing waits":
        return Clear(f"all {limit.offered:g} offered requests run")
    if limit.kind != "kv":
        if limit.pool_usage is None and limit.fits is None:
            return CannotTell("the KV pool's use", "read token usage in the log or /metrics")
        use = "has room" if limit.pool_usage is None else f"is at most {units.percent(limit.pool_usage)} full"
        return Clear(f"the KV pool {use}")
    if lost_or_fell(picture.run):
        return Clear("the pool is full to the point of throwing requests out: S203 accounts for it")
    return _fired(picture, limit)


def _fired(picture: Picture, limit: RunningLimit) -> Fired:
    offered = limit.offered or limit.running
    gain = with_larger_batch(picture, offered, pool=True)
    evidence = [Observation(f"{limit.running:g} requests run while {offered:g} are offered")]
    if limit.pool_usage is not None:
        evidence.append(Observation(f"the KV pool is up to {units.percent(limit.pool_usage)} full"))
    capacity = picture.run.server.kv_capacity_tokens
    if limit.fits is not None and capacity is not None:
        evidence.append(
            Observation(
                f"it holds {units.count(capacity.value)} tokens, {limit.fits:.1f} requests of this load",
                capacity.origin,
            )
        )
    seen = limit.pool_usage is not None and limit.pool_usage >= LIMIT.pool_full and bool(limit.waiting)
    name = "S201 batch-capped"
    below_cap = limit.cap is not None and limit.running < limit.cap - 1
    rate = picture.rate_tok_s
    costs = gain is None or rate is None or rate <= (1 - SHARED.worth) * gain.low
    return Fired(
        status="confirmed" if seen and below_cap and costs else "suspected",
        headline=f"the KV pool holds {limit.running:g} of {offered:g} offered requests",
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=(RuledOut(name, f"{limit.running:g} run, below the cap of {limit.cap:g}"),)
        if below_cap
        else (),
        rivals=() if below_cap else (Rival(name, "the cap in force (max_running_requests in /server_info)"),),
        tries=(
            Try(
                "give the KV cache more memory, or store it in fp8",
                "a restart; fp8 KV changes numerics slightly",
            ),
            Try("limit output or context length per request", "longer requests are refused"),
        ),
        proof=Proof("stepline compare BEFORE AFTER, recorded with the pool as it is and enlarged", 60.0),
    )


RULE = Rule("S202", "kv-capacity-bound", "0.1.0", check)
