"""Multi-head, multi-query and grouped-query attention, with or without a sliding window."""

from stepline.model.architecture_builder import Builder

_BIASED = frozenset({"qwen2", "qwen2_moe", "qwen2_vl_text", "qwen2_5_vl_text", "gpt2"})
"""Types whose projections have a bias without an attention_bias key saying so."""


def gqa(
    builder: Builder, *, window: int | None = None, heads: int = 0, kv_heads: int = 0, head_dim: int = 0
) -> None:
    """Add one attention layer; `window` bounds the context, the shape defaults to the config's.

    A cache entry of one token holds keys and values of all KV heads. One query does 2 FLOPs per key
    element and 2 per value element for every query head.
    """
    config = builder.config
    hidden = config.whole("hidden_size")
    heads = heads or config.whole("num_attention_heads")
    kv_heads = kv_heads or config.whole("num_key_value_heads", heads)
    head_dim = head_dim or config.whole("head_dim", hidden // heads)
    value_dim = config.whole("v_head_dim", head_dim)
    gates = 2 if config.get("attn_output_gate") else 1
    builder.linear("attention weights", "self_attn.q_proj", hidden, heads * head_dim * gates, shards=heads)
    builder.linear("attention weights", "self_attn.k_proj", hidden, kv_heads * head_dim, shards=kv_heads)
    builder.linear("attention weights", "self_attn.v_proj", hidden, kv_heads * value_dim, shards=kv_heads)
    builder.linear("attention weights", "self_attn.o_proj", heads * value_dim, hidden, shards=heads)
    if config.get("attention_bias", config.get("qkv_bias", config.model_type in _BIASED)):
        width = heads * head_dim + kv_heads * (head_dim + value_dim)
        builder.matrix("router and small", "attention bias", width, gemm=False)
    builder.kv(
        name="sliding window" if window else "full attention",
        elements=kv_heads * (head_dim + value_dim),
        flops=2 * heads * (head_dim + value_dim),
        shards=kv_heads,
        window=window,
    )
