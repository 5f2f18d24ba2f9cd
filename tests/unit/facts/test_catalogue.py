import re

import pytest

from stepline.errors import UnknownFact
from stepline.facts.catalogue import find_model, model_ids
from stepline.model.roofline.architecture import parse_config
from stepline.model.roofline.kv_capacity import weight_bytes_per_gpu
from stepline.model.roofline.layout import Layout


@pytest.mark.parametrize(
    ("name", "hub_id"),
    [
        ("deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Flash"),
        ("deepseek-v4-flash", "deepseek-ai/DeepSeek-V4-Flash"),
        ("llama-3.1-8b", "meta-llama/Llama-3.1-8B"),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B"),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-70B"),
        ("gpt-oss-120b", "openai/gpt-oss-120b"),
    ],
)
def test_a_model_is_found_by_the_names_in_use(name: str, hub_id: str) -> None:
    assert find_model(name).hub_id == hub_id


def test_a_newer_version_is_never_taken_for_an_older_one() -> None:
    with pytest.raises(UnknownFact, match=r"deepseek-ai/DeepSeek-V4-Flash.*config\.json"):
        find_model("deepseek-ai/DeepSeek-V4.1-Flash")


def test_every_bundled_model_names_its_source() -> None:
    for hub_id in model_ids():
        model = find_model(hub_id)
        assert hub_id in model.source
        assert model.config


@pytest.mark.parametrize("name", ["nomodel", "", "x" * 200])
def test_a_name_that_is_like_none_gets_three_of_them(name: str) -> None:
    with pytest.raises(UnknownFact) as refused:
        find_model(name)
    assert len(re.findall(r"\S+/\S+", str(refused.value))) == 3


@pytest.mark.parametrize(
    ("name", "hub_id", "method"),
    [
        ("Qwen/Qwen3-8B-FP8", "Qwen/Qwen3-8B", "fp8"),
        ("neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8-dynamic", "meta-llama/Llama-3.1-70B", "fp8"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "meta-llama/Llama-3.1-8B", "gptq"),
        ("Qwen3-30B-A3B-GPTQ-Int4", "Qwen/Qwen3-30B-A3B", "gptq"),
        ("amd/Llama-3.1-405B-Instruct-MXFP4-Preview", "meta-llama/Llama-3.1-405B", "mxfp4"),
        ("nvidia/Qwen3-32B-NVFP4", "Qwen/Qwen3-32B", "modelopt"),
        ("Llama-3.1-8B-w8a8", "meta-llama/Llama-3.1-8B", "compressed-tensors"),
        ("/models/Qwen3-8B-AWQ/", "Qwen/Qwen3-8B", "gptq"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507", "Qwen/Qwen3-235B-A22B", None),
        ("moonshotai/Kimi-K2-Instruct-0905", "moonshotai/Kimi-K2-Instruct", "fp8"),
    ],
)
def test_a_derived_name_finds_its_base_with_the_weights_that_it_names_and_says_so(
    name, hub_id, method
) -> None:
    known = find_model(name)
    assert known.hub_id == hub_id
    assert known.stands_for
    assert hub_id in known.stands_for
    assert (known.config.get("quantization_config") or {}).get("quant_method") == method
    plain = find_model(hub_id)
    assert plain.stands_for is None
    if method and method != (plain.config.get("quantization_config") or {}).get("quant_method"):
        floors = [weight_bytes_per_gpu(parse_config(one.config), Layout()) for one in (known, plain)]
        assert floors[0] < floors[1]


def test_plain_weights_in_a_name_take_the_quantisation_of_the_base_away() -> None:
    assert not find_model("gpt-oss-120b-BF16").config["quantization_config"]


@pytest.mark.parametrize(
    "name", ["unsloth/Llama-3.1-8B-Instruct-GGUF", "Qwen3-8B-Q4_K_M", "Qwen3-8B-4bit", "Qwen3-8B-MLX"]
)
def test_a_format_whose_bytes_the_name_does_not_give_is_refused_with_the_base(name: str) -> None:
    with pytest.raises(UnknownFact, match=r"stored as .*config\.json"):
        find_model(name)


@pytest.mark.parametrize("name", ["deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "Qwen3-9B-FP8", "FP8", "2507"])
def test_another_model_is_never_taken_for_a_base(name: str) -> None:
    with pytest.raises(UnknownFact, match="nearest"):
        find_model(name)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.delenv("HUGGINGFACE_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "models--acme--Own-7B" / "snapshots" / "0123abc"
    folder.mkdir(parents=True)
    return folder / "config.json"


def test_a_local_hub_cache_is_read(hub) -> None:
    hub.write_text('{"model_type": "llama", "hidden_size": 4096}')
    known = find_model("acme/Own-7B")
    assert known.config["hidden_size"] == 4096
    assert known.source == str(hub)


def test_a_path_inside_the_cache_names_its_model() -> None:
    assert find_model("/x/hub/models--Qwen--Qwen3-8B/snapshots/abc").hub_id == "Qwen/Qwen3-8B"


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"a": ' + "[" * 5000])
def test_a_damaged_config_in_the_cache_is_passed_over(hub, content: str) -> None:
    hub.write_text(content)
    with pytest.raises(UnknownFact, match="acme/Own-7B"):
        find_model("acme/Own-7B")


@pytest.mark.parametrize("name", ["../../etc/passwd", "acme/..", "a/b/c"])
def test_a_name_never_leads_out_of_the_cache(hub, name: str) -> None:
    hub.write_text("{}")
    with pytest.raises(UnknownFact):
        find_model(name)
