"""Where the picture doubts what it was told: on both sides of each number."""

import pytest

from tests.rules.server import Stage, level, picture, server


@pytest.mark.parametrize(("clients", "doubted"), [(9.6, False), (11.8, True)])
def test_routes_to_the_batch_that_differ_by_a_quarter_are_doubted(clients, doubted):
    """Two routes lie as far from their middle as it takes for the larger to be that much above it."""
    run = server([Stage(running=6, step_ms=5.0, queued=2)], levels=[level(8, 1000 * clients / 10, 10.0, 20)])
    routes = sorted(route.running for route in picture(run).levels[0].routes)
    assert len(routes) == 2
    apart = routes[1] / ((routes[0] + routes[1]) / 2) - 1
    assert (apart > 0.25) == any(doubt.topic == "running-batch" for doubt in picture(run).doubts)
