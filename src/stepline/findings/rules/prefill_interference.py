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
    GPU idles meanwhile, the host is the cause (H301) and this rule is clear. At a low clock the floor is longer (P601),
    and where a trace shows slow exchange between GPUs (C501) prompts may take longer by as much as steps do.

What would prove it wrong:
    The same load with prompts one token long shows the same pauses.

What to try:
    Chunked prefill with smaller chunks, mixed batches, or prefill on other GPUs.

References:
    sgl-project/sglang pull request 31395; docs/identifiability.md
"""

from stepline import units
from stepline.findings.cite import gain_from
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
from stepline.model.clocks import clocks
from stepline.model.communication import slow_exchange_share
from stepline.model.floor_prefill import prefill_floor_ms
from stepline.model.host import gpu_busy
from stepline.model.picture import Picture
from stepline.model.predict import with_other_cost

GPU_IDLE = 0.15
"""See H301: above this idle share the host explains the time."""
PREFILL_OVER_FLOOR = 2.0
"""Prefill time over its FLOP floor that is ordinary: 256-token prompts took 1.7 times on a healthy H200 server."""
MIN_SECONDS = 4.0
"""The log's clock has whole seconds; over fewer of them a rate of prefills says nothing."""
WORTH = 0.1
"""Share of the load's time below which nothing is a finding."""


def _prefilled(picture: Picture, stated: float) -> tuple[float, float]:
    """(tokens of one prefill batch, batches for each request that finishes): by the log, else one prompt a request.

    The log also sees prompts that other clients send; each must be prefilled and is no fault.
    """
    loop, load = picture.loop, picture.load
    plateaus = [
        p for p in picture.plateaus if load is not None and p.running == load.running and p.prefill_requests
    ]
    if (
        not plateaus
        or loop is None
        or plateaus[-1].time is None
        or plateaus[-1].time.duration_s < MIN_SECONDS
    ):
        return stated, 1.0
    plateau = plateaus[-1]
    seconds = plateau.time.duration_s if plateau.time is not None else 0.0
    finished = loop.tok_s * seconds / loop.output_tokens
    mean = plateau.prefill_tokens / plateau.prefill_requests
    return mean, max(1.0, plateau.prefill_requests / finished)


def check(picture: Picture) -> Outcome:
    """Decide whether prefill holds decode up beyond its floor."""
    loop, load, target = picture.loop, picture.load, picture.target
    if loop is None or load is None or load.input_tokens is None:
        return CannotTell(
            "time beside decode steps: client rate, output and prompt length",
            "save log, /metrics, client results and GPU samples under load",
        )
    other = 1 - loop.decode_share
    if other < WORTH:
        return Clear(f"only {units.percent(other)} of the time is spent beside decode steps")
    busy = gpu_busy(picture)
    if busy is not None and 1 - busy.share >= GPU_IDLE:
        return Clear(
            f"the GPU idles {units.percent(1 - busy.share)} of the time: the host, not prefill work (H301, H302)"
        )
    if target.architecture is None or target.gpu is None:
        return CannotTell("the prefill floor: model and GPU", "give --gpu and the model's config.json")
    tokens, requests = _prefilled(picture, load.input_tokens)
    one_ms = prefill_floor_ms(target.architecture, target.gpu, target.layout, tokens, routing="expected")
    clock = clocks(picture)  # FLOPs take longer at a lower clock, whatever lowers it (P601)
    floor_ms = one_ms * requests / (1.0 if clock is None else min(1.0, clock.share))
    # Prompts are exchanged over the same links as decode steps, so slow ones stretch both alike (C501).
    stretch = 1 - slow_exchange_share(picture)
    stretched_ms = PREFILL_OVER_FLOOR * floor_ms / stretch if stretch > 0 else loop.other_ms_per_request
    ordinary = min(loop.other_ms_per_request, stretched_ms)
    excess = other * (1 - ordinary / loop.other_ms_per_request)
    if excess < WORTH:
        return Clear(
            f"prefill and admission take {units.percent(other)} of the time, "
            f"{units.times(loop.other_ms_per_request / floor_ms)} the floor of {load.input_tokens:,.0f}-token prompts"
        )
    gain = gain_from(with_other_cost(picture, ordinary, floor_ms))
    return Fired(
        status="suspected",
        headline=f"time beside decode steps is {units.times(loop.other_ms_per_request / floor_ms)} the prefill floor",
        evidence=(
            Observation(
                f"{units.percent(other)} of the time lies beside decode steps: {units.ms(loop.other_ms_per_request)} a "
                f"request, where {load.input_tokens:,.0f} prompt tokens need {units.ms(floor_ms)}"
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


RULE = Rule("S204", "prefill-interference", "0.1.0", check)
