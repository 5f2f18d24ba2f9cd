"""Where the picture doubts what it was told: on both sides of each number."""

import pytest

from tests.rules.server import Stage, level, picture, server


@pytest.mark.parametrize(("over", "doubted"), [(1.22, False), (1.28, True)])
def test_routes_to_the_batch_that_differ_by_a_quarter_are_doubted(over, doubted):
    """Of two routes the larger lies that much above their middle."""
    clients = 20 * over / (2 - over)
    run = server([Stage(running=20, step_ms=5.0, queued=44)], levels=[level(64, 100 * clients, 10.0, 20)])
    assert any(doubt.topic == "running-batch" for doubt in picture(run).doubts) is doubted
