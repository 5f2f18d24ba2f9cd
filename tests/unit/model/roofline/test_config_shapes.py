"""Config shapes by many makers: totals as published, or refused by the key that is not understood.

Shapes are written from the published config keys; totals are the parameter counts of the published
checkpoints (hub metadata) or the model cards; bundled models are checked in test_architecture too.
"""

from typing import Any

import pytest

from stepline.errors import UnknownFact
from stepline.facts.catalogue import find_model
from stepline.model.roofline.architecture import parse_config
from stepline.model.roofline.kv_capacity import sequence_bytes


def shape(kind: str, sizes: tuple[int, int, int, int, int, int], **more: Any) -> dict[str, Any]:
    """A config of hidden, layers, heads, KV heads, intermediate and vocabulary size."""
    hidden, layers, heads, kv_heads, intermediate, vocab = sizes
    return {
        "model_type": kind,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": intermediate,
        "vocab_size": vocab,
        "tie_word_embeddings": False,
        **more,
    }


TIED = {"tie_word_embeddings": True}
SHAPES: list[tuple[str, dict[str, Any], float]] = [
    ("Llama-3.2-1B", shape("llama", (2048, 16, 32, 8, 8192, 128256), **TIED), 1.2358e9),
    ("Llama-3.2-3B", shape("llama", (3072, 28, 24, 8, 8192, 128256), head_dim=128, **TIED), 3.2127e9),
    ("TinyLlama-1.1B", shape("llama", (2048, 22, 32, 4, 5632, 32000)), 1.1000e9),
    ("Yi-34B", shape("llama", (7168, 60, 56, 8, 20480, 64000)), 34.389e9),
    ("SmolLM2-1.7B", shape("llama", (2048, 24, 32, 32, 8192, 49152), **TIED), 1.7114e9),
    ("Mistral-7B-v0.1", shape("mistral", (4096, 32, 32, 8, 14336, 32000), sliding_window=4096), 7.2417e9),
    (
        "Mistral-7B params.json",
        {
            "dim": 4096,
            "n_layers": 32,
            "n_heads": 32,
            "n_kv_heads": 8,
            "head_dim": 128,
            "hidden_dim": 14336,
            "vocab_size": 32000,
        },
        7.2417e9,
    ),
    ("Qwen2.5-0.5B", shape("qwen2", (896, 24, 14, 2, 4864, 151936), **TIED), 0.49403e9),
    (
        "Qwen2.5-7B",
        shape("qwen2", (3584, 28, 28, 4, 18944, 152064), sliding_window=131072, use_sliding_window=False),
        7.6156e9,
    ),
    ("Qwen2.5-72B", shape("qwen2", (8192, 80, 64, 8, 29568, 152064)), 72.706e9),
    ("Qwen3-4B", shape("qwen3", (2560, 36, 32, 8, 9728, 151936), head_dim=128, **TIED), 4.0225e9),
    ("Qwen3-14B", shape("qwen3", (5120, 40, 40, 8, 17408, 151936), head_dim=128), 14.768e9),
    (
        "Qwen1.5-MoE-A2.7B",
        shape(
            "qwen2_moe",
            (2048, 24, 16, 16, 5632, 151936),
            num_experts=60,
            num_experts_per_tok=4,
            moe_intermediate_size=1408,
            shared_expert_intermediate_size=5632,
            decoder_sparse_step=1,
        ),
        14.316e9,
    ),
    ("Phi-3-mini", shape("phi3", (3072, 32, 32, 32, 8192, 32064), sliding_window=2047), 3.8211e9),
    (
        "Phi-3.5-MoE",
        shape("phimoe", (4096, 32, 32, 8, 6400, 32064), num_local_experts=16, num_experts_per_tok=2),
        41.873e9,
    ),
    (
        "gemma-2-2b",
        shape("gemma2", (2304, 26, 8, 4, 9216, 256000), head_dim=256, sliding_window=4096, **TIED),
        2.6143e9,
    ),
    (
        "gemma-2-9b",
        shape("gemma2", (3584, 42, 16, 8, 14336, 256000), head_dim=256, sliding_window=4096, **TIED),
        9.2417e9,
    ),
    (
        "gemma-2-27b",
        shape("gemma2", (4608, 46, 32, 16, 36864, 256000), head_dim=128, sliding_window=4096, **TIED),
        27.227e9,
    ),
    (
        "OLMoE-1B-7B",
        shape("olmoe", (2048, 16, 16, 16, 1024, 50304), num_experts=64, num_experts_per_tok=8),
        6.9192e9,
    ),
    ("OLMo-2-7B", shape("olmo2", (4096, 32, 32, 32, 11008, 100352)), 7.2986e9),
    (
        "starcoder2-7b",
        shape("starcoder2", (4608, 32, 36, 4, 18432, 49152), sliding_window=4096, **TIED),
        7.1739e9,
    ),
    ("SmolLM3-3B", shape("smollm3", (2048, 36, 16, 4, 11008, 128256), **TIED), 3.0751e9),
    (
        "gpt2",
        {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257},
        0.12365e9,
    ),
    (
        "DeepSeek-V2-Lite",
        shape(
            "deepseek_v2",
            (2048, 27, 16, 16, 10944, 102400),
            kv_lora_rank=512,
            q_lora_rank=None,
            qk_rope_head_dim=64,
            qk_nope_head_dim=128,
            v_head_dim=128,
            n_routed_experts=64,
            n_shared_experts=2,
            num_experts_per_tok=6,
            moe_intermediate_size=1408,
            first_k_dense_replace=1,
        ),
        15.706e9,
    ),
    (
        "DeepSeek-V2",
        shape(
            "deepseek_v2",
            (5120, 60, 128, 128, 12288, 102400),
            kv_lora_rank=512,
            q_lora_rank=1536,
            qk_rope_head_dim=64,
            qk_nope_head_dim=128,
            v_head_dim=128,
            n_routed_experts=160,
            n_shared_experts=2,
            num_experts_per_tok=6,
            moe_intermediate_size=1536,
            first_k_dense_replace=1,
        ),
        235.74e9,
    ),
    (
        "GLM-4.5-Air",
        shape(
            "glm4_moe",
            (4096, 46, 96, 8, 10944, 151552),
            head_dim=128,
            attention_bias=True,
            n_routed_experts=128,
            n_shared_experts=1,
            num_experts_per_tok=8,
            moe_intermediate_size=1408,
            first_k_dense_replace=1,
        ),
        106.85e9,
    ),
]


