import msgspec

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.scheduler import PrefillReport
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, server


def _eager(busy: float | None):
    return [
        Stage(running=1, step_ms=26.3, graph=False, gpu_busy=busy, lines=9),
        Stage(running=64, step_ms=35.0, graph=False, gpu_busy=busy, lines=9),
    ]


def test_confirmed_when_decode_is_eager_and_the_gpu_waits():
    answer = check("H302", server(_eager(0.2), decode_graphs=False))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert answer.gain is not None
    assert any("K404" in ruled.rival for ruled in answer.ruled_out)


def test_clear_when_the_gpu_is_busy_without_graphs():
    answer = check("H302", server(_eager(0.97), decode_graphs=False))
    assert isinstance(answer, Clear)
    assert "save little" in answer.reason


def test_suspected_far_above_the_floor_without_counters():
    answer = check("H302", server(_eager(None)))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"


def test_cannot_tell_near_the_floor_without_counters():
    stages = [Stage(running=64, step_ms=7.0, graph=False)]
    assert isinstance(check("H302", server(stages)), CannotTell)


def test_eager_prefill_lines_say_nothing_about_decode():
    run = server([Stage(running=64, step_ms=6.6, gpu_busy=0.2, lines=9)])
    prefill = PrefillReport(seq=0, origin=Origin("server.log", 1), new_sequences=1, new_tokens=9, graph=False)
    assert isinstance(check("H302", msgspec.structs.replace(run, prefills=(prefill,))), Clear)


def test_the_decode_counter_outweighs_the_setting():
    metrics = EngineMetrics(origin=Origin("metrics.txt"), decode_graph_passes=500.0)
    run = server([Stage(running=64, step_ms=6.6, graph=None)], metrics=metrics, decode_graphs=False)
    assert isinstance(check("H302", run), Clear)


def test_cannot_tell_when_nothing_mentions_graphs():
    assert isinstance(check("H302", server([Stage(running=8, step_ms=5.1, graph=None)])), CannotTell)
