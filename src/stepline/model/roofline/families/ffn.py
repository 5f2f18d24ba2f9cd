"""Feed-forward parts: dense, and mixture of experts with shared experts."""

from stepline.errors import UnknownFact
from stepline.model.roofline.architecture_builder import Builder
from stepline.model.roofline.architecture_config import Config

_UNGATED = frozenset({"gpt2", "gpt_neox", "opt", "phi", "starcoder2", "nemotron", "nemotron_h", "falcon"})
"""Types whose feed-forward has an up and a down matrix and no gate."""
_ABSOLUTE = frozenset(
    {"minimax_m2", "mixtral", "gpt_oss", "phimoe", "llama4_text", "olmoe", "granitemoe", "minimax_m3_vl"}
)
"""Types whose intermediate_size is the expert's size."""
_DENSE_SIZES = ("intermediate_size_mlp", "dense_intermediate_size")
"""Sizes of dense layers where intermediate_size is the experts' (Llama 4, MiniMax-M3)."""
_BIASED_EXPERTS = frozenset({"gpt_oss"})


def matrices_of(config: Config) -> int:
    """Matrices of one feed-forward: 3 with a gate, 2 without."""
    return 2 if config.model_type in _UNGATED else 3


def dense(builder: Builder, intermediate: int | None = None) -> None:
    """Add a dense feed-forward; its size defaults to intermediate_size."""
    config = builder.config
    hidden = config.whole("hidden_size")
    own = next((key for key in _DENSE_SIZES if config.optional(key)), "intermediate_size")
    size = intermediate or config.whole(own, 4 * hidden if config.model_type == "gpt2" else None)
    names = ("gate_proj", "up_proj", "down_proj") if matrices_of(config) == 3 else ("up_proj", "down_proj")
    for name in names:
        builder.linear("dense ffn", f"mlp.{name}", hidden, size, shards=size)


def moe(builder: Builder) -> None:
    """Add a router, routed experts and whatever shared experts the config names."""
    config = builder.config
    hidden, count = config.whole("hidden_size"), config.whole("num_experts")
    top_k = config.whole("num_experts_per_tok")
    if top_k > count:
        raise UnknownFact(f"{config.name}: num_experts_per_tok {top_k} exceeds the {count} experts")
    own = config.optional("moe_intermediate_size")
    if own is None and config.model_type not in _ABSOLUTE:
        raise UnknownFact(
            f"{config.name} lacks the key moe_intermediate_size, which its {count} experts need"
        )
    size = config.whole("moe_intermediate_size") if own else config.whole("intermediate_size")
    builder.matrix("router and small", "mlp.gate", hidden * count)
    latent = config.optional("moe_latent_size") or config.optional("routed_expert_hidden_size")
    if latent:
        # Experts work in a narrower space; every token is projected into it and back.
        builder.matrix("shared expert", "latent projections", 2 * hidden * latent, shards=latent)
    part = "mixer" if config.model_type == "nemotron_h" else "mlp"
    builder.experts(
        "experts" if config.model_type == "gemma4_text" else f"{part}.experts",
        count=count,
        top_k=top_k,
        rows=latent or hidden,
        columns=size,
        matrices=matrices_of(config),
    )
    if config.model_type in _BIASED_EXPERTS:
        builder.matrix("router and small", "attention and router bias", hidden + count, gemm=False)
    shared = shared_size(config, size)
    if shared:
        for name in ("gate_proj", "up_proj", "down_proj")[3 - matrices_of(config) :]:
            builder.linear("shared expert", f"{part}.shared_experts.{name}", hidden, shared, shards=shared)


def shared_size(config: Config, expert_size: int) -> int:
    """Intermediate size of all shared experts together; 0 when there are none."""
    if config.model_type == "llama4_text":
        return expert_size
    absolute = config.get("shared_expert_intermediate_size")
    if absolute is not None:
        return config.whole("shared_expert_intermediate_size", 0)
    return config.whole("n_shared_experts", 0) * expert_size