@pytest.mark.parametrize(("name", "raw", "params"), SHAPES, ids=[shape[0] for shape in SHAPES])
def test_totals_are_the_published_ones(name: str, raw: dict[str, Any], params: float) -> None:
    assert parse_config(raw, name=name).params == pytest.approx(params, rel=0.005)


@pytest.mark.parametrize(
    ("name", "total_b", "active_b"),
    [
        ("Qwen3.5-397B-A17B", 396.3, 16.3),
        ("Qwen3.5-27B", 26.9, 25.6),
        ("Llama-3.1-405B", 405.9, 403.7),
        ("gemma-4-26B-A4B", 25.2, 3.8),
        ("Llama-4-Scout-17B-16E-Instruct", 107.8, 16.1),
        ("Llama-4-Maverick-17B-128E-Instruct", 400.7, 16.2),
        ("MiMo-V2-Flash", 309, 14.8),
        ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31.6, 3.23),
        ("NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 120.6, 12.2),
        ("Kimi-K2-Instruct", 1026.4, 31.7),
        ("Step-3.7-Flash", 196, 10.3),
        ("Qwen3-Coder-480B-A35B-Instruct", 480.2, 34.5),
    ],
)
def test_hybrid_models_come_out_as_published(name: str, total_b: float, active_b: float) -> None:
    model = parse_config(find_model(name).config)
    assert model.params / 1e9 == pytest.approx(total_b, rel=0.005)
    assert model.active_params / 1e9 == pytest.approx(active_b, rel=0.02)


def test_states_have_the_published_sizes() -> None:
    for name, state_mb, layers in (("Qwen3.5-397B-A17B", 188.7, 45), ("Qwen3.5-27B", 151, 48)):
        model = parse_config(find_model(name).config)
        assert [state.layers for state in model.body.states] == [layers]
        assert sequence_bytes(model, context_tokens=0) / 1e6 == pytest.approx(state_mb, rel=0.002)
        # Every step reads and writes it.
        assert model.body.states[0].step_bytes == 2 * model.body.states[0].resident_bytes


def test_windows_bound_only_their_own_layers() -> None:
    model = parse_config(find_model("gpt-oss-120b").config)
    assert {cache.name: (cache.layers, cache.read_cap) for cache in model.body.caches} == {
        "sliding window": (18, 128),
        "full attention": (18, None),
    }
    unused = parse_config(next(raw for name, raw, _ in SHAPES if name == "Qwen2.5-7B"))
    assert {cache.name for cache in unused.body.caches} == {"full attention"}


def test_a_shared_indexer_is_read_by_its_own_layers_only() -> None:
    glm = parse_config(find_model("GLM-5.2").config)
    (keys,) = (cache for cache in glm.body.caches if cache.component == "indexer")
    assert keys.layers == find_model("GLM-5.2").config["indexer_types"].count("full")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("Kimi-K3", {"linear_attn_config": {"full_attn_layers": [4]}}, "linear_attn_config"),
        ("Qwen3.5-27B", {"linear_num_key_heads": None}, "linear_num_key_heads"),
        ("Qwen3.5-27B", {"mamba_ssm_dtype": "int4"}, "mamba_ssm_dtype 'int4'"),
        ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", {"hybrid_override_pattern": "MX"}, "hybrid_override_pattern"),
        ("gpt-oss-20b", {"num_experts_per_tok": 99, "experts_per_token": 99}, "exceeds the 32 experts"),
        ("gemma-4-26B-A4B", {"num_kv_shared_layers": 4}, "num_kv_shared_layers"),
        ("DeepSeek-V3.2", {"q_lora_rank": None}, "lacks q_lora_rank"),
    ],
)
def test_what_is_not_understood_is_named(name: str, change: dict[str, Any], message: str) -> None:
    config = dict(find_model(name).config)
    if "text_config" in config:
        config["text_config"] = {**config["text_config"], **change}
    with pytest.raises(UnknownFact, match=message):
        parse_config({**config, **change})
