"""Attention of constant state: gated delta networks, Kimi delta attention and Mamba-2.

The state of a sequence is read and written in every step, whatever the context.
"""

from stepline.errors import UnknownFact
from stepline.model.roofline.architecture_builder import Builder
from stepline.model.roofline.architecture_parts import Component, State

_STATE_BYTES = {"float32": 4, "fp32": 4, "float": 4, "bfloat16": 2, "float16": 2, "auto": 4}


def gated_delta(builder: Builder) -> None:
    """Add one gated delta layer (Qwen3-Next and Qwen3.5: transformers models/qwen3_next, 4.57)."""
    config = builder.config
    hidden = config.whole("hidden_size")
    key_heads, value_heads = config.whole("linear_num_key_heads"), config.whole("linear_num_value_heads")
    key_dim, value_dim = config.whole("linear_key_head_dim"), config.whole("linear_value_head_dim")
    keys, values = key_heads * key_dim, value_heads * value_dim
    part: Component = "attention weights"
    builder.linear(part, "linear_attn.in_proj_qkv", hidden, 2 * keys + values, shards=key_heads)
    builder.linear(part, "linear_attn.in_proj_z", hidden, values, shards=value_heads)
    builder.matrix(part, "linear_attn.in_proj_ba", 2 * hidden * value_heads, shards=value_heads)
    builder.linear(part, "linear_attn.out_proj", values, hidden, shards=value_heads)
    convolution = config.whole("linear_conv_kernel_dim", 4) * (2 * keys + values)
    builder.matrix("router and small", "linear_attn.conv1d", convolution, gemm=False)
    _state(builder, "gated delta", heads=value_heads, size=key_dim * value_dim, key="mamba_ssm_dtype")


def kimi_delta(builder: Builder) -> None:
    """Add one Kimi delta layer (arXiv:2510.26692): per-channel decay, short convolutions, output gate."""
    config = builder.config
    settings = config.section("linear_attn_config")
    if settings is None:
        raise UnknownFact(f"{config.name} lacks the key linear_attn_config")
    hidden, heads, dim = config.whole("hidden_size"), settings.whole("num_heads"), settings.whole("head_dim")
    width = heads * dim
    part: Component = "attention weights"
    for name in ("q_proj", "k_proj", "v_proj"):
        builder.linear(part, f"self_attn.{name}", hidden, width, shards=heads)
    builder.linear(part, "self_attn.o_proj", width, hidden, shards=heads)
    builder.matrix(part, "self_attn.f_a_proj", hidden * dim)
    builder.matrix(part, "self_attn.f_b_proj", dim * width, shards=heads)
    if settings.get("use_full_rank_gate"):
        builder.linear(part, "self_attn.g_proj", hidden, width, shards=heads)
    else:
        builder.matrix(part, "self_attn.g_a_proj", hidden * dim)
        builder.matrix(part, "self_attn.g_b_proj", dim * width, shards=heads)
    builder.matrix(part, "self_attn.b_proj", hidden * heads, shards=heads)
    convolution = 3 * width * settings.whole("short_conv_kernel_size", 4)
    builder.matrix("router and small", "self_attn.conv1d", convolution, gemm=False)
    _state(builder, "Kimi delta", heads=heads, size=dim * dim, key="mamba_ssm_dtype")


def mamba2(builder: Builder) -> None:
    """Add one Mamba-2 mixer (arXiv:2405.21060; transformers models/nemotron_h)."""
    config = builder.config
    hidden, heads = config.whole("hidden_size"), config.whole("mamba_num_heads")
    dim, state = config.whole("mamba_head_dim"), config.whole("ssm_state_size")
    groups = config.whole("n_groups")
    inner, mixed = heads * dim, 2 * groups * state
    part: Component = "attention weights"
    builder.linear(part, "mixer.in_proj", hidden, 2 * inner + mixed + heads, shards=heads)
    builder.linear(part, "mixer.out_proj", inner, hidden, shards=heads)
    convolution = (config.whole("conv_kernel", 4) + 1) * (inner + mixed)
    builder.matrix("router and small", "mixer.conv1d", convolution, gemm=False)
    _state(builder, "Mamba-2", heads=heads, size=dim * state, key="mamba_ssm_cache_dtype")


def _state(builder: Builder, name: str, *, heads: int, size: int, key: str) -> None:
    """Add a state of `heads` matrices of `size` numbers; updating and reading take 2 FLOPs a number each."""
    dtype = str(builder.config.get(key, "float32")).removeprefix("torch.")
    if dtype not in _STATE_BYTES:
        raise UnknownFact(
            f"{builder.config.name}: {key} {dtype!r} is not known; known: {', '.join(_STATE_BYTES)}"
        )
    resident = heads * size * _STATE_BYTES[dtype]
    builder.state(
        State(
            name=name,
            resident_bytes=resident,
            step_bytes=2 * resident,
            flops=4 * heads * size,
            shards=heads,
        )
    )
