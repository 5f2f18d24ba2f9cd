import pytest

from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.model.roofline.architecture import parse_config
from stepline.model.roofline.decode_floor import decode_floor
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.layout import Layout
from stepline.model.roofline.typical import typical_step

LLAMA = parse_config(find_model("llama-3.1-8b").config)
H200 = find_gpu("h200")


@pytest.mark.parametrize(("batch", "measured_ms"), [(1, 4.92), (8, 5.08), (32, 5.71), (64, 6.57)])
def test_a_healthy_server_is_typical(batch: int, measured_ms: float) -> None:
    # Decode windows of SGLang 0.5.16; this server took no part in the calibration.
    typical = typical_step(Deployment(LLAMA, H200), batch=batch, context_tokens=320)
    assert typical is not None
    assert typical.ms == pytest.approx(measured_ms, rel=0.10)
    assert typical.low_ms < measured_ms < typical.high_ms


def test_typical_lies_above_the_floor_it_is_made_of() -> None:
    for name, gpu, tp in (
        ("DeepSeek-R1", "b200", 8),
        ("gpt-oss-120b", "h100", 2),
        ("llama-3.1-70b", "gb200", 4),
    ):
        model = parse_config(find_model(name).config)
        for batch in (1, 64):
            where = {"batch": batch, "context_tokens": 4096.0}
            typical = typical_step(Deployment(model, find_gpu(gpu), Layout(tp=tp)), **where)
            floor = decode_floor(Deployment(model, find_gpu(gpu), Layout(tp=tp)), **where, routing="expected")
            assert typical is not None
            assert typical.ms > floor.total_ms


def test_prefill_beside_decode_comes_on_top() -> None:
    alone = typical_step(Deployment(LLAMA, H200), batch=64, context_tokens=320)
    beside = typical_step(
        Deployment(LLAMA, H200), batch=64, context_tokens=320, prefill_tokens=128, prefill_sequences=0.5
    )
    assert alone is not None
    assert beside is not None
    assert beside.ms > alone.ms + 0.3


def test_a_class_nobody_calibrated_has_no_typical_step() -> None:
    assert typical_step(Deployment(LLAMA, find_gpu("rtx-pro-6000")), batch=1, context_tokens=320) is None
