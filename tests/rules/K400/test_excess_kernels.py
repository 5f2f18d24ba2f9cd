"""K400: a part on the GPU takes longer than usual, and no rule knows why."""

import pytest

from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.kernels import COPY, NVJET, SPLITKV, Kernel, running
from tests.rules.server import Stage, check, diagnosed, server

USUAL = (Kernel(name=NVJET, busy_ms=4.3), Kernel(name=SPLITKV, busy_ms=0.2))


def _with(*kernels: Kernel, **options: object):
    busy = sum(kernel.busy_ms for kernel in kernels)
    return running(*kernels, step_ms=busy + 0.1, **options)


def test_a_usual_step_is_clear():
    answer = check("K400", _with(*USUAL))
    assert isinstance(answer, Clear)
    assert "typical" in answer.reason


def test_it_names_the_part_its_kernels_and_what_decides():
    answer = check("K400", _with(USUAL[0], Kernel(name=SPLITKV, busy_ms=6.0, grid=(4, 1, 8))))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.headline.startswith("attention takes")
    assert any("4×1×8 = 32 blocks" in line.text for line in answer.evidence)
    assert len(answer.rivals) == 2
    assert answer.gain is not None
    assert answer.gain.low < answer.gain.tok_s < answer.gain.high


@pytest.mark.parametrize(("busy_ms", "kind"), [(5.3, Clear), (6.6, Fired)])
def test_the_upper_end_of_the_usual_time_decides(busy_ms, kind):
    """Products of an 8B model are usual up to 5.4 ms on an H200."""
    assert isinstance(check("K400", _with(Kernel(name=NVJET, busy_ms=busy_ms), USUAL[1])), kind)


def test_many_small_kernels_of_a_part_are_said():
    copies = Kernel(name=COPY, busy_ms=9.0, per_step=1000.0, grid=(2, 1, 1))
    answer = check("K400", _with(*USUAL, copies, batch=2))
    assert isinstance(answer, Fired)
    assert any("tiny grids" in line.text for line in answer.evidence)


def test_a_specific_finding_takes_its_place():
    wide = "void sgemm_largek_lds64<true, false, 6, 3, 4, 5, 2, 66>(float*, float const*)"
    run = _with(Kernel(name=wide, busy_ms=20.0), USUAL[1])
    assert isinstance(check("K400", run), Fired)
    codes = [finding.code for finding in diagnosed(run).findings]
    assert codes[0] == "K405"
    assert "K400" not in codes


def test_cannot_tell_without_a_trace_a_model_or_a_known_gpu():
    assert isinstance(check("K400", server([Stage(running=4, step_ms=20.0)])), CannotTell)
    assert isinstance(check("K400", _with(*USUAL), gpu=None), CannotTell)
    assert isinstance(check("K400", _with(*USUAL), gpu="a4000"), CannotTell)
