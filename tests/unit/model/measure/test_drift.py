from stepline.evidence.origin import Origin
from stepline.model.measure.drift import find_drift
from tests.rules.server import Stage, diagnosed, picture, server


def test_a_lasting_change_is_found_at_its_first_window():
    run = server([Stage(running=8, step_ms=5.0, lines=10), Stage(running=8, step_ms=9.0, lines=10)])
    windows = picture(run).windows.valid
    drift = find_drift(windows, 8)
    assert (drift.before_ms, drift.after_ms) == (5.0, 9.0)
    assert drift.since == Origin("server.log", 11)
    assert any("steps at 8 changed since 00:00:10" in line.text for line in diagnosed(run).health)


def test_noise_and_other_batches_are_no_change():
    steady = server([Stage(running=8, step_ms=5.0, lines=10), Stage(running=16, step_ms=9.0, lines=10)])
    assert find_drift(picture(steady).windows.valid, 8) is None
