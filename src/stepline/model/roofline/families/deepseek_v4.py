"""DeepSeek-V4 attention: a shared key-value latent, windows, two compressions and an indexer.

Shapes from the published configs of DeepSeek-V4-Flash and -Pro; which parts are replicated, their types and
the 584-byte entry from vllm/models/deepseek_v4 (0.33) and sglang srt/mem_cache/deepseek_v4_memory_pool.py
(0.5.23).
"""

from stepline.errors import UnknownFact
from stepline.model.roofline.architecture_builder import Builder
from stepline.model.roofline.architecture_parts import BF16, FP32, Cache, State
from stepline.model.roofline.families.mla import index_keys

SCALE_BYTES = 8
"""Of one latent entry, beside fp8 numbers and the bf16 rotary part."""


def deepseek_v4(builder: Builder, ratio: int) -> None:
    """Add one layer that compresses `ratio` tokens into one entry (0: window only; 4: with indexer; 128).

    Every layer also reads its sliding window. Keys and values are one vector, shared by all heads, so
    tensor parallelism replicates the cache.
    """
    config = builder.config
    hidden, heads, head_dim = (config.whole(k) for k in ("hidden_size", "num_attention_heads", "head_dim"))
    query_rank, groups, group_rank = (config.whole(k) for k in ("q_lora_rank", "o_groups", "o_lora_rank"))
    if ratio not in {0, 4, 128}:
        raise UnknownFact(f"{config.name}: compress_ratios holds {ratio}; only 0, 4 and 128 are known")
    builder.linear("attention weights", "self_attn.wq_a", hidden, query_rank, shards=1)
    builder.linear("attention weights", "self_attn.wq_b", query_rank, heads * head_dim, shards=heads)
    builder.linear("attention weights", "self_attn.wkv", hidden, head_dim, shards=1)
    builder.linear(
        "attention weights", "self_attn.wo_a", heads * head_dim, group_rank, shards=groups * group_rank
    )
    builder.linear(
        "attention weights", "self_attn.wo_b", groups * group_rank, hidden, shards=groups * group_rank
    )
    builder.cache(_latent(builder, "window", stride=1, window=config.whole("sliding_window")))
    if ratio:
        _compressed(builder, ratio)
    # Hyper-connections mix hc_mult residual streams before attention and before the experts, in fp32.
    streams = config.whole("hc_mult", 1)
    if streams > 1:
        mixing = 2 * streams * hidden * (streams * streams + 2 * streams)
        builder.matrix("router and small", "hyper-connections", mixing, fmt=FP32)


def _compressed(builder: Builder, ratio: int) -> None:
    config = builder.config
    hidden, head_dim = config.whole("hidden_size"), config.whole("head_dim")
    # The compressor projects to values and gates; at ratio 4 neighbouring blocks overlap, which doubles it.
    overlap = 2 if ratio == 4 else 1
    builder.matrix("attention weights", "self_attn.compressor", 2 * overlap * hidden * head_dim, fmt=BF16)
    tokens = ratio * overlap
    state_bytes = tokens * 2 * overlap * head_dim * 4
    builder.state(
        State(name=f"compressor {ratio}", resident_bytes=state_bytes, step_bytes=0, flops=0, shards=1)
    )
    top_k = config.whole("index_topk") if ratio == 4 else None
    builder.cache(_latent(builder, f"compressed {ratio}", stride=ratio, read_cap=top_k))
    if ratio != 4:
        return
    heads, dim = config.whole("index_n_heads"), config.whole("index_head_dim")
    builder.linear("indexer", "self_attn.indexer.wq_b", config.whole("q_lora_rank"), heads * dim, shards=1)
    builder.matrix("indexer", "self_attn.indexer.weights_proj", hidden * heads, fmt=BF16)
    builder.matrix("indexer", "self_attn.indexer.compressor", 4 * hidden * dim, fmt=BF16)
    builder.cache(index_keys(heads, dim, stride=ratio))


def _latent(
    builder: Builder, name: str, *, stride: int, window: int | None = None, read_cap: int | None = None
) -> Cache:
    config = builder.config
    head_dim, rope = config.whole("head_dim"), config.whole("qk_rope_head_dim")
    mixed = (head_dim - rope) + 2 * rope + SCALE_BYTES
    return Cache(
        component="kv read",
        name=name,
        entry_bytes=(("fp8", mixed), ("fp8_ds_mla", mixed), ("bf16", 2 * head_dim)),
        flops=4 * config.whole("num_attention_heads") * head_dim,
        shards=1,
        stride=stride,
        read_cap=window if window is not None else read_cap,
        keep_cap=window,
        # Without a top-k a fallback kernel walks the whole page table; the window never does.
        follows_capacity=window is None and read_cap is None,
    )
