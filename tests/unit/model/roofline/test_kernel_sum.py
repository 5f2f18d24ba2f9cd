import msgspec
import pytest

from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.model.roofline.architecture import parse_config
from stepline.model.roofline.calibration_lines import Rates
from stepline.model.roofline.decode_floor import decode_floor
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.kernel_sum import calibrated_step_ms, products, why_not
from stepline.model.roofline.layout import Layout
from stepline.model.roofline.typical import typical_step
from tests.unit.model.roofline.calibrations import (
    ALL_REDUCE_MS,
    ARGMAX_MS,
    ATTENTION_BYTES_S,
    ATTENTION_START_MS,
    BYTES_S,
    FOLLOWING_MS,
    PEAK,
    SMALL_MS,
    START_MS,
    calibration,
)

LLAMA = parse_config(find_model("llama-3.1-8b").config)
LLAMA_70B = parse_config(find_model("llama-3.1-70b").config)
H200 = find_gpu("h200")
RATES = Rates(calibration())


def step(batch: float, context: float = 512, layout: Layout | None = None) -> float:
    return calibrated_step_ms(
        Deployment(LLAMA, H200, layout or Layout()), RATES, batch=batch, context_tokens=context
    )


def test_lines_and_batches_are_read_back() -> None:
    assert RATES.product_ms("bf16", 1, 200e6, 0) == pytest.approx(START_MS + 200e6 / BYTES_S["bf16"] * 1e3)
    assert RATES.product_ms("fp8", 8, 200e6, 0) == pytest.approx(START_MS + 200e6 / BYTES_S["fp8"] * 1e3)
    halfway = RATES.product_ms("bf16", 36, 200e6, 0)
    assert halfway == pytest.approx(1.5 * START_MS + 200e6 / BYTES_S["bf16"] * 1e3)
    assert RATES.attention_ms(8, 50e6) == pytest.approx(ATTENTION_START_MS + 50e6 / ATTENTION_BYTES_S * 1e3)
    assert RATES.following_ms(8) == pytest.approx(FOLLOWING_MS)
    assert RATES.all_reduce_ms(4, 1e5) == pytest.approx(ALL_REDUCE_MS[4])
    assert RATES.all_reduce_ms(8, 1e5) is None


def test_beyond_the_measured_batches_the_tensor_cores_bind() -> None:
    flops = 2 * 100e6 * 4096
    assert RATES.product_ms("bf16", 4096, 200e6, flops) == pytest.approx(flops / PEAK["bf16"] * 1e3)


def test_a_dense_layer_is_four_products_an_attention_and_six_small_kernels() -> None:
    by_weight = {round(p.weight_bytes): (p.layers, p.dtype) for p in products(LLAMA, Layout(), 1)}
    assert by_weight == {
        2 * 6144 * 4096: (32, "bf16"),
        2 * 4096 * 4096: (32, "bf16"),
        2 * 2 * 14336 * 4096: (32, "bf16"),
        2 * 14336 * 4096: (32, "bf16"),
        2 * 128256 * 4096: (1, "bf16"),
    }
    weights = sum(size * layers for size, (layers, _) in by_weight.items())
    cache = 512 * 131072
    expected = (
        129 * START_MS
        + weights / BYTES_S["bf16"] * 1e3
        + 32 * ATTENTION_START_MS
        + cache / ATTENTION_BYTES_S * 1e3
        + 193 * SMALL_MS
        + 5 * ARGMAX_MS
        + (129 + 32 + 193 + 5) * FOLLOWING_MS
    )
    assert step(1) == pytest.approx(expected, rel=1e-6)


def test_the_sum_grows_with_batch_and_context_and_stays_above_the_floor() -> None:
    for batch in (1.0, 8.0, 24.0, 64.0, 512.0):
        floor = decode_floor(Deployment(LLAMA, H200), batch=batch, context_tokens=512).total_ms
        assert floor < step(batch) <= step(batch + 1)
        assert step(batch, 512) < step(batch, 4096)


def test_gpus_share_the_bytes_and_pay_for_two_exchanges_a_layer() -> None:
    kernels = 129 * START_MS + 32 * ATTENTION_START_MS + 193 * SMALL_MS + 5 * ARGMAX_MS + 359 * FOLLOWING_MS
    one, two = step(1), step(1, layout=Layout(tp=2))
    assert two == pytest.approx(kernels + (one - kernels) / 2 + 64 * ALL_REDUCE_MS[2], rel=1e-6)
    published = calibrated_step_ms(
        Deployment(LLAMA_70B, H200, Layout(tp=8)), RATES, batch=1, context_tokens=512
    ) - calibrated_step_ms(
        Deployment(LLAMA_70B, H200, Layout(tp=8)),
        Rates(calibration(without=("allreduce",))),
        batch=1,
        context_tokens=512,
    )
    assert published == 0, "eight were not measured, so the published latency stands in for both"


@pytest.mark.parametrize(
    ("model", "reason"),
    [("qwen3-30b-a3b", "experts"), ("deepseek-r1", "experts"), ("qwen3.5-27b", "linear attention")],
)
def test_what_was_not_measured_is_not_summed(model: str, reason: str) -> None:
    architecture = parse_config(find_model(model).config)
    assert reason in (why_not(Deployment(architecture, H200), RATES) or "")
    typical = typical_step(
        Deployment(architecture, H200), batch=1, context_tokens=512, calibration=calibration()
    )
    assert typical is not None
    assert "public rows" in typical.source
    assert reason in typical.source


def test_an_incomplete_calibration_or_an_unknown_exchange_is_not_used() -> None:
    assert "attention" in (why_not(Deployment(LLAMA, H200), Rates(calibration(without=("attention",)))) or "")
    assert "layers" in (why_not(Deployment(LLAMA, H200), Rates(calibration(without=("stack",)))) or "")
    awq = parse_config(
        {
            **find_model("llama-3.1-8b").config,
            "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128},
        }
    )
    assert "quantisation" in (why_not(Deployment(awq, H200), RATES) or "")
    a4000 = find_gpu("rtx a4000")
    assert "all-reduce" in (why_not(Deployment(LLAMA, a4000, Layout(tp=2)), RATES) or "")
    spread = Layout(tp=8, dp=8, dp_attention=True)
    assert "data parallelism" in (why_not(Deployment(LLAMA, H200, spread), RATES) or "")


def test_layers_that_take_less_than_their_kernels_cost_nothing_more() -> None:
    whole = calibration()
    quick = tuple(
        msgspec.structs.replace(each, ms=0.01) if each.group == "stack" else each for each in whole.measured
    )
    assert Rates(msgspec.structs.replace(whole, measured=quick)).following_ms(1) == 0


def test_sizes_that_a_line_cannot_start_below_nothing() -> None:
    whole = calibration()
    faster = tuple(
        msgspec.structs.replace(each, ms=each.bytes / 4e12 * 1e3 * (0.9 if each.bytes < 60e6 else 1.0))
        if each.group == "stream"
        else each
        for each in whole.measured
    )
    rates = Rates(msgspec.structs.replace(whole, measured=faster))
    assert rates.product_ms("bf16", 1, 1.0, 0) == pytest.approx(0, abs=1e-6)


def test_a_calibration_counts_on_its_own_gpu_only() -> None:
    mine = calibration("NVIDIA A10")
    a10 = find_gpu("a10")
    here = typical_step(Deployment(LLAMA, a10), batch=1, context_tokens=512, calibration=mine)
    assert here is not None
    assert "NVIDIA A10" in here.source
    there = typical_step(Deployment(LLAMA, find_gpu("l4")), batch=1, context_tokens=512, calibration=mine)
    assert there is None
