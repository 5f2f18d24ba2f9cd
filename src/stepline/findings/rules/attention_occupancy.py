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
    On one machine cache and weights come from the same memory. The cache is read over twice as slowly as the
    weights, and what that costs at the longest context is at least 10 % of the step.

What would prove it wrong:
    Another attention backend with the same slope, or a grid that fills the SMs.

What to try:
    Another attention backend, or more KV splits (`--triton-attention-num-kv-splits`).

References:
    sgl-project/sglang pull request 27786 and issue 2271; Dao et al., "Flash-Decoding", 2023
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
    RuledOut,
    Try,
    recovered,
)
from stepline.model.context_law import SlowCache, cache_at_load, law_at_load
from stepline.model.picture import Picture
from stepline.model.predict import with_step


def check(picture: Picture) -> Outcome:
    """Decide whether attention reads its cache too slowly."""
    law = law_at_load(picture)
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


def _fired(picture: Picture, cache: SlowCache) -> Fired:
    step, law, read = picture.step, cache.law, cache.read
    sound_ms = law.last_ms - cache.excess_ms
    gain = None
    if step is not None and step.running == law.running:
        gain = gain_from(
            with_step(
                picture,
                min(step.measured_ms, sound_ms),
                min(step.measured_ms, 0.8 * sound_ms),
                min(step.measured_ms, 2 * sound_ms),
                "weights and the rest of the step",
            )
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
        tries=(
            Try("another attention backend, or more KV splits", "a restart; small numerical differences"),
        ),
        proof=Proof("diagnose two captures at one long context, with either backend", 60.0),
    )


RULE = Rule("K402", "attention-occupancy", "0.1.0", check)
