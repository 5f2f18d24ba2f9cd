"""K407 redundant-reads.

This rule makes notes only: no capture with this fault and no look-alike stand behind it yet, and a trace has no counter
of bytes that could tell a second read from memory from one that the cache answers.

What it means:
    Decode attention runs one block for each query head although several query heads share their keys and values, so
    the same cache is read several times.

Why it costs:
    With 8 query heads a key head the kernel asks for eight times the bytes; the GPU's cache answers part of it.

Evidence needed:
    A trace with launch grids of decode steps, model, GPU and live context. To prove it: bytes read from memory by
    counters of the attention kernel.

How it decides:
    The dearest attention kernel's grid is a multiple of batch times query heads, the model shares keys among them, and
    attention takes at least 10 % of the step and the sharing factor times its floor.

What would prove it wrong:
    Memory counters at the floor's bytes, or a grid that happens to be a multiple (splits times key heads).

What to try:
    An attention backend that groups query heads (the engines' own for grouped-query attention).

References:
    Ainslie et al., "GQA", 2023; docs/identifiability.md
"""

import math

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
)
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.measure.traced_step import TracedStep
from stepline.model.picture.picture import Picture
from stepline.model.signs.kernel_paths import component_floor_ms


def check(picture: Picture) -> Outcome:
    """Decide whether attention may read its cache once for each query head."""
    traced, architecture = picture.traced, picture.target.architecture
    if traced is None or architecture is None:
        return CannotTell(
            "launch grids of decode attention, and the model",
            "take a short trace without stacks, and give the model's config.json",
        )
    tp = picture.target.layout.attention_tp
    heads = max(1, architecture.heads // tp)
    kv_heads = max(1, max((cache.shards for cache in architecture.body.caches), default=1) // tp)
    shared = heads / kv_heads
    attention_ms = traced.group.component_ms("attention")
    if attention_ms < SHARED.worth * traced.step_ms:
        return Clear(f"attention takes {units.percent(attention_ms / traced.step_ms)} of the decode step")
    blocks = _blocks(traced)
    floor_ms = component_floor_ms(picture, "attention", traced.group.batch)
    if blocks is None or floor_ms is None or traced.group.batch is None:
        return CannotTell(
            "the grid of the attention kernel and the floor of its reads",
            "take a trace of an NVIDIA GPU, and give --gpu, --model and --context-length",
        )
    per_head = traced.group.batch * heads
    if shared <= 1 or blocks % per_head or attention_ms < shared * floor_ms:
        return Clear(
            f"attention runs {blocks:,} blocks over {traced.group.batch} sequences with {kv_heads} key heads, "
            f"at {units.times(attention_ms / floor_ms)} its floor: no read for each query head shows"
        )
    return Fired(
        status="suspected",
        headline=f"attention may read its cache {shared:.0f} times: it runs {blocks:,} blocks, "
        f"a multiple of {traced.group.batch} sequences × {heads} query heads",
        evidence=(
            Observation(
                f"attention takes {units.ms(attention_ms)} of {units.ms(traced.step_ms)} a step, "
                f"{units.times(attention_ms / floor_ms)} its floor; {shared:.0f} query heads share their keys "
                f"[{traced.file}]"
            ),
        ),
        rivals=(
            Rival(
                "K402 attention-occupancy", "bytes that the kernel reads from memory, by ncu or GPU counters"
            ),
        ),
        tries=(Try("an attention backend that groups query heads", "a restart"),),
        proof=Proof("stepline compare BEFORE AFTER, recorded with either attention backend", 60.0),
    )


def _blocks(traced: TracedStep) -> int | None:
    """Grid blocks of the dearest kernel whose name says attention; None where none has a grid."""
    blocks = [
        (kernel.busy_ms, math.prod(kernel.grid))
        for kernel in traced.group.top
        if kernel.component == "attention" and kernel.found_by == "name" and kernel.grid
    ]
    return max(blocks)[1] if blocks else None


RULE = Rule("K407", "redundant-reads", "0.1.0", check, proven=False)
