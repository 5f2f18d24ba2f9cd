import msgspec
import pytest

from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.kernels import COPY, NVJET, SPLITKV, Kernel, running
from tests.rules.server import Stage, check, server
from tests.rules.traces import with_trace

WEIGHTS = Kernel(name=NVJET, busy_ms=2.7)


def _attention(busy_ms: float) -> Kernel:
    return Kernel(name=COPY, busy_ms=busy_ms, owner="attention")


def test_confirmed_when_attention_runs_operator_by_operator_far_above_its_floor():
    answer = check("K404", running(WEIGHTS, _attention(2.3), step_ms=5.4))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert "attention" in answer.headline
    assert any("K401" in out.rival for out in answer.ruled_out)
    assert answer.rivals == ()
    assert answer.gain.low < answer.gain.tok_s < answer.gain.high


def test_suspected_without_a_floor():
    answer = check("K404", running(WEIGHTS, _attention(2.3), step_ms=5.4), gpu=None)
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.rivals
    assert answer.gain is None


def test_suspected_when_a_graph_hides_for_whom_the_framework_works():
    answer = check("K404", running(WEIGHTS, Kernel(name=COPY, busy_ms=1.8), step_ms=4.9))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.rivals


@pytest.mark.parametrize(("busy_ms", "kind"), [(0.8, Clear), (1.0, Fired)])
def test_the_share_of_unowned_framework_kernels_decides(busy_ms, kind):
    assert isinstance(check("K404", running(WEIGHTS, Kernel(name=COPY, busy_ms=busy_ms))), kind)


MUL = COPY.replace("direct_copy", "MulFunctor")


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (Kernel(name=COPY, busy_ms=0.3, per_step=32), Kernel(name=MUL, busy_ms=0.1, per_step=32), Fired),
        (Kernel(name=COPY, busy_ms=0.1, per_step=32), Kernel(name=MUL, busy_ms=0.1, per_step=32), Clear),
        (Kernel(name=COPY, busy_ms=0.3, per_step=2), Kernel(name=MUL, busy_ms=0.1, per_step=2), Clear),
        (Kernel(name=COPY, busy_ms=0.3, per_step=32), Kernel(name=COPY, busy_ms=0.1, per_step=32), Clear),
    ],
)
def test_a_smaller_share_counts_where_several_kinds_run_in_each_of_32_layers(first, second, kind):
    assert isinstance(check("K404", running(WEIGHTS, first, second)), kind)


def test_nearest_rival_a_kernel_launched_for_each_request_is_clear():
    alone = Kernel(name=COPY, busy_ms=1.8, per_step=32 * 16)
    answer = check("K404", running(WEIGHTS, alone, batch=16))
    assert isinstance(answer, Clear)
    assert "K403" in answer.reason


@pytest.mark.parametrize(("busy_ms", "kind"), [(0.25, Clear), (0.35, Fired)])
def test_the_share_of_the_part_decides(busy_ms, kind):
    assert isinstance(check("K404", running(WEIGHTS, _attention(busy_ms), step_ms=3.1)), kind)


def test_fused_kernels_with_some_copies_beside_them_are_clear():
    fused = Kernel(name=SPLITKV, busy_ms=1.0)
    answer = check("K404", running(WEIGHTS, fused, _attention(0.6), step_ms=4.4))
    assert isinstance(answer, Clear)
    assert "of its own" in answer.reason


def test_clear_near_the_floor():
    # 128 sequences of 8,192 tokens read 137 GB of cache: 28.6 ms at least
    run = running(WEIGHTS, _attention(60.0), step_ms=64.0, batch=128, context=8192)
    answer = check("K404", run)
    assert isinstance(answer, Clear)
    assert "gain little" in answer.reason


def test_nearest_rival_work_over_the_configured_context_is_clear():
    shaped = with_trace(server([Stage(running=16, step_ms=14.0)]), batch=16, busy_ms=13.8, context_ms=11.0)
    answer = check("K404", shaped, context_length=1_048_576)
    assert isinstance(answer, Clear)
    assert "K401" in answer.reason


def test_context_shaped_kernels_are_not_counted():
    rows = [
        msgspec.structs.replace(_attention(0.6), context_multiple=2.0),
        Kernel(name=COPY, busy_ms=1.0, context_multiple=2.0),
    ]
    assert isinstance(check("K404", running(WEIGHTS, *rows, step_ms=4.4)), Clear)


def test_clear_on_sound_steps():
    assert isinstance(check("K404", running(WEIGHTS, Kernel(name=SPLITKV, busy_ms=0.3))), Clear)


def test_no_gain_is_claimed_without_an_unprofiled_step():
    assert check("K404", running(WEIGHTS, _attention(2.3))).gain is None
    assert check("K404", running(WEIGHTS, _attention(2.3), step_ms=5.4, measured_at=8)).gain is None


def test_cannot_tell_without_a_trace():
    assert isinstance(check("K404", server([Stage(running=8, step_ms=20.0)])), CannotTell)
