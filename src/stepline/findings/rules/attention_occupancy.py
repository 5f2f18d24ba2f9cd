"""K402 attention-occupancy.

What it means:
    Decode attention reads the KV cache with too few blocks: the grid does not fill the GPU, mostly because the cache of
    a sequence is not split among them.

Why it costs:
    The step grows with context several times faster than the bytes need, worst at small batches and long contexts.

Evidence needed:
    Steps of one running batch over a wide span of contexts, and the model. To confirm: a trace with grids, or an A/B
    of the attention backend or its number of KV splits.

How it decides:
    From a trace: attention takes at least 10 % of the step and three times its floor, and the blocks of its dearest
    kernel do not even fill the SMs once, nor would at the load's batch: confirmed. Without one: on one machine cache
    and weights come from the same memory. The cache is read over twice as slowly as the weights, and what that costs
    at the longest context is at least 10 % of the step.

What would prove it wrong:
    Another attention backend with the same slope, or a grid that fills the SMs.

What to try:
    Another attention backend, or more KV splits (`--triton-attention-num-kv-splits`).

References:
    sgl-project/sglang pull request 27786 and issue 2271; Dao et al., "Flash-Decoding", 2023
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
from stepline.model.change.estimate import Estimate
from stepline.model.change.shorter_step import traced_batch_step, with_decode_work
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.signs.context_law import AtMost, SlowCache, cache_at_load, cache_at_most, law_at_load
from stepline.model.signs.kernel_paths import component_floor_ms
from stepline.model.signs.per_request_excess import T as EXCESS
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    fast = Threshold(
        0.8,
        "share of the sound step",
        why="Fast end of the gain, without a trace.",
    )
    slow = Threshold(
        2.0,
        "times the sound step",
        why="Slow end of the gain, without a trace.",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether attention reads its cache too slowly."""
    return _from_trace(picture) or _from_contexts(picture)


def _from_trace(picture: Picture) -> Fired | None:
    """Attention far from its floor on a grid that leaves SMs idle; None where no trace shows that."""
    traced = picture.traced
    if traced is None or picture.floors is None:
        return None
    group = traced.group
    kernels = [kernel for kernel in group.top if kernel.component == "attention"]
    dearest = max(kernels, key=lambda kernel: kernel.busy_ms, default=None)
    took_ms, floor_ms = group.component_ms("attention"), component_floor_ms(picture, "attention", group.batch)
    if dearest is None or dearest.waves is None or dearest.grid is None or not floor_ms:
        return None
    if (
        dearest.waves >= 1
        or took_ms < SHARED.worth * traced.step_ms
        or took_ms < EXCESS.above_roofline * floor_ms
    ):
        return None
    if _at_load(picture, dearest.waves) >= 1:
        return None
    step, gain = traced_batch_step(picture), None
    if step is not None:
        rest = step.measured_ms - took_ms
        gain = with_decode_work(
            picture,
            Estimate(
                rest + EXCESS.above_roofline * floor_ms / 2,
                rest + floor_ms,
                rest + max(took_ms * dearest.waves, EXCESS.above_roofline * floor_ms),
            ),
            "weights and the rest of the step",
        )
    grid = "×".join(str(extent) for extent in dearest.grid if extent > 1) or "1"
    return Fired(
        status="confirmed",
        headline=f"decode attention fills {units.percent(dearest.waves)} of the GPU and takes "
        f"{units.percent(took_ms / traced.step_ms)} of the step",
        evidence=(
            Observation(
                f"attention takes {units.ms(took_ms)} of {units.ms(traced.step_ms)} a step at {group.batch} running, "
                f"against a floor of {units.ms(floor_ms)} [{traced.file}]"
            ),
            Observation(
                f"its dearest kernel runs {grid} blocks: {units.percent(dearest.waves)} of what the SMs hold at once "
                f"(`{dearest.name[:60]}`)"
            ),
        ),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=(
            RuledOut("KV reads as such", f"the cache alone needs {units.ms(floor_ms)} from memory"),
            RuledOut("H301 host-bound", f"the kernels themselves take {units.ms(took_ms)} of GPU time"),
        ),
        tries=(_TRY,),
        proof=_PROOF,
    )


