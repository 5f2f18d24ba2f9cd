"""Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434), with the sparse indexer of DeepSeek-V3.2."""

from stepline.errors import UnknownFact
from stepline.model.roofline.architecture_builder import Builder
from stepline.model.roofline.architecture_parts import Cache

FP8_MLA_ENTRY_BYTES = 656
"""512 fp8 + 4 fp32 scales + 64 bf16: the mixed entry of FlashMLA (deepseek-ai/FlashMLA README)."""


def mla(builder: Builder, *, indexer: bool = True) -> None:
    """Add one latent attention layer; `indexer` False takes the top-k of an earlier layer.

    The latent entry serves all heads, so tensor parallelism replicates it. Decode multiplies in the
    absorbed form: keys of rank + rope, values of rank, per head.
    """
    config = builder.config
    hidden, heads = config.whole("hidden_size"), config.whole("num_attention_heads")
    rank, rope = config.whole("kv_lora_rank"), config.whole("qk_rope_head_dim")
    nope, value = config.whole("qk_nope_head_dim"), config.whole("v_head_dim")
    query_rank = config.optional("q_lora_rank")
    width = heads * (nope + rope)
    part = "self_attn"
    if query_rank:
        builder.linear("attention weights", f"{part}.q_a_proj", hidden, query_rank, shards=1)
        builder.linear("attention weights", f"{part}.q_b_proj", query_rank, width, shards=heads)
    else:
        builder.linear("attention weights", f"{part}.q_proj", hidden, width, shards=heads)
    builder.linear("attention weights", f"{part}.kv_a_proj_with_mqa", hidden, rank + rope, shards=1)
    builder.linear("attention weights", f"{part}.kv_b_proj", rank, heads * (nope + value), shards=heads)
    builder.linear("attention weights", f"{part}.o_proj", heads * value, hidden, shards=heads)
    if config.get("mla_use_output_gate"):
        builder.linear("attention weights", f"{part}.g_proj", hidden, heads * value, shards=heads)
    top_k = config.optional("index_topk")
    extra = (("fp8_ds_mla", float(FP8_MLA_ENTRY_BYTES)),) if (rank, rope) == (512, 64) else ()
    builder.kv(
        name="latent",
        elements=rank + rope,
        flops=2 * heads * (2 * rank + rope),
        shards=1,
        read_cap=top_k,
        extra=extra,
    )
    if top_k:
        if not query_rank:
            raise UnknownFact(
                f"{config.name} has index_topk but lacks q_lora_rank, from which the indexer reads"
            )
        _indexer(builder, query_rank, weights=indexer)


def _indexer(builder: Builder, query_rank: int, *, weights: bool) -> None:
    config = builder.config
    hidden, heads, dim = (config.whole(key) for key in ("hidden_size", "index_n_heads", "index_head_dim"))
    if not weights:
        return
    builder.linear("indexer", "self_attn.indexer.wq_b", query_rank, heads * dim, shards=1)
    builder.linear("indexer", "self_attn.indexer.wk", hidden, dim, shards=1)
    builder.matrix("indexer", "self_attn.indexer.weights_proj", hidden * heads)
    builder.cache(index_keys(heads, dim, stride=1))


def index_keys(heads: int, dim: int, *, stride: int) -> Cache:
    """Index keys of one layer: fp8 with one fp32 scale, or MXFP4; every step scores all of them.

    Scores are fp32, written by the scorer and read again by the top-k: counted only where the work
    follows the configured context.
    """
    return Cache(
        component="indexer",
        name="index keys",
        entry_bytes=(("fp8", dim + 4), ("fp4", dim / 2 + 4), ("bf16", 2 * dim)),
        flops=2 * heads * dim,
        shards=1,
        stride=stride,
        follows_capacity=True,
        score_bytes=8,
    )
