"""Gemma 4: wider heads in global layers, and experts beside a dense feed-forward."""

from stepline.errors import UnknownFact
from stepline.model.roofline.architecture_builder import Builder
from stepline.model.roofline.families.gqa import gqa


def gemma4_attention(builder: Builder, kind: str) -> None:
    """Add one layer; global ones have heads of their own size and may take keys for values."""
    config = builder.config
    if config.whole("hidden_size_per_layer_input", 0) or config.whole("num_kv_shared_layers", 0):
        raise UnknownFact(
            f"{config.name}: hidden_size_per_layer_input and num_kv_shared_layers above 0 are not known"
        )
    if kind == "full":
        gqa(
            builder,
            head_dim=config.whole("global_head_dim", config.whole("head_dim")),
            kv_heads=config.optional("num_global_key_value_heads") or config.whole("num_key_value_heads"),
            keys_are_values=bool(config.get("attention_k_eq_v")),
        )
    else:
        gqa(builder, window=config.whole("sliding_window"))
