"""Which attention and which feed-forward each layer has, from the keys that say so."""

from typing import Literal

from stepline.errors import UnknownFact
from stepline.model.roofline.architecture_config import Config

AttentionKind = Literal["full", "sliding", "chunked", "linear"]

_LAYER_TYPES: dict[str, AttentionKind] = {
    "full_attention": "full",
    "global": "full",
    "sliding_attention": "sliding",
    "sliding_window": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "linear",
}


def attention_kinds(config: Config) -> list[AttentionKind]:
    """Return the attention of every main layer.

    Raises:
        UnknownFact: layer_types names a type that is not known.
    """
    layers = config.layers
    named = config.listed("layer_types", layers)
    if named is not None:
        unknown = next((name for name in named if name not in _LAYER_TYPES), None)
        if unknown is not None:
            known = ", ".join(_LAYER_TYPES)
            raise UnknownFact(
                f"{config.name}: layer_types names {unknown!r}, which is not known; known: {known}"
            )
        return [_LAYER_TYPES[name] for name in named]
    pattern = config.listed("hybrid_layer_pattern", layers)
    if pattern is not None:
        return ["sliding" if sliding else "full" for sliding in pattern]
    interval = config.optional("full_attention_interval")
    if interval:
        return ["full" if (i + 1) % interval == 0 else "linear" for i in range(layers)]
    if config.get("attention_chunk_size") and config.get("no_rope_layers"):
        return ["chunked" if rope else "full" for rope in config.listed("no_rope_layers", layers) or ()]
    return _windowed(config, layers)


def _windowed(config: Config, layers: int) -> list[AttentionKind]:
    if config.optional("sliding_window") is None or config.get("use_sliding_window") is False:
        return ["full"] * layers
    period = config.optional("sliding_window_pattern") or (2 if config.model_type == "gemma2" else None)
    if period:
        return ["full" if (i + 1) % period == 0 else "sliding" for i in range(layers)]
    first = config.whole("max_window_layers", 0) if config.get("use_sliding_window") else 0
    return ["sliding" if i >= first else "full" for i in range(layers)]


def expert_layers(config: Config) -> list[bool]:
    """Return for every main layer whether its feed-forward is a mixture of experts."""
    layers = config.layers
    if not config.optional("num_experts") or config.get("enable_moe_block") is False:
        return [False] * layers
    named = config.listed("mlp_layer_types", layers)
    if named is not None:
        return [name == "sparse" for name in named]
    if config.get("moe_layers") is not None:
        chosen = set(config.indices("moe_layers"))
        return [i in chosen for i in range(layers)]
    first = config.whole("first_k_dense_replace", 0)
    if isinstance(config.get("moe_layer_freq"), list):
        return [
            bool(moe) and i >= first for i, moe in enumerate(config.listed("moe_layer_freq", layers) or [])
        ]
    frequency = config.whole("moe_layer_freq", 1)
    step = config.optional("interleave_moe_layer_step") or config.optional("decoder_sparse_step") or 1
    dense = set(config.indices("mlp_only_layers"))
    return [
        i >= first and i % frequency == 0 and (i + 1) % step == 0 and i not in dense for i in range(layers)
    ]


def indexer_layers(config: Config) -> list[bool]:
    """Return for every layer whether it runs an indexer of its own (else it takes an earlier top-k)."""
    layers = config.layers
    named = config.listed("indexer_types", layers)
    if named is not None:
        return [name == "full" for name in named]
    frequency = config.optional("index_topk_freq") or 1
    offset = config.optional("index_skip_topk_offset") or frequency
    return [i < offset or (i - offset + 1) % frequency == 0 for i in range(layers)]
