import json
from pathlib import Path
from typing import Any

import pytest

from stepline.errors import UnknownFact
from stepline.facts.catalogue import find_model, model_ids
from stepline.model.roofline.architecture import parse_config
from stepline.model.roofline.kv_capacity import kv_bytes_per_token

V4_MINI: dict[str, Any] = {
    **find_model("sgl-project/DeepSeek-V4-Flash-FP8").config,
    "num_hidden_layers": 6,
    "compress_ratios": [0, 0, 4, 128, 4, 128, 0],
}
LLAMA = find_model("llama-3.1-8b").config


@pytest.mark.parametrize(
    ("name", "total_b", "active_b", "kv_bytes"),
    [
        ("DeepSeek-V4-Flash", 284.3, 13.27, 3850.25),
        ("DeepSeek-V4-Pro", 1573, 48.9, 5511.4375),
        ("DeepSeek-V3", 671.0, 36.6, 70272),
        ("DeepSeek-V3.2", 671.9, 37.5, 70272 + 61 * 132),
        ("Kimi-K2.5", 1026.4, 31.7, 70272),
        ("GLM-5", 743.9, 40.8, 89856 + 78 * 132),
        ("Qwen3-32B", 32.8, 32.0, 262144),
        ("Qwen3-30B-A3B", 30.5, 3.0, 98304),
        ("Qwen3-235B-A22B", 235.1, 21.6, 192512),
        ("gpt-oss-20b", 20.9, 3.6, 24576),
        ("gpt-oss-120b", 116.8, 5.1, 36864),
        ("Llama-3.1-8B", 8.03, 7.5, 131072),
        ("Llama-3.1-70B", 70.6, 69.5, 327680),
        ("MiniMax-M2.5", 228.7, 10.4, 253952),
        ("Mixtral-8x7B-v0.1", 46.7, 12.8, 131072),
    ],
)
def test_totals_are_the_published_ones(name: str, total_b: float, active_b: float, kv_bytes: float) -> None:
    model = parse_config(find_model(name).config)
    assert model.params / 1e9 == pytest.approx(total_b, rel=0.005)
    assert model.active_params / 1e9 == pytest.approx(active_b, rel=0.02)
    assert kv_bytes_per_token(model) == pytest.approx(kv_bytes, rel=1e-6)


def test_v4_flash_weighs_what_its_checkpoint_weighs() -> None:
    model = parse_config(find_model("DeepSeek-V4-Flash").config)
    assert model.params / 1e9 == pytest.approx(284.3, abs=0.1)
    assert model.active_params / 1e9 == pytest.approx(13.27, abs=0.005)
    assert model.checkpoint_bytes / 1e9 == pytest.approx(159.6, rel=0.005)
    assert kv_bytes_per_token(model, indexer_dtype="fp4") == pytest.approx(3514.25)


def test_a_cut_down_v4_keeps_fp8_experts_and_its_own_ratios() -> None:
    model = parse_config(V4_MINI)
    assert {experts.format.name for experts in model.body.experts} == {"fp8 blocks"}
    layers = {cache.name: cache.layers for cache in model.body.caches}
    assert layers == {"window": 6, "compressed 4": 2, "compressed 128": 2, "index keys": 2}
    assert model.draft is not None
    assert {cache.name for cache in model.draft.caches} == {"window"}


@pytest.mark.shared
def test_captured_configs_are_read(shared: Path) -> None:
    for folder, layers in (("v4_torch_1m", 6), ("healthy", 32)):
        raw = json.loads((shared / "data" / "h200-sglang" / folder / "config.json").read_text())
        assert parse_config(raw).layers == layers


def test_every_bundled_model_is_read() -> None:
    for hub_id in model_ids():
        assert parse_config(find_model(hub_id).config, name=hub_id).params > 1e8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "llamma"}, "model_type 'llamma' is not known .*llama"),
        ({"hidden_size": None}, "lacks the key hidden_size"),
        ({"vocab_size": -1}, "vocab_size is -1"),
        ({"layer_types": ["full_attention"] * 31 + ["rwkv"]}, "layer_types names 'rwkv'"),
        ({"layer_types": ["full_attention"]}, "layer_types must list 32 layers"),
        ({"torch_dtype": "int3"}, "weight type 'int3'"),
        ({"quantization_config": {"quant_method": "fp9"}}, "quant_method 'fp9' is not known; nearest: fp8"),
        ({"layer_types": ["linear_attention"] * 32}, "linear attention"),
    ],
)
def test_what_is_unknown_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownFact, match=message):
        parse_config({**LLAMA, **change})


@pytest.mark.parametrize("key", ["kv_lora_rank", "qk_rope_head_dim", "v_head_dim", "moe_intermediate_size"])
def test_a_latent_model_without_a_key_names_it(key: str) -> None:
    raw = {**find_model("DeepSeek-V3").config}
    del raw[key]
    with pytest.raises(UnknownFact, match=f"lacks the key {key}"):
        parse_config(raw)


def test_an_unknown_compression_is_refused() -> None:
    with pytest.raises(UnknownFact, match="compress_ratios holds 2"):
        parse_config({**V4_MINI, "compress_ratios": [0, 0, 4, 128, 2, 128, 0]})
