"""Bytes and FLOPs of a model as the simulated GPU sees them: dense and expert transformers with GQA or MLA."""

from collections.abc import Mapping
from typing import Any

import msgspec

from stepline.errors import UnknownFact

BYTES = {"bf16": 2, "fp8": 1}
"""Bytes of a weight by the type it is multiplied in."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's share of a model; all counts of bytes are per rank."""

    layers: int
    hidden: int
    expert_layers: int
    attention_bytes: float
    """Projections of all layers."""
    dense_bytes: float
    """Feed-forward parts that every token uses, all layers."""
    expert_bytes: float
    """One routed expert of one layer."""
    experts: int
    experts_per_token: int
    head_bytes: float
    embedding_bytes: float
    kv_bytes_per_token: float
    """All layers."""
    kv_heads: int
    heads: int
    """Query heads."""
    parameters_per_token: float
    """Weights that one token multiplies, head excluded."""
    head_parameters: float
    attention_flops_per_pair: float
    """Score and value products of one query with one cached token, all layers."""
    math: str
    """Type that the weights are multiplied in, by the hardware file's words."""
    architecture: str
    vocabulary: int
    positions: int

    @property
    def weight_bytes(self) -> float:
        """All weights of the rank."""
        routed = self.expert_bytes * self.experts * self.expert_layers
        return self.attention_bytes + self.dense_bytes + routed + self.head_bytes + self.embedding_bytes

    def experts_read(self, rows: int) -> float:
        """Experts of a layer that `rows` tokens touch when routing is uniform."""
        return (
            self.experts * (1 - (1 - self.experts_per_token / self.experts) ** rows) if self.experts else 0.0
        )


def shape_of(config: Mapping[str, Any], tp: int = 1) -> Shape:
    """Sizes of one of `tp` ranks.

    Raises:
        UnknownFact: The config lacks sizes, or has parts that this simulation has no formula for.
    """
    try:
        return _shape(config, tp)
    except KeyError as e:
        raise UnknownFact(f"the lab cannot simulate a model whose config lacks {e.args[0]}") from e


def widened(shape: Shape, parts: tuple[str, ...], math: str) -> Shape:
    """The same with the weights of these parts (`attention`, `dense`, `head`) in 32 bits, multiplied as `math`."""
    wide = {f"{part}_bytes": 4 / BYTES[shape.math] * getattr(shape, f"{part}_bytes") for part in parts}
    return msgspec.structs.replace(shape, math=math, **wide)


def _shape(config: Mapping[str, Any], tp: int) -> Shape:
    if any(
        key in config
        for key in ("compress_ratios", "linear_num_key_heads", "mamba_num_heads", "sliding_window_pattern")
    ):
        raise UnknownFact(
            f"the lab simulates plain transformers (GQA or MLA, dense or experts), not {config.get('model_type')}"
        )
    method = (config.get("quantization_config") or {}).get("quant_method")
    if method not in (None, "fp8"):
        raise UnknownFact(f"the lab simulates bf16 and fp8 weights, not {method}")
    size = 1.0 if method == "fp8" else 2.0
    hidden, layers, heads = config["hidden_size"], config["num_hidden_layers"], config["num_attention_heads"]
    if "kv_lora_rank" in config:
        attention, kv_width, kv_heads, pair = _latent(config, hidden, heads)
    else:
        width = config.get("head_dim") or hidden // heads
        kv_heads = config["num_key_value_heads"]
        attention = hidden * width * (2 * heads + 2 * kv_heads)
        kv_width, pair = 2 * kv_heads * width, 4 * heads * width
    experts = (
        config.get("num_experts") or config.get("num_local_experts") or config.get("n_routed_experts") or 0
    )
    first_dense = config.get("first_k_dense_replace", 0) if experts else layers
    expert_layers = layers - first_dense
    expert = (
        3 * hidden * (config.get("moe_intermediate_size") or config["intermediate_size"]) if experts else 0
    )
    shared = expert * (config.get("n_shared_experts") or 0) + (hidden * experts if experts else 0)
    dense = first_dense * 3 * hidden * config["intermediate_size"] + expert_layers * shared
    chosen = config.get("num_experts_per_tok", 0) if experts else 0
    head = hidden * config["vocab_size"]
    kv_ranks = 1 if "kv_lora_rank" in config else min(tp, kv_heads)
    return Shape(
        layers=layers,
        hidden=hidden,
        expert_layers=expert_layers,
        attention_bytes=size * attention * layers / tp,
        dense_bytes=size * dense / tp,
        expert_bytes=size * expert / tp,
        experts=experts,
        experts_per_token=chosen,
        head_bytes=2.0 * head / tp,
        embedding_bytes=0.0 if config.get("tie_word_embeddings") else 2.0 * head / tp,
        kv_bytes_per_token=2.0 * kv_width * layers / kv_ranks,
        kv_heads=max(1, kv_heads // tp),
        heads=max(1, heads // tp),
        parameters_per_token=(attention * layers + dense + chosen * expert * expert_layers) / tp,
        head_parameters=head / tp,
        attention_flops_per_pair=pair * layers / tp,
        math="fp8" if size == 1.0 else "bf16",
        architecture=str((config.get("architectures") or ["Unknown"])[0]),
        vocabulary=config["vocab_size"],
        positions=config["max_position_embeddings"],
    )


def _latent(config: Mapping[str, Any], hidden: int, heads: int) -> tuple[float, float, int, float]:
    """(projection weights, cached values per token, KV heads, FLOPs per pair) of a layer of latent attention."""
    rank, rope = config["kv_lora_rank"], config["qk_rope_head_dim"]
    nope, value = config["qk_nope_head_dim"], config["v_head_dim"]
    query = config.get("q_lora_rank")
    q = hidden * query + query * heads * (nope + rope) if query else hidden * heads * (nope + rope)
    weights = q + hidden * (rank + rope) + rank * heads * (nope + value) + heads * value * hidden
    return weights, rank + rope, 1, 2 * heads * (2 * rank + rope)
