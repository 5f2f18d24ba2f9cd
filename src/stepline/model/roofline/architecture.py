"""From a config.json to an `Architecture`."""

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from stepline.errors import UnknownFact
from stepline.model.roofline.architecture_builder import Builder
from stepline.model.roofline.architecture_config import Config
from stepline.model.roofline.architecture_parts import Architecture, Block
from stepline.model.roofline.families.deepseek_v4 import deepseek_v4
from stepline.model.roofline.families.ffn import dense, moe
from stepline.model.roofline.families.gemma4 import gemma4_attention
from stepline.model.roofline.families.gqa import block_sparse, gqa, windowed_heads
from stepline.model.roofline.families.hybrid import pattern, patterned, searched
from stepline.model.roofline.families.layers import attention_kinds, expert_layers, indexer_layers
from stepline.model.roofline.families.linear import gated_delta, kimi_delta
from stepline.model.roofline.families.mla import mla
from stepline.model.roofline.quantisation import Quantisation, parse_quantisation

__all__ = ["Architecture", "parse_config"]

_GROUPED = frozenset(
    {
        "ernie4_5", "ernie4_5_moe", "exaone4", "gemma2", "glm4", "glm4_moe", "gpt2", "gpt_oss", "granite",
        "granitemoe", "hunyuan_v1_dense", "internlm2", "internlm3", "llama", "mimo", "minimax_m2",
        "ministral3", "mistral", "mistral3", "mixtral", "olmo2", "olmoe", "phi3", "phimoe", "qwen2",
        "qwen2_moe", "qwen3", "qwen3_moe", "qwen3_vl_moe_text", "qwen3_vl_text", "seed_oss", "smollm3",
        "starcoder2",
    }
)  # fmt: skip
_LATENT = frozenset(
    {
        "deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_vl_v2", "glm4_moe_lite", "glm_moe_dsa",
        "kimi_k2", "mistral4",
    }
)  # fmt: skip
_COMPRESSED = frozenset({"deepseek_v4", "deepseek_ref"})

_HEADLESS_TYING = frozenset({"gemma", "gemma2", "gemma3_text", "gemma4_text", "gpt2"})
"""Types that tie head and embedding when the config does not say."""

_DELTA = frozenset({"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_5", "qwen3_5_moe"})
_OTHERS = frozenset(
    {
        "gemma3_text", "gemma4_text", "kimi_linear", "llama4_text", "mimo_v2_flash", "minimax_m3",
        "minimax_m3_vl", "nemotron-nas", "nemotron_h", "step3p5", "step3p7",
    }
)  # fmt: skip
"""Types with an entry of their own in `_plan`."""

_KNOWN = sorted(_GROUPED | _LATENT | _COMPRESSED | _DELTA | _OTHERS)

Layer = Callable[[Builder, int], None]
"""Adds the layer of that index; indices from the layer count on are draft layers."""


def parse_config(
    raw: Mapping[str, Any], *, name: str = "", quantisation: Mapping[str, Any] | None = None
) -> Architecture:
    """Read a config.json (a dict as loaded) into what its decode steps read and multiply.

    Args:
        raw: The config; nested text parts are found.
        name: What to call the model in messages and results.
        quantisation: A quantization_config, or the content of hf_quant_config.json, in place of the
            config's own.

    Raises:
        UnknownFact: The model type, a layer type or the quantisation is not known, or a key is missing
            or impossible; the message names it.
    """
    config = Config(raw, name or "config.json")
    section = quantisation or config.get("quantization_config") or config.get("compression_config")
    formats = parse_quantisation(section, config.raw)
    add = _plan(config)
    body = Builder(config, formats)
    for layer in range(config.layers):
        body.layer = layer
        add(body, layer)
    _ends(body)
    if config.get("attn_res_block_size"):
        body.not_counted.append("attention residuals across blocks: their weights are not published")
    if any(key in raw for key in ("vision_config", "audio_config")):
        body.not_counted.append("vision and audio towers: they do not run in decode steps")
    return Architecture(
        name=name or str(raw.get("_name_or_path") or config.model_type),
        model_type=config.model_type,
        hidden=config.whole("hidden_size"),
        layers=config.layers,
        heads=config.whole("num_attention_heads"),
        vocab=config.whole("vocab_size"),
        context_tokens=config.optional("max_position_embeddings"),
        body=body.block(),
        draft=_draft(config, formats, add),
        kv_dtype=formats.kv_dtype,
        not_counted=tuple(dict.fromkeys(body.not_counted)),
    )


