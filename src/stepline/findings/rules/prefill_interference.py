"""S204 prefill-interference.

What it means:
    Decode stands still while prompts are prefilled, for longer than those prompts need.

Why it costs:
    Every running request waits; clients see bursts and pauses. Prefill as such is work that somebody asked for, and
    only what exceeds its own floor can be won back.

Evidence needed:
    The closed loop (rate, step, output length), which tells the time beside decode steps; the prefill floor of the
    prompts (model and GPU). To confirm: a trace.

How it decides:
    Time beside decode steps exceeds twice the prefill floor by over 10 % of the load, while the GPU is busy. When the
    GPU idles meanwhile, the host is the cause (H301) and this rule is clear; so it is where requests thrown out of the
    pool are computed again for half of that time (S203). At a low clock the floor is longer (P601). Where a trace shows
    that steps are slow by what stretches prompts too (C501, C502, K405) nothing is concluded. A prompt in chunks counts
    whole: how it was cut may be the fault. Where engines compute prompts and answers in one forward (vLLM), suspected
    too when a tenth of the requests wait though cap and pool have room for them, a forward has room for less than one
    prompt beside the answers, and what it has room for needs less than half of the step.

What would prove it wrong:
    The same load with prompts one token long shows the same pauses.

What to try:
    Chunked prefill with smaller chunks, mixed batches, or prefill on other GPUs.

References:
    sgl-project/sglang pull request 31395; docs/identifiability.md
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
from stepline.model.change.less_idle import with_other_cost
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture, Step
from stepline.model.signs.batch_limit import running_limit
from stepline.model.signs.host import T as HOST
from stepline.model.signs.host import gpu_busy
from stepline.model.signs.others_prompts import T as PROMPTS
from stepline.model.signs.others_prompts import others_prompts
from stepline.model.signs.recompute import own_prompt_floor_ms, prompt_floor_ms, repeated_by_loop
from stepline.model.signs.sm_clocks import clocks
from stepline.model.signs.stretched_prompts import Stretch, stretches_prompts
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    many = Threshold(
        8192.0,
        "tokens",
        why="A forward of so many is bound by its products on any GPU: what one token takes beside "
        "others, weights read once for all.",
        source="arithmetic: far above the knee of every GPU of the catalogue",
    )
    little = Threshold(
        0.5,
        "share of the step",
        why="A forward whose prompts' floor is less of it takes what reading the weights takes: "
        "several times as many would be hardly longer.",
    )


STRETCHES: dict[Stretch, str] = {
    "slow exchange": "slow exchange between GPUs (C501)",
    "late rank": "a late rank (C502)",
    "wide products": "products in 32 bits (K405)",
}


def check(picture: Picture) -> Outcome:
    """Decide whether prefill holds decode up beyond its floor."""
    loop, load = picture.loop, picture.load
    if loop is None or load is None or load.input_tokens is None:
        return CannotTell(
            "time beside decode steps: client rate, output and prompt length",
            "save log, /metrics, client results and GPU samples under load",
        )
    crowded = _no_room_in_forwards(picture)
    if crowded is not None:
        return crowded
    other = 1 - loop.decode_share
    if other < SHARED.worth:
        return Clear(f"only {units.percent(other)} of the time is spent beside decode steps")
    busy = gpu_busy(picture)
    if busy is not None and 1 - busy.share >= HOST.gpu_idle:
        return Clear(
            f"the GPU idles {units.percent(1 - busy.share)} of the time: the host, not prefill work (H301, H302)"
        )
    own_ms = own_prompt_floor_ms(picture)
    if own_ms is None:
        return CannotTell("the prefill floor: model and GPU", "give --gpu and the model's config.json")
    tokens, number = others_prompts(picture)
    others_ms = number * (prompt_floor_ms(picture, tokens) or 0.0) if number else 0.0
    named = (
        "its prompt and those that others sent meanwhile"
        if number
        else f"{load.input_tokens:,.0f} prompt tokens"
    )
    clock = clocks(picture)  # FLOPs take longer at a lower clock, whatever lowers it (P601)
    slower = 1.0 if clock is None else min(1.0, clock.share)
    own_ms, others_ms = own_ms / slower, others_ms / slower
    floor_ms = own_ms + others_ms
    stretch = stretches_prompts(picture)
    if stretch is not None:
        return CannotTell(
            f"how long prompts take without {STRETCHES[stretch]}", "diagnose again once that is removed"
        )
    ordinary = min(loop.other_ms_per_request, PROMPTS.over_floor * floor_ms)
    excess = other * (1 - ordinary / loop.other_ms_per_request)
    if excess < SHARED.worth:
        return Clear(
            f"prefill and admission take {units.percent(other)} of the time, "
            f"{units.times(loop.other_ms_per_request / floor_ms)} the floor of {named}"
        )
    if repeated_by_loop(picture) >= excess / 2:
        return Clear("prompts of requests that were thrown out are computed again: S203 accounts for it")
    # Others' prompts come by the clock: a faster server meets fewer of them for each request.
    others_share = others_ms / 1000 * loop.tok_s / loop.output_tokens
    gain = with_other_cost(picture, min(ordinary, PROMPTS.over_floor * own_ms), own_ms, taken=others_share)
    return Fired(
        status="suspected",
        headline=f"time beside decode steps is {units.times(loop.other_ms_per_request / floor_ms)} the prefill floor",
        evidence=(
            Observation(
                f"{units.percent(other)} of the time lies beside decode steps: {units.ms(loop.other_ms_per_request)} a "
                f"request, where {named} need {units.ms(floor_ms)}"
            ),
        ),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        rivals=(
            Rival(
                "H301 host-bound",
                "the GPU's busy share, unprofiled" if busy is None else "a trace of the prefills",
            ),
        ),
        tries=(
            Try(
                "use smaller prefill chunks, or mix chunks into decode batches",
                "a restart; first tokens come later",
            ),
        ),
        proof=Proof("add a short profiler trace without stacks to the folder", 10.0),
    )


def _no_room_in_forwards(picture: Picture) -> Fired | None:
    """Requests that wait because forwards take few tokens beside the answers; None where something else holds them."""
    limit, step, load, server = running_limit(picture), picture.step, picture.load, picture.run.server
    budget = server.chunked_prefill_tokens
    # Only engines that put prompts and answers into one forward tell how their graphs run.
    if server.graph_mode is None or budget is None or limit is None or step is None or load is None:
        return None
    if limit.kind != "unknown" or not limit.waiting or limit.pool_usage is None or limit.offered is None:
        return None
    room = budget.value - load.running / load.ranks
    many_ms = prompt_floor_ms(picture, T.many)
    if load.input_tokens is None or room >= load.input_tokens or many_ms is None:
        return None
    floor_ms = max(0.0, room) * many_ms / T.many
    if limit.waiting < SHARED.worth * limit.offered or floor_ms >= T.little * step.measured_ms:
        return None
    gain = _all_running(picture, step, load.concurrency or limit.offered)
    return Fired(
        status="suspected",
        headline=f"{limit.waiting:g} requests wait for room in forwards of {budget.value:,} tokens",
        evidence=(
            Observation(
                f"a forward takes {budget.value:,} tokens at most: beside {limit.running:.3g} answers {room:.0f} of "
                f"prompts, where one has {load.input_tokens:,.0f}",
                budget.origin,
            ),
            Observation(
                f"those need {units.ms(floor_ms)} of a step of {units.ms(step.measured_ms)}: more would cost little"
            ),
            Observation(f"the KV pool is at most {units.percent(limit.pool_usage)} full"),
        ),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=(
            RuledOut("S202 kv-capacity-bound", f"the pool is {units.percent(limit.pool_usage)} full"),
            *(
                ()
                if limit.cap is None
                else (
                    RuledOut("S201 batch-capped", f"{limit.running:g} run, below the cap of {limit.cap:g}"),
                )
            ),
        ),
        rivals=() if limit.cap is not None else (Rival("S201 batch-capped", "the cap in force"),),
        tries=(
            Try(
                "let a forward take more tokens (--max-num-batched-tokens, --chunked-prefill-size)",
                "a restart; steps that hold prompts take longer",
            ),
        ),
        proof=Proof("stepline compare BEFORE AFTER, recorded with either size", 60.0),
    )


def _all_running(picture: Picture, step: Step, offered: float) -> Gain | None:
    """All that are offered in steps as long as now; at the slow end half of that, at the fast one in ordinary steps.

    Steps that each hold a piece of a prompt read further experts for it, so ordinary ones may be shorter.
    """
    plain, floors = with_larger_batch(picture, offered), picture.floors
    if plain is None:
        return None
    rate = picture.rate_tok_s or plain.tok_s
    typical = None if floors is None else floors.typical
    sooner = 1.0 if typical is None else max(1.0, step.measured_ms / typical.ms)
    middle = max(rate, plain.tok_s)
    return Gain(
        tok_s=middle,
        low=(rate + middle) / 2,
        high=max(middle, plain.high) * sooner,
        binds_next=plain.binds_next,
    )


RULE = Rule("S204", "prefill-interference", "0.1.0", check)
