"""The least time a decode step can take on its hardware, component by component.

`floor = max(bytes / bandwidth, FLOPs / peak) + collective latency` at 100 % of the datasheet. The strict
floor reads one token's experts only and can prove that a measurement is wrong; the expected one assumes
uniform routing and a measurement below it puts routing, quantisation or speculation in doubt.
"""

import msgspec

from stepline.errors import UsageError
from stepline.facts.hardware import Gpu
from stepline.model.roofline.architecture_parts import Architecture, Component
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.forward_cost import Routing, Work, cache_work, expert_work, matrix_work
from stepline.model.roofline.layout import Layout, check_layout


class FloorComponent(msgspec.Struct, frozen=True, kw_only=True):
    """One component of a step on one GPU."""

    name: str
    bytes: float
    flops: float
    ms: float
    bound: str
    """'bandwidth' or 'compute', whichever takes longer."""


class Collectives(msgspec.Struct, frozen=True, kw_only=True):
    """Latency of the all-reduces of one step."""

    count: int
    ms: float
    source: str
    """Where the latency comes from, or why it is not counted."""


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """The floor of one decode step; all figures are of one GPU, as all work in step."""

    components: tuple[FloorComponent, ...]
    bytes: float
    flops: float
    bandwidth_ms: float
    compute_ms: float
    collectives: Collectives
    total_ms: float
    tokens_per_sequence: float
    """Accept length: tokens one step yields for a sequence."""
    configured_total_ms: float | None = None
    """The same step if indexer and uncapped compressed reads followed the configured context."""
    not_counted: tuple[str, ...] = ()

    @property
    def ms_per_token(self) -> float:
        """The floor of one emitted token."""
        return self.total_ms / self.tokens_per_sequence


def decode_floor(
    deployment: Deployment,
    *,
    batch: float,
    context_tokens: float,
    routing: Routing = "strict",
    capacity_context_tokens: float | None = None,
    indexer_dtype: str = "auto",
    draft_tokens: int = 0,
    accept_length: float = 1.0,
    collectives: bool = True,
) -> Floor:
    """Return the floor of a step that decodes `batch` sequences of `context_tokens` tokens.

    Args:
        deployment: The model, its GPUs and the type of its cache.
        batch: Running sequences of one data-parallel rank in one forward, as the engine counts them.
            With pipeline stages, of one micro-batch; its time through all stages is returned.
        context_tokens: Tokens a sequence attends to, on average.
        routing: 'strict', 'expected', or distinct experts per layer.
        capacity_context_tokens: The configured longest context, for `configured_total_ms`.
        indexer_dtype: Type of cached index keys.
        draft_tokens: Speculative tokens verified beside each sequence's own.
        accept_length: Tokens a step yields per sequence.
        collectives: False leaves the latency of all-reduces out.

    Raises:
        UnknownFact: An impossible layout, an unknown cache type or routing.
        UsageError: A batch, context or accept length no step can have.
    """
    architecture, gpu, layout = deployment.architecture, deployment.gpu, deployment.layout
    check_layout(architecture, layout)
    if batch <= 0 or context_tokens < 0 or draft_tokens < 0 or accept_length < 1:
        raise UsageError(
            f"no step decodes {batch} sequences of {context_tokens} tokens with {draft_tokens} drafts "
            f"and an accept length of {accept_length}"
        )
    queries = batch * (1 + draft_tokens)
    body = architecture.body
    weights = [*matrix_work(body, layout, queries), *expert_work(body, layout, queries, routing)]

    def reads(configured_tokens: float | None) -> list[Work]:
        return list(
            cache_work(
                body,
                layout,
                sequences=batch,
                queries=queries,
                context_tokens=context_tokens,
                configured_tokens=configured_tokens,
                kv_dtype=deployment.cache_dtype,
                indexer_dtype=indexer_dtype,
            )
        )

    work = weights + reads(None)
    latency = _collectives(architecture, gpu, layout, strict=routing == "strict", wanted=collectives)
    bandwidth_ms, compute_ms = _times(work, gpu)
    configured = None
    if capacity_context_tokens is not None:
        configured = max(_times(weights + reads(capacity_context_tokens), gpu)) + latency.ms
    return Floor(
        components=_components(work, gpu),
        bytes=sum(part.bytes for part in work),
        flops=sum(part.flops for part in work),
        bandwidth_ms=bandwidth_ms,
        compute_ms=compute_ms,
        collectives=latency,
        total_ms=max(bandwidth_ms, compute_ms) + latency.ms,
        tokens_per_sequence=accept_length,
        configured_total_ms=configured,
        not_counted=_missing(architecture, layout, latency, draft_tokens),
    )


def _times(work: list[Work], gpu: Gpu) -> tuple[float, float]:
    """Bandwidth and compute time in ms, each summed over the step."""
    bandwidth_s = sum(part.bytes for part in work) / gpu.bandwidth_bytes_s
    compute_s = sum(part.flops / gpu.peak(part.math) for part in work)
    return bandwidth_s * 1e3, compute_s * 1e3


def _components(work: list[Work], gpu: Gpu) -> tuple[FloorComponent, ...]:
    by_name: dict[Component, list[Work]] = {}
    for part in work:
        by_name.setdefault(part.component, []).append(part)
    components = []
    for name, parts in by_name.items():
        bandwidth_ms, compute_ms = _times(parts, gpu)
        components.append(
            FloorComponent(
                name=name,
                bytes=sum(part.bytes for part in parts),
                flops=sum(part.flops for part in parts),
                ms=max(bandwidth_ms, compute_ms),
                bound="compute" if compute_ms > bandwidth_ms else "bandwidth",
            )
        )
    return tuple(components)


def _collectives(
    architecture: Architecture, gpu: Gpu, layout: Layout, *, strict: bool, wanted: bool
) -> Collectives:
    """Two all-reduces a layer, one where attention is not split, at measured small-message latency."""
    count = architecture.layers * ((layout.attention_tp > 1) + (layout.tp > 1))
    if not wanted or not count:
        return Collectives(count=count, ms=0.0, source="none" if not count else "left out on request")
    if layout.dp_attention:
        return Collectives(count=count, ms=0.0, source="no latency of expert dispatch and combine is known")
    table = (strict and gpu.allreduce_us_fastest) or gpu.allreduce_us_common
    each_us = table.get(layout.tp)
    if each_us is None:
        return Collectives(
            count=count, ms=0.0, source=f"no all-reduce latency is known for {layout.tp}x {gpu.name}"
        )
    kind = "fastest measured" if strict and gpu.allreduce_us_fastest else "as engines commonly reach it"
    return Collectives(count=count, ms=count * each_us / 1e3, source=f"{each_us} µs each at 8 KB, {kind}")


def _missing(
    architecture: Architecture, layout: Layout, latency: Collectives, draft_tokens: int
) -> tuple[str, ...]:
    missing = list(architecture.not_counted)
    if draft_tokens:
        missing.append("draft passes (their weights, cache reads and head)")
    if layout.pp > 1:
        missing.append("sends between pipeline stages")
    if latency.count and not latency.ms:
        missing.append(f"collectives: {latency.source}")
    return tuple(missing)
