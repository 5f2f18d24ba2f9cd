import itertools
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stepline.evidence.calibration import ENGINE_ATTENTION, STACK_PARTS
from stepline.lab.calibrate.bulk import streams
from stepline.lab.calibrate.plan import L2_ROTATION, PRODUCTS, ROWS, remark, repeats, rotation
from stepline.lab.calibrate.small import attention, kernels, stack
from stepline.model.roofline.calibration_lines import ARGMAX, SMALL_KERNELS

H200_L2_BYTES = 60 << 20


@given(st.integers(1, 1 << 33), st.integers(1, 1 << 31), st.integers(1, 1 << 27), st.integers(1, 400))
def test_buffers_lie_apart_inside_the_pool_and_outrun_the_cache(
    total: int, each: int, l2: int, most: int
) -> None:
    offsets = rotation(total, each, l2, most=most)
    assert len(offsets) <= most
    assert all(second - first >= each for first, second in itertools.pairwise(offsets))
    assert all(at % 256 == 0 and at + each <= total for at in offsets)
    if offsets:
        assert offsets[-1] + each > L2_ROTATION * l2 - 256


def test_every_product_rotates_in_a_pool_of_2_gib_on_an_h200() -> None:
    for product in PRODUCTS:
        for size in (1, 2):
            pool_bytes = size << 31
            assert len(rotation(pool_bytes, product.n * product.k * size, H200_L2_BYTES)) >= 4, product


def test_a_short_graph_is_replayed_until_the_sample_is_long() -> None:
    assert repeats(0.01, wanted_ms=4.0) == 400
    assert repeats(50.0, wanted_ms=4.0) == 1
    assert repeats(0.0, wanted_ms=4.0) == 4000


def test_a_remark_is_one_bounded_line() -> None:
    assert remark(RuntimeError("CUDA error: out of memory\nfor debugging")) == (
        "RuntimeError: CUDA error: out of memory"
    )
    assert remark(ValueError()) == "ValueError"
    assert len(remark(ValueError("x" * 1000))) == 200


def test_what_the_typical_step_asks_for_is_measured_at_every_batch() -> None:
    pool: Any = SimpleNamespace(bytes=4 << 30)
    plans = [*streams(pool), *kernels(pool), *attention(pool, ENGINE_ATTENTION.upper()), *stack(pool)]
    for rows in ROWS:
        here = [plan for plan in plans if plan.shape["rows"] == rows]
        whole = next(plan for plan in here if plan.group == "stack")
        for group, name, _ in STACK_PARTS:
            same = [plan for plan in here if (plan.group, plan.name) == (group, name)]
            assert any(plan.shape.get("tokens", 512) == whole.shape["tokens"] for plan in same), (name, rows)
        assert {*SMALL_KERNELS, ARGMAX} <= {plan.name for plan in here if plan.group == "kernel"}
