"""Bytes and FLOPs of one forward on one GPU, component by component."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from stepline.errors import UnknownFact
from stepline.facts.number_types import number_type
from stepline.model.roofline.architecture_parts import (
    ATTENTION_SIDE,
    Block,
    Cache,
    Component,
    Experts,
    Matrix,
)
from stepline.model.roofline.layout import Layout

Routing = str | float
"""'strict' (one token's experts), 'expected' (uniform routing), or distinct experts per layer."""


class Work(NamedTuple):
    """What one part of a forward reads and multiplies on one GPU."""

    component: Component
    bytes: float
    flops: float
    math: str


def distinct_experts(experts: Experts, tokens: float, routing: Routing) -> float:
    """Distinct experts of one layer that `tokens` tokens touch.

    Uniform independent routing gives E·(1 − (1 − k/E)^tokens); no routing touches fewer than k.

    Raises:
        UnknownFact: `routing` is none of its three forms.
    """
    if routing == "strict":
        return float(experts.top_k)
    if routing == "expected":
        untouched = math.pow(1 - experts.top_k / experts.count, max(tokens, 1.0))
        return experts.count * (1 - untouched)
    if isinstance(routing, str):
        raise UnknownFact(
            f"routing {routing!r} is not known; known: strict, expected, or a number of experts"
        )
    return min(max(float(routing), 0.0), float(experts.count))


def ways(part: Matrix | Cache, component: Component, layout: Layout) -> int:
    """Return how many GPUs share this part."""
    degree = layout.attention_tp if component in ATTENTION_SIDE else layout.tp
    return max(1, min(degree, part.shards))


def matrix_work(block: Block, layout: Layout, tokens: float) -> Iterator[Work]:
    """Weights every token passes: read once, multiplied once per token of this rank."""
    for matrix in block.matrices:
        side = matrix.component in ATTENTION_SIDE or matrix.component == "embedding"
        rows = tokens if side else tokens * layout.ranks
        share = matrix.total / ways(matrix, matrix.component, layout)
        if matrix.component == "embedding":
            yield Work(
                matrix.component, rows * matrix.total / matrix.shards * matrix.format.bits / 8, 0, "bf16"
            )
            continue
        flops = 2 * share * rows if matrix.gemm else 0.0
        yield Work(matrix.component, share * matrix.format.bits / 8, flops, matrix.format.math)


def expert_work(block: Block, layout: Layout, tokens: float, routing: Routing) -> Iterator[Work]:
    """Routed experts, shared evenly by the GPUs (the busiest expert-parallel rank reads at least this)."""
    for experts in block.experts:
        total = tokens * layout.ranks
        distinct = distinct_experts(experts, total, routing)
        size = experts.params * experts.layers / layout.tp
        flops = 2 * size * experts.top_k * total
        yield Work("moe experts", distinct * size * experts.format.bits / 8, flops, experts.format.math)


def entry_bytes(cache: Cache, kv_dtype: str, indexer_dtype: str) -> float:
    """Bytes of one entry in the asked type.

    Raises:
        UnknownFact: This model's cache has no such type.
    """
    wanted = indexer_dtype if cache.component == "indexer" else kv_dtype
    known = dict(cache.entry_bytes)
    stored = wanted if wanted in known else number_type(wanted)
    if stored == "auto":
        return cache.entry_bytes[0][1]
    if stored is None or stored not in known:
        raise UnknownFact(f"a {cache.name} cache in {wanted!r} is not known; known: {', '.join(known)}")
    return known[stored]


def cache_work(
    block: Block,
    layout: Layout,
    *,
    sequences: float,
    queries: float,
    context_tokens: float,
    configured_tokens: float | None = None,
    kv_dtype: str = "auto",
    indexer_dtype: str = "auto",
) -> Iterator[Work]:
    """Cache and state reads of `sequences` sequences with `queries` query tokens in all.

    With `configured_tokens`, work that may follow the configured context does, and pays for writing and
    reading again the scores of everything it walks.
    """
    for cache in block.caches:
        context, each = context_tokens, entry_bytes(cache, kv_dtype, indexer_dtype)
        if configured_tokens is not None and cache.follows_capacity:
            context, each = max(context_tokens, configured_tokens), each + cache.score_bytes
        entries = cache.entries_read(context) * cache.layers / ways(cache, cache.component, layout)
        yield Work(cache.component, sequences * entries * each, queries * entries * cache.flops, "bf16")
    for state in block.states:
        share = state.layers / max(1, min(layout.attention_tp, state.shards))
        yield Work("state", sequences * state.step_bytes * share, queries * state.flops * share, "bf16")
