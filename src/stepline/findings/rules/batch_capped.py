"""S201 batch-capped.

What it means:
    Requests wait while the engine decodes fewer of them together than it could: a setting limits the running batch.

Why it costs:
    A decode step reads the weights once for the whole batch, so a step with 8 sequences takes nearly as long as one
    with 64. The step looks perfect and the server is slow all the same; the queue turns into first-token time.

Evidence needed:
    The running batch from the engine (log, gauge, or rate × time per token), what is offered (queue length or the
    client's streams), and the cap in force. Optional: KV pool use, which rules out the nearest rival.

How it decides:
    Offered exceeds running by over 15 %, the running batch stands at the cap, and the KV pool has room. Confirmed
    when the cap is known from the engine and the pool use is known; suspected when one of them is not. A batch that
    varies from line to line while requests wait is held by no cap, nor is one beside which the engine has none waiting.

What would prove it wrong:
    With the cap raised the running batch stays where it is.

What to try:
    Raise the cap (SGLang `--max-running-requests`, vLLM `--max-num-seqs`); it needs a restart, more KV memory per
    step and, above the captured sizes, larger decode graphs.

References:
    docs/identifiability.md; Little, "A Proof for the Queuing Formula L = λW", Operations Research 9(3), 1961.
"""

import msgspec

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
    SettingChange,
    Try,
    recovered,
)
from stepline.model.change.larger_batch import with_larger_batch
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.signs.batch_limit import RunningLimit, running_limit
from stepline.model.signs.batch_limit import T as LIMIT
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    steady = Threshold(
        0.05,
        "share of the running batch",
        why="A batch at a cap spreads by no more: a place or two is empty at the moment of a line.",
    )
    same_load = Threshold(
        0.5,
        "share of the running batch",
        why="Lines whose batch is further away belong to other levels.",
    )
    min_lines = Threshold(
        3,
        "decode lines",
        why="Fewer say nothing of how steady the batch is.",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether a cap keeps the batch below the load."""
    limit = running_limit(picture)
    if limit is None:
        return CannotTell("the running batch", "record the server's log or /metrics")
    if limit.offered is None:
        return CannotTell(
            f"why {limit.running:g} run: the queue length (#queue-req) or the number of streams offered, and the cap",
            "save the log, and curl /server_info and /metrics",
        )
    if limit.kind == "nothing waits":
        return Clear(f"all {limit.offered:g} offered requests run ({limit.running:g} in the engine)")
    if limit.kind == "kv":
        return Clear("the KV pool, not a cap, limits the batch (S202)")
    if limit.waiting is None and limit.cap is None and not _queue_seen(picture):
        return CannotTell(
            f"why {limit.running:.3g} of {limit.offered:g} run: neither queue nor cap is shown",
            "read max_running_requests in /server_info and #queue-req in the log",
        )
    if limit.waiting == 0 and limit.cap is None:
        return Clear(
            f"{limit.running:.3g} of {limit.offered:g} offered requests run and none waits in the engine: "
            "a cap makes them wait there"
        )
    if limit.cap is not None and limit.running < limit.cap - 1:
        return Clear(
            f"{limit.running:g} run below the cap of {limit.cap:g}: something else holds requests back"
        )
    unsteady = None if limit.cap is not None else _unsteady(picture, limit.running)
    if unsteady is not None:
        low, high = unsteady
        return Clear(f"{low} to {high} run while others wait: a cap would hold the batch at one number")
    return _fired(picture, limit)


def _unsteady(picture: Picture, running: float) -> tuple[int, int] | None:
    """(fewest, most) that ran while requests waited at this load; None for one number, or where too little is seen."""
    lines = [line for line in picture.run.decodes if line.queued]
    near = [line.running for line in lines if abs(line.running - running) <= T.same_load * running]
    if len(near) < T.min_lines or max(near) - min(near) <= max(1.0, T.steady * running):
        return None
    return min(near), max(near)


def _queue_seen(picture: Picture) -> bool:
    """True when first tokens of the load come later than under light load by more than decode takes."""
    phases = picture.phases
    return phases.queue_ms is not None and phases.decode_ms is not None and phases.queue_ms > phases.decode_ms


def _fired(picture: Picture, limit: RunningLimit) -> Fired:
    certain = limit.cap is not None and limit.pool_usage is not None
    offered = limit.offered or limit.running
    reachable = offered if limit.fits is None else min(offered, limit.fits)
    gain = with_larger_batch(picture, reachable)
    if gain is not None and reachable < offered:
        pool = f"the KV pool, which holds {reachable:.0f} such requests"
        gain = msgspec.structs.replace(gain, binds_next=f"{pool}; then {gain.binds_next}")
    evidence = [_running(picture, limit.running, offered)]
    if limit.waiting:
        evidence.append(Observation(f"{limit.waiting:g} wait in the scheduler's queue"))
    if limit.cap is not None:
        evidence.append(Observation(f"the cap in force is {limit.cap:g} running requests", limit.cap_origin))
    if picture.step is not None:
        took = f"{units.ms(picture.step.measured_ms)} at {picture.step.running:g}"
        if picture.gap is None:
            evidence.append(Observation(f"the step itself takes {took}"))
        elif picture.gap <= SHARED.healthy_gap:
            evidence.append(
                Observation(f"the step itself is healthy: {took}, {units.times(picture.gap)} its floor")
            )
        else:
            evidence.append(
                Observation(f"the step itself is slow too: {took}, {units.times(picture.gap)} its floor")
            )
    ruled_out, rivals = _rivals(limit)
    return Fired(
        status="confirmed" if certain else "suspected",
        headline=f"a cap holds the batch at {limit.running:.3g} of {offered:g} offered requests",
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=ruled_out,
        rivals=rivals,
        tries=(
            Try(
                f"raise the cap on running requests to {reachable:.0f} or more",
                "a restart; more KV memory in use; each request may decode slower while all finish sooner",
            ),
        ),
        proof=Proof("stepline compare BEFORE AFTER, recorded with the cap as it is and raised", 60.0),
    )


def _running(picture: Picture, running: float, offered: float) -> Observation:
    """The batch against every load that exceeded it."""
    beyond = sorted(
        {level.concurrency for level in picture.levels if level.concurrency > running} | {offered}
    )
    return Observation(
        f"{running:.3g} requests run while {' and '.join(f'{load:g}' for load in beyond)} are offered"
    )


def _rivals(limit: RunningLimit) -> tuple[tuple[RuledOut, ...], tuple[Rival, ...]]:
    name = "S202 kv-capacity-bound"
    if limit.pool_usage is not None:
        by = (
            f"the KV pool is at most {units.percent(limit.pool_usage)} full; "
            f"it holds requests back from {units.percent(LIMIT.pool_full)} on"
        )
        return (RuledOut(name, by),), ()
    if limit.fits is not None:
        return (RuledOut(name, f"the pool holds {limit.fits:.0f} such requests"),), ()
    return (), (Rival(name, "KV pool use (token usage in the log or /metrics)"),)


def _room_for_all(picture: Picture) -> SettingChange | None:
    """A cap at which all offered requests run, as far as the KV pool holds them."""
    limit = running_limit(picture)
    if limit is None or limit.offered is None:
        return None
    most = limit.offered if limit.fits is None else min(limit.offered, limit.fits)
    return SettingChange(setting="max_running", value=round(most)) if most > limit.running else None


RULE = Rule("S201", "batch-capped", "0.1.0", check, change=_room_for_all)
