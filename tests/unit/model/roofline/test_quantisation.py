from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.errors import UnknownFact
from stepline.facts.catalogue import find_model
from stepline.model.roofline.architecture import parse_config
from stepline.model.roofline.quantisation import Names, parse_quantisation

BF16 = {"torch_dtype": "bfloat16"}


def of(section: dict[str, Any], path: str = "layers.3.mlp.down_proj", **raw: Any) -> tuple[float, str]:
    fmt = parse_quantisation(section, {**BF16, **raw}).of(path)
    return fmt.bits, fmt.math


def group(bits: int, kind: str, size: int | None, *, activations: bool) -> dict[str, Any]:
    weights = {"num_bits": bits, "type": kind, "group_size": size, "symmetric": True}
    inputs = {"num_bits": bits} if activations else None
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {
            "group_0": {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
        },
        "ignore": ["lm_head"],
    }


@pytest.mark.parametrize(
    ("section", "bits", "math"),
    [
        ({"quant_method": "fp8"}, 8.0, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8.002, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"}, 8.0005, "fp8"),
        ({"quant_method": "mxfp4"}, 4.25, "fp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5, "fp4"),
        ({"quantization": {"quant_algo": "FP8"}}, 8.0, "fp8"),
        ({"quantization": {"quant_algo": "W4A16_NVFP4"}}, 4.5, "bf16"),
        (group(4, "int", 32, activations=False), 4.5, "bf16"),
        (group(4, "int", 128, activations=False), 4.125, "bf16"),
        (group(4, "float", 16, activations=True), 4.5, "fp4"),
        (group(4, "float", 32, activations=True), 4.25, "fp4"),
        (group(8, "float", None, activations=True), 8.0, "fp8"),
        (group(8, "int", None, activations=True), 8.0, "int8"),
        (group(8, "int", None, activations=False), 8.0, "bf16"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, 4.156, "bf16"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, 4.125, "bf16"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4.5, "bf16"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8.0, "int8"),
        (
            {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4", "group_size": 32}}},
            4.25,
            "fp4",
        ),
    ],
)
def test_bits_a_weight_count_its_scales(section: dict[str, Any], bits: float, math: str) -> None:
    assert of(section) == (pytest.approx(bits, abs=5e-4), math)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"quant_method": "deepseek_v4_fp9"}, "quant_method 'deepseek_v4_fp9' is not known; nearest"),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP5"},
            "quant_algo 'NVFP5' is not known; nearest: nvfp4",
        ),
        ({"quant_method": "compressed-tensors"}, "lacks the key config_groups"),
        (group(3, "int", 64, activations=False), "weights of type 'int' with 3 bits"),
        ({"quant_method": "awq"}, "lacks the key bits"),
        ({"quant_method": "bitsandbytes"}, "neither load_in_4bit"),
    ],
)
def test_an_unknown_scheme_is_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownFact, match=message):
        parse_quantisation(section, BF16)


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("lm_head", "lm_head", "layers.0.mlp.up_proj"),
        ("model.layers.0.mlp", "layers.0.mlp.up_proj", "layers.10.mlp.up_proj"),
        ("model.layers.*.self_attn", "layers.7.self_attn.q_proj", "layers.7.mlp.up_proj"),
        ("model.layers.1.*", "layers.1.mlp.experts.0.up_proj", "layers.11.mlp.experts.0.up_proj"),
        ("*.mlp.shared_expert*", "layers.3.mlp.shared_experts.up_proj", "layers.3.mlp.experts.0.up_proj"),
        (
            "language_model.model.layers.4.self_attn*",
            "layers.4.self_attn.o_proj",
            "layers.40.self_attn.o_proj",
        ),
        ("re:.*self_attn.*", "layers.2.self_attn.q_proj", "layers.2.mlp.up_proj"),
        (r"re:.*mlp\.(gate|up)_proj.*", "layers.2.mlp.up_proj", "layers.2.mlp.experts.0.up_proj"),
        ("gate", "layers.2.mlp.gate", "layers.2.mlp.gate_proj"),
        ("layers.5.ffn.experts", "layers.5.mlp.experts.3.up_proj", "layers.5.mlp.shared_experts.up_proj"),
    ],
)
def test_names_mean_whole_modules(name: str, inside: str, outside: str) -> None:
    names = Names([name])
    assert inside in names
    assert outside not in names


@given(st.lists(st.sampled_from(["a", "b1", "mlp", "experts", "0", "q_proj"]), min_size=1, max_size=5))
def test_a_module_is_always_in_its_own_name_and_in_every_parent(words: list[str]) -> None:
    path = ".".join(words)
    for end in range(1, len(words) + 1):
        assert path in Names([".".join(words[:end])])


def test_mixed_precision_lists_win_over_the_word_about_all_experts() -> None:
    section = {
        "quantization": {
            "quant_algo": "MIXED_PRECISION",
            "kv_cache_quant_algo": "FP8",
            "quantized_layers": {
                "layers.0.ffn.experts": {"quant_algo": "NVFP4"},
                "layers.0.attn.wq_b": {"quant_algo": "FP8"},
            },
        }
    }
    scheme = parse_quantisation(section, {**BF16, "expert_dtype": "fp4"})
    assert scheme.of("layers.0.mlp.experts.0.up_proj", expert=True).name == "nvfp4"
    assert scheme.of("layers.0.self_attn.wq_b").name == "fp8"
    assert scheme.of("layers.1.self_attn.wq_b").name == "bf16"
    assert scheme.kv_dtype == "fp8"


def test_a_separate_expert_algorithm_leaves_the_rest_in_blocks() -> None:
    config = find_model("DeepSeek-V4-Flash").config
    section = {
        **config["quantization_config"],
        "moe_quant_algo": "NVFP4",
        "ignore": ["*.attn.*", "*.ffn.shared_experts.*", "head"],
    }
    model = parse_config({**config, "quantization_config": section})
    assert {experts.format.name for experts in model.body.experts} == {"nvfp4"}
    attention = {m.format.name for m in model.body.matrices if m.name == "self_attn.wq_b"}
    assert attention == {"fp8 blocks"}


def test_published_exceptions_are_kept() -> None:
    kimi = parse_config(find_model("Kimi-K2.5").config)
    formats = {m.component: m.format.name for m in kimi.body.matrices}
    assert {experts.format.name for experts in kimi.body.experts} == {"int4"}
    assert formats["attention weights"] == formats["shared expert"] == formats["dense ffn"] == "bf16"
    oss = parse_config(find_model("gpt-oss-120b").config)
    assert {m.format.name for m in oss.body.matrices} == {"bf16"}
    assert {experts.format.bits for experts in oss.body.experts} == {4.25}


def test_an_unknown_cache_type_costs_no_weight_its_format():
    section = {"quant_method": "fp8", "kv_cache_scheme": "FP7"}
    found = parse_quantisation(section, {})
    assert found.kv_dtype == "FP7"
    assert found.of("layers.0.mlp.up_proj").name == "fp8"
