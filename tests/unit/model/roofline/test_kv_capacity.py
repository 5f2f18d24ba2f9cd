import pytest

from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.model.roofline.architecture import parse_config
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.kv_capacity import (
    capacity_sequences,
    kv_bytes_per_token,
    sequence_bytes,
    weight_bytes_per_gpu,
)
from stepline.model.roofline.layout import Layout

H200 = find_gpu("h200")
LLAMA_70B = parse_config(find_model("llama-3.1-70b").config)


def test_heads_are_split_until_none_is_left_to_split() -> None:
    whole = kv_bytes_per_token(LLAMA_70B)
    per_gpu = [kv_bytes_per_token(LLAMA_70B, layout=Layout(tp=tp)) for tp in (1, 2, 8, 16)]
    assert per_gpu == [whole, whole / 2, whole / 8, whole / 8]


def test_attention_data_parallelism_keeps_the_cache_whole() -> None:
    layout = Layout(tp=8, dp=8, dp_attention=True)
    assert kv_bytes_per_token(LLAMA_70B, layout=layout) == kv_bytes_per_token(LLAMA_70B)


def test_a_window_bounds_what_a_sequence_keeps() -> None:
    model = parse_config(find_model("gpt-oss-120b").config)
    windows = 18 * 128 * 2 * 8 * 64 * 2
    assert sequence_bytes(model, context_tokens=10_000) == pytest.approx(36864 * 10_000 + windows)


def test_a_published_capacity_is_met() -> None:
    # 1,024 in and 8,192 out: about 84 sequences of 4,608 live tokens fit beside 70 GB of weights.
    raw = {**find_model("llama-3.1-70b").config, "quantization_config": {"quant_method": "fp8"}}
    fits = capacity_sequences(Deployment(parse_config(raw), H200, kv_dtype="fp8"), context_tokens=4608)
    assert fits == pytest.approx(84, abs=1)


def test_fewer_sequences_fit_when_they_are_longer_and_none_without_room() -> None:
    assert capacity_sequences(Deployment(LLAMA_70B, H200, Layout(tp=1)), context_tokens=4096) == 0
    short, long = (
        capacity_sequences(Deployment(LLAMA_70B, H200, Layout(tp=2)), context_tokens=n) for n in (1024, 4096)
    )
    assert short == pytest.approx(4 * long)
    assert long * 4096 * 327680 / 2 == pytest.approx(
        143771 * 2**20 * 0.9 - weight_bytes_per_gpu(LLAMA_70B, Layout(tp=2))
    )
