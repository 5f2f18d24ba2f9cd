"""What the server is: engine, model, layout, caps and pools, each value with its origin."""

import msgspec

from stepline.evidence.origin import Sourced


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Launch settings and resolved capacities; None means nobody said."""

    engine: Sourced[str] | None = None
    version: Sourced[str] | None = None
    model: Sourced[str] | None = None
    gpu: Sourced[str] | None = None
    tp: Sourced[int] | None = None
    dp: Sourced[int] | None = None
    pp: Sourced[int] | None = None
    ep: Sourced[int] | None = None
    dp_attention: Sourced[bool] | None = None
    context_length: Sourced[int] | None = None
    max_running: Sourced[int] | None = None
    """The cap in force, per data-parallel rank, after the engine's own clamping."""
    max_running_requested: Sourced[int] | None = None
    kv_capacity_tokens: Sourced[int] | None = None
    kv_pool_bytes: Sourced[float] | None = None
    kv_dtype: Sourced[str] | None = None
    page_tokens: Sourced[int] | None = None
    weight_bytes: Sourced[float] | None = None
    """Per rank, as the engine measured it after loading."""
    offloaded_gib: Sourced[float] | None = None
    """Weights that stay in host memory, per rank, GiB."""
    weight_dtype: Sourced[str] | None = None
    quantization: Sourced[str] | None = None
    dummy_weights: Sourced[bool] | None = None
    decode_graphs: Sourced[bool] | None = None
    """False when decode graphs are switched off by setting."""
    decode_graph_sizes: Sourced[tuple[int, ...]] | None = None
    graph_mode: Sourced[str] | None = None
    """How the engine runs its graphs where it has several ways (vLLM's cudagraph mode)."""
    overlap_schedule: Sourced[bool] | None = None
    prefix_cache: Sourced[bool] | None = None
    chunked_prefill_tokens: Sourced[int] | None = None
    max_prefill_tokens: Sourced[int] | None = None
    decode_report_interval_steps: Sourced[int] | None = None
    attention_backend: Sourced[str] | None = None
    moe_backend: Sourced[str] | None = None
    speculative: Sourced[str] | None = None
    draft_tokens: Sourced[int] | None = None
    """Tokens verified per request in one forward, the one that is always accepted included."""
    disaggregation: Sourced[str] | None = None
    step_time_ms: Sourced[dict[int, float]] | None = None
    """Mean step time by batch where the engine records it."""
