from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, server

COVERED = [Stage(running=4, step_ms=5.0), Stage(running=8, step_ms=5.1)]


def test_confirmed_when_only_the_batches_above_the_graphs_jump():
    run = server([*COVERED, Stage(running=32, step_ms=28.0, graph=False)], decode_graph_sizes=(1, 2, 4, 8))
    answer = check("H303", run)
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert any("K403" in ruled.rival for ruled in answer.ruled_out)


def test_clear_when_eager_batches_lie_on_the_covered_law():
    run = server([*COVERED, Stage(running=32, step_ms=5.8, graph=False)], decode_graph_sizes=(1, 2, 4, 8))
    assert isinstance(check("H303", run), Clear)


def test_suspected_from_sizes_and_batch_alone():
    run = server([Stage(running=67, step_ms=20.0, graph=None)], decode_graph_sizes=(1, 8, 32))
    answer = check("H303", run)
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"


def test_clear_within_the_captured_sizes():
    assert isinstance(check("H303", server(COVERED, decode_graph_sizes=(1, 2, 4, 8))), Clear)


def test_nearest_rival_graphs_off_everywhere_is_not_a_ceiling():
    stages = [Stage(running=4, step_ms=25.0, graph=False), Stage(running=8, step_ms=26.0, graph=False)]
    assert not isinstance(check("H303", server(stages, decode_graph_sizes=(1, 2, 4, 8))), Fired)


def test_cannot_tell_without_sizes():
    assert isinstance(check("H303", server(COVERED)), CannotTell)
