"""From a config.json to an `Architecture`."""

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from stepline.errors import UnknownFact
from stepline.model.architecture_builder import Builder
from stepline.model.architecture_config import Config
from stepline.model.architecture_parts import Architecture, Block
from stepline.model.families.deepseek_v4 import deepseek_v4
from stepline.model.families.ffn import dense, moe
from stepline.model.families.gqa import gqa
from stepline.model.families.layers import attention_kinds, expert_layers, indexer_layers
from stepline.model.families.mla import mla
from stepline.model.quantisation import Quantisation, parse_quantisation

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

Attention = Callable[[Builder, int], None]


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
    attention = _attention(config)
    experts = expert_layers(config)
    body = Builder(config, formats)
    for layer in range(config.layers):
        body.layer = layer
        _layer(body, attention, layer, sparse=experts[layer])
    _ends(body)
    return Architecture(
        name=name or str(raw.get("_name_or_path") or config.model_type),
        model_type=config.model_type,
        hidden=config.whole("hidden_size"),
        layers=config.layers,
        heads=config.whole("num_attention_heads"),
        vocab=config.whole("vocab_size"),
        context_tokens=config.get("max_position_embeddings"),
        body=body.block(),
        draft=_draft(config, formats, attention, sparse=experts[-1]),
        kv_dtype=formats.kv_dtype,
        not_counted=tuple(dict.fromkeys(body.not_counted)),
    )


def _layer(builder: Builder, attention: Attention, layer: int, *, sparse: bool) -> None:
    attention(builder, layer)
    if sparse:
        moe(builder)
    else:
        dense(builder)
    builder.matrix("router and small", "norms", 2 * builder.config.whole("hidden_size"), gemm=False)


def _ends(builder: Builder) -> None:
    config = builder.config
    hidden, vocab = config.whole("hidden_size"), config.whole("vocab_size")
    tied = bool(config.get("tie_word_embeddings", config.model_type in _HEADLESS_TYING))
    builder.matrix("embedding", "embed_tokens", hidden * vocab, shards=vocab, gemm=False)
    builder.matrix("head", "lm_head", hidden * vocab, shards=vocab, tied=tied)
    builder.matrix("router and small", "final norm", hidden, gemm=False)


def _draft(config: Config, formats: Quantisation, attention: Attention, *, sparse: bool) -> Block | None:
    """Return one multi-token-prediction layer, shaped like the last main layer, or None."""
    count = config.get("num_nextn_predict_layers")
    if not count:
        return None
    draft = Builder(config, formats)
    hidden = config.whole("hidden_size")
    draft.layer = config.layers
    _layer(draft, attention, config.layers, sparse=sparse)
    draft.linear("dense ffn", "eh_proj", 2 * hidden, hidden, shards=1)
    return draft.block()


def _attention(config: Config) -> Attention:
    kind = config.model_type
    if kind in _COMPRESSED:
        return _compressed(config)
    if kind in _LATENT or (kind in _GROUPED and config.get("kv_lora_rank")):
        indexed = indexer_layers(config) if config.get("index_topk") else [True] * config.layers
        return lambda builder, layer: mla(builder, indexer=indexed[min(layer, config.layers - 1)])
    if kind in _GROUPED:
        return _grouped(config)
    known = sorted(_GROUPED | _LATENT | _COMPRESSED)
    near = difflib.get_close_matches(kind, known, n=3, cutoff=0.4) or known
    raise UnknownFact(
        f"{config.name}: model_type {kind!r} is not known (nearest: {', '.join(near)}); "
        "if it is built like a known one, set model_type to that in a copy of the file"
    )


def _grouped(config: Config) -> Attention:
    kinds = attention_kinds(config)
    unfit = next((kind for kind in kinds if kind == "linear"), None)
    if unfit:
        raise UnknownFact(
            f"{config.name}: a {config.model_type} model with linear attention layers is not known"
        )

    def add(builder: Builder, layer: int) -> None:
        kind = kinds[min(layer, len(kinds) - 1)]
        gqa(builder, window=None if kind == "full" else config.whole("sliding_window"))

    return add


def _compressed(config: Config) -> Attention:
    ratios = config.listed("compress_ratios", config.layers)
    if ratios is None:
        raise UnknownFact(
            f"{config.name} lacks the key compress_ratios, which a {config.model_type} model needs"
        )
    every = config.get("compress_ratios")
    # The published list ends with one ratio per multi-token-prediction layer; those see a window only.
    return lambda builder, layer: deepseek_v4(builder, every[layer] if layer < len(every) else 0)
