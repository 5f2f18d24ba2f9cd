"""A step adds up from its parts, whatever was recorded of it."""

import random

import pytest

from stepline.model.signs.accounting import FIXED, HOST_GAP, PER_REQUEST, accounting, largest_excess
from tests.rules.kernels import COPY, NVJET, SPLITKV, Kernel, running
from tests.rules.server import Stage, picture, server

NAMES = (NVJET, SPLITKV, COPY, "a_kernel_that_nobody_knows", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(int)")


@pytest.mark.parametrize("seed", range(40))
def test_parts_add_up_to_the_step(seed):
    draw = random.Random(seed)  # noqa: S311  # drawn cases, not secrets
    kernels = [
        Kernel(name=name, busy_ms=10 ** draw.uniform(-2, 2))
        for name in draw.sample(NAMES, draw.randint(1, len(NAMES)))
    ]
    busy = sum(kernel.busy_ms for kernel in kernels)
    step_ms = draw.choice([None, busy * draw.uniform(0.95, 3)])
    found = accounting(picture(running(*kernels, step_ms=step_ms), gpu=draw.choice([None, "h200", "a4000"])))
    assert found is not None
    assert sum(part.measured_ms for part in found.parts) == pytest.approx(found.step_ms)
    assert found.step_ms == pytest.approx(busy if step_ms is None else step_ms)
    judged = [part for part in found.parts if part.excess_ms is not None]
    assert all(part.measured_ms - part.typical.ms == part.excess_ms for part in judged)


def test_what_no_kernel_name_explains_has_a_line_and_no_usual_time():
    found = accounting(
        picture(running(Kernel(name=NVJET, busy_ms=4.3), Kernel(name=NAMES[3], busy_ms=9.0), step_ms=14.0))
    )
    lost = found.part("unattributed")
    assert lost.measured_ms == 9.0
    assert lost.excess_ms is None


def test_the_gap_inside_a_trace_alone_is_not_judged():
    found = accounting(picture(running(Kernel(name=NVJET, busy_ms=4.3))))
    assert found.part(HOST_GAP).excess_ms is None


def test_without_a_trace_the_law_has_a_fixed_and_a_per_request_part():
    stages = [Stage(running=n, step_ms=20.0 + 0.05 * n, lines=9) for n in (1, 8, 32, 64)]
    found = accounting(picture(server(stages)))
    assert found.instrument == "step law"
    fixed, growing = found.part(FIXED), found.part(PER_REQUEST)
    assert fixed.measured_ms + growing.measured_ms == pytest.approx(found.step_ms)
    assert fixed.measured_ms == pytest.approx(20.0, rel=0.01)
    assert largest_excess(picture(server(stages))).name == FIXED


def test_drafts_leave_parts_unjudged():
    run = running(Kernel(name=NVJET, busy_ms=9.0), step_ms=9.5, speculative="EAGLE")
    assert all(part.excess_ms is None for part in accounting(picture(run)).parts if part.name != HOST_GAP)
