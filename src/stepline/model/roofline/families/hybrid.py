"""Layers that are no plain pair of attention and feed-forward: Nemotron-H patterns and searched blocks."""

from typing import Any

from stepline.errors import UnknownFact
from stepline.model.roofline.architecture_builder import Builder
from stepline.model.roofline.architecture_config import Config
from stepline.model.roofline.families.ffn import dense, moe
from stepline.model.roofline.families.gqa import gqa
from stepline.model.roofline.families.linear import mamba2

_MIXERS = {
    "M": mamba2,
    "*": gqa,
    "-": dense,
    "E": moe,
}
_BLOCK_TYPES = {"mamba": "M", "attention": "*", "mlp": "-", "moe": "E"}


def pattern(config: Config) -> str:
    """Return the layer pattern of a Nemotron-H model: M Mamba-2, * attention, - dense, E experts."""
    named = config.listed("layers_block_type", config.layers)
    if named is not None:
        unknown = next((name for name in named if name not in _BLOCK_TYPES), None)
        if unknown is not None:
            raise UnknownFact(
                f"{config.name}: layers_block_type names {unknown!r}; known: {', '.join(_BLOCK_TYPES)}"
            )
        return "".join(_BLOCK_TYPES[name] for name in named)
    text = config.get("hybrid_override_pattern")
    if not isinstance(text, str) or len(text) != config.layers:
        raise UnknownFact(f"{config.name}: hybrid_override_pattern must give one sign for each layer")
    unknown = next((sign for sign in text if sign not in _MIXERS), None)
    if unknown is not None:
        raise UnknownFact(f"{config.name}: hybrid_override_pattern holds {unknown!r}; known: M * - E")
    return text


def patterned(builder: Builder, sign: str) -> None:
    """Add the one mixer of a Nemotron-H layer."""
    _MIXERS[sign](builder)
    builder.matrix("router and small", "norm", builder.config.whole("hidden_size"), gemm=False)


def searched(builder: Builder, block: dict[str, Any]) -> None:
    """Add one block of a Llama-Nemotron model, whose heads and width an architecture search chose."""
    config = builder.config
    attention, ffn = block.get("attention") or {}, block.get("ffn") or {}
    for part in (attention, ffn):
        if part.get("replace_with_linear") or part.get("sparsify"):
            raise UnknownFact(
                f"{config.name}: block_configs with replace_with_linear or sparsify are not known"
            )
    if not attention.get("no_op"):
        heads = config.whole("num_attention_heads")
        gqa(builder, heads=heads, kv_heads=heads // attention["n_heads_in_group"])
    if not ffn.get("no_op"):
        # The width is two thirds of the multiple, rounded up to 256 (the checkpoint's modeling_decilm.py).
        width = int(2 * ffn["ffn_mult"] * config.whole("hidden_size") / 3)
        dense(builder, -(-width // 256) * 256)
    builder.matrix("router and small", "norms", 2 * config.whole("hidden_size"), gemm=False)