def _at_load(picture: Picture, waves: float) -> float:
    """Waves that the kernel can come to at the load: more sequences are more blocks, of at most as many splits each."""
    batch = picture.traced.group.batch if picture.traced is not None else None
    if picture.step is None or not batch:
        return waves
    return waves * max(1.0, picture.step.running / batch)


def _from_contexts(picture: Picture) -> Outcome:
    law = law_at_load(picture)
    if law is None and (most := cache_at_most(picture)) is not None:
        return _by_smaller_batch(most)
    if law is None:
        return CannotTell(
            "steps of one batch over contexts at least four times apart",
            "run a short and a long prompt at one batch and save the log",
        )
    if law.per_ktoken_ms <= 0:
        return Clear(f"the step does not grow from {law.shortest:,.0f} to {law.longest:,.0f} tokens")
    cache = cache_at_load(picture)
    if cache is None:
        return CannotTell("bytes of cache and weights: a dense model's config.json", "give --model")
    if not cache.matters:
        return Clear(
            f"at {law.running:g} running and up to {law.longest:,.0f} tokens the cache is read "
            f"{units.times(cache.read.slower)} as slowly as the weights"
        )
    return _fired(picture, cache)


def _by_smaller_batch(most: AtMost) -> Outcome:
    """What another context at a smaller batch says of the load: enough to clear it, never to accuse it."""
    grows = (
        f"at {most.law.running:g} running a step grows by {units.ms(max(0.0, most.law.per_ktoken_ms))} "
        "for each thousand tokens"
    )
    if not most.matters:
        cost, step = units.ms(most.cost_ms), units.ms(most.step_ms)
        return Clear(f"{grows}: at {most.running:g} the cache costs {cost} of {step} at most")
    return CannotTell(
        f"steps at {most.running:g} running over contexts at least four times apart ({grows})",
        f"run a short and a long prompt with {most.running:g} streams and save the log",
    )


def _fired(picture: Picture, cache: SlowCache) -> Fired:
    step, law, read = picture.step, cache.law, cache.read
    sound_ms = law.last_ms - cache.excess_ms
    gain = None
    if step is not None and step.running == law.running:
        gain = with_decode_work(
            picture,
            Estimate(
                min(step.measured_ms, sound_ms),
                min(step.measured_ms, T.fast * sound_ms),
                min(step.measured_ms, T.slow * sound_ms),
            ),
            "weights and the rest of the step",
        )
    return Fired(
        status="suspected",
        headline=f"attention reads its cache {units.times(read.slower)} more slowly than the step reads its weights",
        evidence=(
            Observation(
                f"at {law.running:g} running a step grows from {units.ms(law.first_ms)} at {law.shortest:,.0f} tokens "
                f"to {units.ms(law.last_ms)} at {law.longest:,.0f} ({law.points} points, {law.instrument})"
            ),
            Observation(
                f"that is {units.size(read.cache_bytes_s)}/s of cache, where the weights come at "
                f"{units.size(read.weight_bytes_s)}/s or more"
            ),
        ),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=(
            RuledOut("KV reads as such", "the same memory delivers the weights several times faster"),
        ),
        rivals=(
            Rival(
                "K404 kernel-fallback", "a trace: which attention kernel runs, and its grid against the SMs"
            ),
        ),
        tries=(_TRY,),
        proof=_PROOF,
    )


_TRY = Try("another attention backend, or more KV splits", "a restart; small numerical differences")
_PROOF = Proof("stepline compare BEFORE AFTER, recorded at one long context with either backend", 60.0)

RULE = Rule("K402", "attention-occupancy", "0.1.0", check, grows_with_request=True)
