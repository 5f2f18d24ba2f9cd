import msgspec

from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, level, server


def _run(tok_s: float, busy: float | None = 0.98, model: bool = True):
    stages = [Stage(running=1, step_ms=4.9, lines=9), Stage(running=64, step_ms=6.6, lines=9, gpu_busy=busy)]
    levels = [level(1, 200, 4.9, 16), level(64, tok_s, 64 * 1000 / tok_s - 2, 270)]
    return server(stages, levels=levels) if model else server(stages, levels=levels, model=None)


def test_fires_when_prefill_takes_several_times_its_floor_on_a_busy_gpu():
    answer = check("S204", _run(2500))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.gain is not None
    assert answer.gain.tok_s > 2500


def test_prefill_at_a_low_clock_is_the_clock_s_doing():
    """At 4,000 tok/s prefill takes 5.2 times its floor, which is over three times as long at 30 % of the clock."""
    run = _run(4000)
    assert isinstance(check("S204", run), Fired)
    slow = tuple(msgspec.structs.replace(sample, sm_clock_mhz=594.0) for sample in run.gpu_samples)
    assert isinstance(check("S204", msgspec.structs.replace(run, gpu_samples=slow)), Clear)


def test_clear_when_prefill_is_near_its_floor():
    answer = check("S204", _run(6500))
    assert isinstance(answer, Clear)
    assert "floor" in answer.reason


def test_nearest_rival_an_idle_gpu_is_the_hosts_doing():
    answer = check("S204", _run(2500, busy=0.4))
    assert isinstance(answer, Clear)
    assert "host" in answer.reason


def test_cannot_tell_without_a_client_level():
    assert isinstance(check("S204", server([Stage(running=64, step_ms=6.6)])), CannotTell)


def test_cannot_tell_without_the_model():
    assert isinstance(check("S204", _run(2500, model=False)), CannotTell)
