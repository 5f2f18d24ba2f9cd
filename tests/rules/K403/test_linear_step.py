import msgspec
import pytest

from stepline.evidence.load import LeverTrial, LoadLevel
from stepline.evidence.origin import Origin
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.kernels import COPY, NVJET, Kernel, running
from tests.rules.server import Stage, check, diagnosed, server

LINEAR = [Stage(running=n, step_ms=2.1 + 0.72 * n) for n in (1, 8, 16, 32)]


def test_suspected_on_a_line_beyond_the_floor():
    answer = check("K403", server(LINEAR, context_length=1024))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.gain is not None
    assert any("H301" in ruled.rival for ruled in answer.ruled_out)
    assert "so no batch exceeds 1,389 tok/s" in [line.text for line in answer.evidence]  # 1 / 0.72 ms


def test_no_ceiling_is_named_where_the_line_may_as_well_be_flat():
    """Three batches far off any straight line leave its slope open."""
    swinging = [Stage(running=n, step_ms=t) for n, t in ((1, 4.0), (16, 24.0), (32, 24.0))]
    answer = check("K403", server(swinging, context_length=1024))
    assert isinstance(answer, Fired)
    assert not any("no batch exceeds" in line.text for line in answer.evidence)


def test_fires_without_a_floor_when_no_memory_could_hold_the_bytes():
    steps = [Stage(running=n, step_ms=40 + 31 * n) for n in (1, 8, 16)]
    answer = check("K403", server(steps, model=None), gpu=None)
    assert isinstance(answer, Fired)
    assert any("KV reads" in ruled.rival for ruled in answer.ruled_out)


def test_cannot_tell_without_a_floor_while_bytes_could_explain_it():
    assert isinstance(check("K403", server(LINEAR, model=None), gpu=None), CannotTell)


def test_cannot_tell_from_times_per_token_which_hold_others_prompts_too():
    levels = [
        LoadLevel(origin=Origin("sweep.csv"), concurrency=n, running=n, tpot_ms=2.1 + 0.72 * n)
        for n in (1, 8, 32)
    ]
    answer = check("K403", server([], levels=levels, context_length=1024))
    assert isinstance(answer, CannotTell)
    assert "free of prefill" in answer.needs


def test_nearest_rival_context_capacity_leaves_it_open():
    answer = check("K403", server(LINEAR, context_length=1_048_576))
    assert isinstance(answer, CannotTell)


def test_clear_on_a_healthy_step():
    healthy = [Stage(running=n, step_ms=t) for n, t in ((1, 4.92), (8, 5.08), (32, 5.71), (64, 6.57))]
    assert isinstance(check("K403", server(healthy, context_length=1024)), Clear)


def test_a_lever_pulled_in_vain_is_cited():
    run = server(LINEAR, context_length=1024)
    lever = LeverTrial(origin=Origin("levers.csv", 2), lever="moe marlin", running=16, before=30, after=30)
    answer = check("K403", msgspec.structs.replace(run, levers=(lever,)))
    assert isinstance(answer, Fired)
    assert any("marlin" in ruled.by for ruled in answer.ruled_out)


def test_no_finding_under_a_tenth_of_the_load():
    diagnosis = diagnosed(
        server([Stage(running=n, step_ms=5 + 0.02 * n) for n in (1, 8, 32)], context_length=1024)
    )
    assert diagnosis.findings == ()


WEIGHTS = Kernel(name=NVJET, busy_ms=4.0)


def test_suspected_where_every_layer_launches_a_kernel_for_each_request():
    alone = Kernel(name=COPY, busy_ms=2.0, per_step=32 * 16, grid=(1, 1, 1))
    answer = check("K403", running(WEIGHTS, alone, batch=16, step_ms=6.5))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert "512 launches" in answer.evidence[0].text
    assert answer.gain.low < answer.gain.tok_s < answer.gain.high


def test_it_counts_at_the_load_what_a_trace_shows_at_a_smaller_batch():
    alone = Kernel(name=COPY, busy_ms=0.45, per_step=32 * 16, grid=(1, 1, 1))
    traced = running(WEIGHTS, alone, batch=16, step_ms=8.0, measured_at=64)
    assert isinstance(check("K403", traced), Fired)
    assert not isinstance(check("K403", running(WEIGHTS, alone, batch=16, step_ms=6.5)), Fired)


def test_nearest_rival_kernels_of_a_layer_are_not_launched_for_each_request():
    for batch, launches in ((4, 32 * 4), (16, 32), (16, 32 * 24)):
        rows = Kernel(name=COPY, busy_ms=2.0, per_step=launches)
        assert not isinstance(check("K403", running(WEIGHTS, rows, batch=batch, step_ms=6.5)), Fired)


ALONE = Kernel(name=COPY, busy_ms=2.0, per_step=32 * 16, grid=(1, 1, 1))


def test_a_trace_alone_shows_it_and_promises_nothing():
    answer = check("K403", running(WEIGHTS, ALONE, batch=16))
    assert isinstance(answer, Fired)
    assert "33 % of a step at 16 running" in answer.headline  # 2 of the 6 ms traced
    assert answer.gain is None


def test_what_a_trace_shows_at_a_larger_batch_than_the_load_s_is_told_of_the_trace():
    answer = check("K403", running(WEIGHTS, ALONE, batch=16, step_ms=5.0, measured_at=4))
    assert isinstance(answer, Fired)
    assert "at 16 running" in answer.headline
    assert answer.gain is None


@pytest.mark.parametrize("configured", [1024, 1_048_576])
def test_kernels_launched_for_each_request_need_no_line_whatever_the_configured_context(configured):
    answer = check("K403", running(WEIGHTS, ALONE, batch=16, step_ms=6.5, context_length=configured))
    assert isinstance(answer, Fired)
    assert "launched for one request after the other" in answer.headline


@pytest.mark.parametrize(("batch", "fires"), [(7, False), (9, True)])
def test_kernels_tell_of_one_launch_a_request_from_eight_requests_on(batch, fires):
    alone = Kernel(name=COPY, busy_ms=2.0, per_step=32 * batch, grid=(1, 1, 1))
    assert isinstance(check("K403", running(WEIGHTS, alone, batch=batch, step_ms=6.5)), Fired) is fires
