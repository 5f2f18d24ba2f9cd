"""S200 excess-scheduling.

What it means:
    Requests wait, or the time beside decode steps is longer than their prompts usually take, and no rule knows why.

Why it costs:
    The batch decodes less of the time, or fewer requests decode together, than the load would allow.

Evidence needed:
    A client's rate with prompt and output length, model and GPU; or the queue while a batch runs.

How it decides:
    Prompts usually take up to twice their floor. What lies beside decode steps beyond that is at least 10 % of the time
    while the GPU is busy, or a tenth of the requests wait in the queue. A specific finding that explains half of it
    takes its place.

What would prove it wrong:
    A trace of the prefills whose GPU work fills that time.

What to try:
    The scheduler's settings: running requests, chunk size, KV memory.

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
    Try,
    recovered,
)
from stepline.model.change.larger_batch import with_larger_batch
from stepline.model.change.less_idle import with_other_cost
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.signs.host import T as HOST
from stepline.model.signs.host import gpu_busy
from stepline.model.signs.others_prompts import T as PROMPTS
from stepline.model.signs.others_prompts import others_prompts
from stepline.model.signs.recompute import own_prompt_floor_ms, prompt_floor_ms

_RIVALS = (
    Rival("S204 prefill-interference", "a trace of the prefills: is the GPU busy in them"),
    Rival("S201 batch-capped", "the cap in force, and the KV pool's use while requests wait"),
)
_TRIES = (Try("give the scheduler room: more running requests, larger chunks, more KV memory", "a restart"),)
_PROOF = Proof("add a short profiler trace without stacks to the folder", 10.0)


def check(picture: Picture) -> Outcome:
    """Decide whether scheduling costs more than usual."""
    load = picture.load
    if load is None:
        return CannotTell("the load: running and waiting requests", "save the log or the client's result")
    offered = load.running + (load.queued or 0.0)
    if load.queued and load.queued >= SHARED.worth * offered:
        return _waiting(picture, load.queued, offered)
    return _beside(picture)


def _waiting(picture: Picture, queued: float, offered: float) -> Fired:
    gain = with_larger_batch(picture, offered)
    return Fired(
        status="suspected",
        headline=f"{queued:.3g} of {offered:.3g} requests wait",
        evidence=(Observation(f"{queued:.3g} requests wait while {offered - queued:.3g} run"),),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        rivals=_RIVALS,
        tries=_TRIES,
        proof=_PROOF,
    )


def _beside(picture: Picture) -> Outcome:
    """Time beside decode steps against what the load's prompts usually take."""
    loop, own_ms, busy = picture.loop, own_prompt_floor_ms(picture), gpu_busy(picture)
    if loop is None or own_ms is None:
        return CannotTell(
            "time beside decode steps and the prompt's floor: client rate, lengths, model and GPU",
            "save the client's result beside the log, and give --model and --gpu",
        )
    tokens, number = others_prompts(picture)
    others_ms = number * (prompt_floor_ms(picture, tokens) or 0.0) if number else 0.0
    other_ms, usual_ms = loop.other_ms_per_request, PROMPTS.over_floor * (own_ms + others_ms)
    share = (1 - loop.decode_share) * max(0.0, 1 - usual_ms / other_ms) if other_ms > 0 else 0.0
    told = f"{units.ms(other_ms)} a request beside decode steps, where prompts usually take up to {units.ms(usual_ms)}"
    if share < SHARED.worth:
        return Clear(told)
    if busy is not None and 1 - busy.share >= HOST.gpu_idle:
        return Clear(f"the GPU idles {units.percent(1 - busy.share)} of the time: no prefill work")
    gain = with_other_cost(picture, usual_ms, own_ms + others_ms)
    return Fired(
        status="suspected",
        headline=f"{units.percent(share)} of the time lies beside decode steps and what prompts usually take",
        evidence=(Observation(told),),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        rivals=_RIVALS,
        tries=_TRIES,
        proof=_PROOF,
    )


RULE = Rule("S200", "excess-scheduling", "0.1.0", check, general=True)
