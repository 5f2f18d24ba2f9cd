"""S206 admission-throttled.

This rule makes notes only: no capture with this fault stands behind it yet.

What it means:
    Requests wait although neither the cap on running requests nor the KV pool keeps them out: the scheduler admits them
    more slowly, or more cautiously, than it could.

Why it costs:
    The batch stays smaller than the load, so weight reads are shared by fewer requests, and the rest queue.

Evidence needed:
    Running batch and queue, the cap in force, and the pool's use.

How it decides:
    Requests wait while fewer run than the cap allows and the pool is under 90 % full and holds one more request of the
    load's mean length.

What would prove it wrong:
    With bolder admission the queue stays, because prompts wait for prefill itself to come to them.

What to try:
    SGLang `--schedule-conservativeness` below 1 (requests may be retracted), `--max-prefill-tokens` and
    `--chunked-prefill-size` higher; vLLM `--max-num-batched-tokens` higher (decode waits longer for each prefill).
    `ignore_eos` and large `max_tokens` make the scheduler reserve more than answers take.

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
from stepline.model.picture.picture import Picture
from stepline.model.signs.batch_limit import RunningLimit, running_limit


def check(picture: Picture) -> Outcome:
    """Decide whether admission, and neither cap nor pool, keeps the batch below the load."""
    limit = running_limit(picture)
    if limit is None or limit.offered is None:
        return CannotTell("running batch and queue", "save the log and curl /metrics under load")
    if limit.kind == "nothing waits":
        return Clear(f"all {limit.offered:g} offered requests run")
    if limit.kind != "unknown":
        cause = "the cap (S201)" if limit.kind == "cap" else "the KV pool (S202)"
        return Clear(f"{cause} keeps requests waiting")
    if not limit.waiting or limit.cap is None or limit.pool_usage is None:
        return CannotTell(
            "the queue's length, the cap in force and the pool's use",
            "read #queue-req and token usage in the log, and max_running_requests in /server_info",
        )
    return _fired(picture, limit, limit.pool_usage)


def _fired(picture: Picture, limit: RunningLimit, usage: float) -> Fired:
    gain = with_larger_batch(picture, limit.running + (limit.waiting or 0.0))
    return Fired(
        status="suspected",
        headline=f"{limit.waiting:g} requests wait while {limit.running:.3g} run, though cap and pool have room",
        evidence=(
            Observation(
                f"{limit.running:.3g} requests run and {limit.waiting:g} wait in the scheduler's queue"
            ),
        ),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=(
            RuledOut("S201 batch-capped", f"the cap in force is {limit.cap:g}"),
            RuledOut("S202 kv-capacity-bound", f"the pool is at most {units.percent(usage)} full"),
        ),
        rivals=(
            Rival(
                "S204 prefill-interference", "whether prefill runs all the time: a trace, or prefill lines"
            ),
        ),
        tries=(
            Try(
                "let the scheduler admit more at a time, or reserve less",
                "a restart; requests may be retracted",
            ),
        ),
        proof=Proof("stepline compare BEFORE AFTER, recorded with the present and a bolder admission", 60.0),
    )


RULE = Rule("S206", "admission-throttled", "0.1.0", check, proven=False)
