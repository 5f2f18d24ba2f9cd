"""Multi-head, multi-query and grouped-query attention, with or without a sliding window."""

from stepline.errors import UnknownFact
from stepline.model.roofline.architecture_builder import Builder

_BIASED = frozenset({"qwen2", "qwen2_moe", "qwen2_vl_text", "qwen2_5_vl_text", "gpt2"})
"""Types whose projections have a bias without an attention_bias key saying so."""


def gqa(
    builder: Builder,
    *,
    window: int | None = None,
    read_cap: int | None = None,
    heads: int = 0,
    kv_heads: int = 0,
    head_dim: int = 0,
    value_dim: int = 0,
    keys_are_values: bool = False,
) -> None:
    """Add one attention layer; `window` bounds the context, `read_cap` only what a step reads of it.

    Shapes default to the config's. A cache entry of one token holds keys and values of all KV heads. One
    query does 2 FLOPs per key element and 2 per value element for every query head.
    """
    config = builder.config
    hidden = config.whole("hidden_size")
    heads = heads or config.whole("num_attention_heads")
    kv_heads = kv_heads or config.whole("num_key_value_heads", heads)
    head_dim = head_dim or config.whole("head_dim", config.optional("attention_head_dim") or hidden // heads)
    value_dim = value_dim or config.whole("v_head_dim", head_dim)
    gates = 2 if config.get("attn_output_gate") else 1
    part = "mixer" if config.model_type == "nemotron_h" else "self_attn"
    builder.linear("attention weights", f"{part}.q_proj", hidden, heads * head_dim * gates, shards=heads)
    builder.linear("attention weights", f"{part}.k_proj", hidden, kv_heads * head_dim, shards=kv_heads)
    if not keys_are_values:
        builder.linear("attention weights", f"{part}.v_proj", hidden, kv_heads * value_dim, shards=kv_heads)
    builder.linear("attention weights", f"{part}.o_proj", heads * value_dim, hidden, shards=heads)
    if config.get("attention_bias", config.get("qkv_bias", config.model_type in _BIASED)):
        width = heads * head_dim + kv_heads * (head_dim + value_dim)
        builder.matrix("router and small", "attention bias", width, gemm=False)
    builder.kv(
        name="sliding window" if window else "full attention",
        elements=kv_heads * (head_dim + value_dim),
        flops=2 * heads * (head_dim + value_dim),
        shards=kv_heads,
        window=window,
        read_cap=read_cap,
    )


def windowed_heads(builder: Builder) -> None:
    """Add a sliding-window layer with heads of its own shape (MiMo-V2: the swa_ keys)."""
    config = builder.config
    gqa(
        builder,
        window=config.whole("sliding_window"),
        heads=config.whole("swa_num_attention_heads", config.whole("num_attention_heads")),
        kv_heads=config.whole("swa_num_key_value_heads", config.whole("num_key_value_heads")),
        head_dim=config.whole("swa_head_dim", config.whole("head_dim")),
        value_dim=config.whole("swa_v_head_dim", config.whole("v_head_dim")),
    )


def block_sparse(builder: Builder) -> None:
    """Add a layer that reads the top blocks of the context only (MiniMax-M3: sparse_attention_config)."""
    config = builder.config
    settings = config.section("sparse_attention_config")
    if settings is None:
        raise UnknownFact(f"{config.name} lacks the key sparse_attention_config")
    hidden, dim = config.whole("hidden_size"), settings.whole("sparse_index_dim")
    blocks = settings.whole("sparse_topk_blocks") + settings.whole("sparse_local_block", 0)
    gqa(builder, read_cap=blocks * settings.whole("sparse_block_size"))
    heads = settings.whole("sparse_num_index_heads")
    builder.linear("indexer", "self_attn.index_q_proj", hidden, heads * dim, shards=1)
    builder.linear("indexer", "self_attn.index_k_proj", hidden, dim, shards=1)
    builder.not_counted.append("reads of block index keys: their cached form is not published")