def _ends(builder: Builder) -> None:
    config = builder.config
    hidden, vocab = config.whole("hidden_size"), config.whole("vocab_size")
    tied = bool(config.get("tie_word_embeddings", config.model_type in _HEADLESS_TYING))
    builder.matrix("embedding", "embed_tokens", hidden * vocab, shards=vocab, gemm=False)
    builder.matrix("head", "lm_head", hidden * vocab, shards=vocab, tied=tied)
    builder.matrix("router and small", "final norm", hidden, gemm=False)


def _draft(config: Config, formats: Quantisation, add: Layer) -> Block | None:
    """Return one multi-token-prediction layer, shaped like the last main layer, or None."""
    if not config.optional("num_nextn_predict_layers") or config.model_type == "nemotron_h":
        return None
    draft = Builder(config, formats)
    hidden = config.whole("hidden_size")
    draft.layer = config.layers
    add(draft, config.layers)
    draft.linear("dense ffn", "eh_proj", 2 * hidden, hidden, shards=1)
    return draft.block()


def _plan(config: Config) -> Layer:
    """Return what adds each layer of this model type."""
    kind = config.model_type
    if kind == "nemotron_h":
        signs = pattern(config)
        return lambda builder, layer: patterned(builder, signs[layer])
    if kind == "nemotron-nas":
        blocks = config.listed("block_configs", config.layers)
        if blocks is None:
            raise UnknownFact(f"{config.name} lacks the key block_configs, which a {kind} model needs")
        return lambda builder, layer: searched(builder, blocks[layer])
    if kind not in _KNOWN:
        near = difflib.get_close_matches(kind, _KNOWN, n=3, cutoff=0)
        raise UnknownFact(
            f"{config.name}: model_type {kind!r} is not known (nearest: {', '.join(near)}); "
            "if it is built like a known one, set model_type to that in a copy of the file"
        )
    return _paired(config, _attention(config))


def _paired(config: Config, attention: Layer) -> Layer:
    """Attention and a feed-forward, which is dense, experts, or in Gemma 4 both."""
    sparse = expert_layers(config)

    def add(builder: Builder, layer: int) -> None:
        last = min(layer, len(sparse) - 1)
        attention(builder, layer)
        if sparse[last]:
            moe(builder)
        if not sparse[last] or config.get("enable_moe_block"):
            dense(builder)
        builder.matrix("router and small", "norms", 2 * config.whole("hidden_size"), gemm=False)

    return add


def _attention(config: Config) -> Layer:
    kind = config.model_type
    last = config.layers - 1
    if kind in _COMPRESSED:
        return _compressed(config)
    if kind == "kimi_linear":
        settings = config.section("linear_attn_config")
        full = set(settings.indices("full_attn_layers")) if settings else set()
        # The list counts layers from 1.
        return lambda builder, layer: mla(builder) if min(layer, last) + 1 in full else kimi_delta(builder)
    if kind in _LATENT:
        indexed = indexer_layers(config) if config.optional("index_topk") else [True] * config.layers
        return lambda builder, layer: mla(builder, indexer=indexed[min(layer, last)])
    if kind.startswith("minimax_m3"):
        sparse = config.section("sparse_attention_config")
        chosen = (sparse and sparse.listed("sparse_attention_freq", config.layers)) or [0] * config.layers
        return lambda builder, layer: block_sparse(builder) if chosen[min(layer, last)] else gqa(builder)
    return _grouped(config)


def _grouped(config: Config) -> Layer:
    kinds = attention_kinds(config)
    if "linear" in kinds and config.model_type not in _DELTA:
        raise UnknownFact(
            f"{config.name}: a {config.model_type} model with linear attention layers is not known"
        )

    def add(builder: Builder, layer: int) -> None:
        kind = kinds[layer] if layer < len(kinds) else ("full" if "linear" in kinds else kinds[-1])
        if config.model_type == "gemma4_text":
            gemma4_attention(builder, kind)
        elif kind == "linear":
            gated_delta(builder)
        elif kind == "full":
            gqa(builder)
        elif kind == "chunked":
            # A token attends to its own chunk: half of one on average.
            gqa(builder, window=config.whole("attention_chunk_size") // 2)
        elif config.optional("swa_head_dim"):
            windowed_heads(builder)
        else:
            gqa(builder, window=config.whole("sliding_window"))

    return add


def _compressed(config: Config) -> Layer:
    if config.listed("compress_ratios", config.layers) is None:
        raise UnknownFact(
            f"{config.name} lacks the key compress_ratios, which a {config.model_type} model needs"
        )
    every = config.get("compress_ratios")
    # The published list ends with one ratio per multi-token-prediction layer; those see a window only.
    return lambda builder, layer: deepseek_v4(builder, every[layer] if layer < len(every) else 0)
