"""How much memory a sequence takes and how many sequences fit."""

from stepline.model.roofline.architecture_parts import Architecture
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.forward_cost import entry_bytes, ways
from stepline.model.roofline.layout import Layout, check_layout


def kv_bytes_per_token(
    architecture: Architecture,
    *,
    layout: Layout | None = None,
    kv_dtype: str = "auto",
    indexer_dtype: str = "auto",
) -> float:
    """Return how many bytes a sequence grows by per token, caches bounded by a window left out.

    Of the whole model, or of one GPU when a layout is given.
    """
    where = layout or Layout()
    kv_dtype = architecture.kv_dtype if kv_dtype == "auto" else kv_dtype
    return sum(
        entry_bytes(cache, kv_dtype, indexer_dtype)
        * cache.layers
        / cache.stride
        / ways(cache, cache.component, where)
        for cache in architecture.body.caches
        if cache.keep_cap is None
    ) / (where.pp)


def sequence_bytes(
    architecture: Architecture,
    *,
    context_tokens: float,
    layout: Layout | None = None,
    kv_dtype: str = "auto",
    indexer_dtype: str = "auto",
) -> float:
    """Return the bytes one sequence of `context_tokens` holds on one GPU: caches, windows and states."""
    where = layout or Layout()
    kv_dtype = architecture.kv_dtype if kv_dtype == "auto" else kv_dtype
    caches = sum(
        entry_bytes(cache, kv_dtype, indexer_dtype)
        * cache.layers
        * cache.entries_kept(context_tokens)
        / ways(cache, cache.component, where)
        for cache in architecture.body.caches
    )
    states = sum(
        state.resident_bytes * state.layers / max(1, min(where.attention_tp, state.shards))
        for state in architecture.body.states
    )
    return (caches + states) / where.pp


def weight_bytes_per_gpu(architecture: Architecture, layout: Layout) -> float:
    """Return the bytes of weights one GPU holds, without draft layers."""
    dense = sum(
        matrix.total * matrix.format.bits / 8 / ways(matrix, matrix.component, layout)
        for matrix in architecture.body.matrices
        if not matrix.tied
    )
    experts = sum(
        e.params * e.count * e.layers * e.format.bits / 8 / layout.tp for e in architecture.body.experts
    )
    return (dense + experts) / layout.pp


def capacity_sequences(
    deployment: Deployment, *, context_tokens: float, indexer_dtype: str = "auto", memory_share: float = 0.9
) -> float:
    """Return how many sequences of `context_tokens` fit in one data-parallel rank; 0 when weights do not.

    Args:
        deployment: The model, its GPUs and the type of its cache.
        context_tokens: Tokens a sequence holds.
        indexer_dtype: Type of cached index keys.
        memory_share: What weights and cache may use of the GPU's memory; engines default to 0.85 to 0.92
            and leave the rest to activations, graphs and the context.
    """
    architecture, layout = deployment.architecture, deployment.layout
    check_layout(architecture, layout)
    free = deployment.gpu.memory_bytes * memory_share - weight_bytes_per_gpu(architecture, layout)
    each = sequence_bytes(
        architecture,
        context_tokens=context_tokens,
        layout=layout,
        kv_dtype=deployment.kv_dtype,
        indexer_dtype=indexer_dtype,
    )
    return max(0.0, free / each)
