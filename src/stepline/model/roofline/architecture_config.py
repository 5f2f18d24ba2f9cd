"""Reads a config.json by the names its keys go by; a missing key is an error that names it."""

from collections.abc import Mapping
from typing import Any

from stepline.errors import UnknownFact

_NESTED = ("text_config", "llm_config", "language_config", "moe")

ALIASES: dict[str, tuple[str, ...]] = {
    "hidden_size": ("n_embd", "d_model", "dim"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("n_head", "n_heads"),
    "num_key_value_heads": (
        "num_kv_heads", "n_kv_heads", "n_head_kv", "multi_query_group_num", "num_attention_groups",
    ),
    "intermediate_size": ("hidden_dim", "ffn_hidden_size", "n_inner", "ffn_dim"),
    "vocab_size": ("padded_vocab_size",),
    "max_position_embeddings": ("n_positions", "max_seq_len", "seq_length", "model_max_length"),
    "tie_word_embeddings": ("tie_embeddings",),
    "sliding_window": ("sliding_window_size", "attention_chunk_size"),
    "num_experts": ("n_routed_experts", "num_local_experts", "moe_num_experts"),
    "num_experts_per_tok": (
        "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_topk", "moe_top_k", "top_k",
    ),
    "moe_intermediate_size": ("expert_hidden_dim", "moe_ffn_hidden_size", "expert_ffn_hidden_size"),
    "n_shared_experts": ("num_shared_experts", "moe_num_shared_experts"),
    "shared_expert_intermediate_size": (
        "moe_shared_expert_intermediate_size", "share_expert_dim", "shared_intermediate_size",
    ),
    "first_k_dense_replace": ("moe_first_k_dense", "num_dense_layers"),
    "num_nextn_predict_layers": ("num_mtp_layers", "mtp_num_hidden_layers", "num_mtp_modules"),
    "compress_ratios": ("compress_rates",),
    "dtype": ("torch_dtype",),
}  # fmt: skip
"""Other names of a key (largely those of vllm/transformers_utils/config.py)."""


class Config:
    """A config.json, seen through its aliases, nested text parts first."""

    def __init__(self, raw: Mapping[str, Any], name: str = "config.json") -> None:
        self.name = name
        self.raw = dict(raw)
        for nested in _NESTED:
            if isinstance(raw.get(nested), Mapping):
                self.raw = {**self.raw, **raw[nested]}

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of `key` or of one of its aliases; null counts as absent."""
        for alias in (key, *ALIASES.get(key, ())):
            if self.raw.get(alias) is not None:
                return self.raw[alias]
        return default

    def whole(self, key: str, default: int | None = None) -> int:
        """Return `key` as a positive whole number.

        Raises:
            UnknownFact: The key is missing without default, or is no positive whole number.
        """
        value = self.get(key, default)
        if value is None:
            others = ALIASES.get(key, ())
            also = f" (or {', '.join(others)})" if others else ""
            raise UnknownFact(f"{self.name} lacks the key {key}{also}, which a {self.model_type} model needs")
        if (
            not isinstance(value, int)
            or isinstance(value, bool)
            or value < 0
            or (value == 0 and default != 0)
        ):
            raise UnknownFact(f"{self.name}: {key} is {value!r}, not a positive whole number")
        return value

    def optional(self, key: str) -> int | None:
        """Return `key` as a positive whole number, or None where it is absent, null, false or 0."""
        value = self.get(key)
        return None if value is None or value is False or value == 0 else self.whole(key)

    def section(self, key: str) -> "Config | None":
        """Return the nested part `key`, or None."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise UnknownFact(f"{self.name}: {key} is {value!r:.60}, not a section of keys")
        return Config({"model_type": self.model_type, **value}, f"{self.name}, {key}")

    def indices(self, key: str) -> list[int]:
        """Return a list of whole numbers; absent is empty."""
        value = self.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
            raise UnknownFact(f"{self.name}: {key} is {value!r:.60}, not a list of whole numbers")
        return value

    def listed(self, key: str, length: int) -> list[Any] | None:
        """Return a per-layer list cut to `length` layers (a longer tail describes draft layers), or None."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) < length:
            raise UnknownFact(f"{self.name}: {key} must list {length} layers, has {value!r:.60}")
        return value[:length]

    @property
    def model_type(self) -> str:
        """The type the text part names."""
        if "model_type" not in self.raw and {"dim", "n_layers"} <= self.raw.keys():
            return "mixtral" if "moe" in self.raw else "mistral"  # Mistral's own params.json
        return str(self.raw.get("model_type", "nameless"))

    @property
    def layers(self) -> int:
        """Main layers, without draft layers."""
        named = self.get("layers_block_type")
        return self.whole("num_hidden_layers", len(named) if isinstance(named, list) else None)
