"""C500: collectives take longer than usual, and no rule knows why."""

import pytest

from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.kernels import NVJET, SPLITKV, Kernel, running
from tests.rules.server import check

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def _running(exchange_ms: float):
    kernels = (
        Kernel(name=NVJET, busy_ms=2.3),
        Kernel(name=SPLITKV, busy_ms=0.2),
        Kernel(name=ALL_REDUCE, busy_ms=exchange_ms, per_step=64.0),
    )
    return running(*kernels, step_ms=2.6 + exchange_ms, tp=2)


@pytest.mark.parametrize(("exchange_ms", "kind"), [(0.5, Clear), (2.5, Fired)])
def test_the_upper_end_of_the_usual_time_decides(exchange_ms, kind):
    answer = check("C500", _running(exchange_ms))
    assert isinstance(answer, kind)
    if isinstance(answer, Fired):
        assert answer.headline.startswith("communication takes")
        assert {rival.rival[:4] for rival in answer.rivals} == {"C501", "C502"}


def test_cannot_tell_without_a_known_gpu():
    assert isinstance(check("C500", _running(2.5), gpu=None), CannotTell)
