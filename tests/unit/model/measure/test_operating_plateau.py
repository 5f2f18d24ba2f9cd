"""The load of a log is its heaviest stretch that lasted."""

import msgspec
import pytest

from stepline.model.measure.operating_plateau import operating_plateau
from stepline.model.measure.timeline import Plateau

BASE = Plateau(
    offered=20,
    running=20,
    queued=0.0,
    time=None,
    pool_usage=None,
    decode_lines=100,
    prefill_tokens=0,
    cached_tokens=0,
    prefill_requests=0,
    prefill_prompts=0,
    profiled=False,
    graph_share=None,
)


def plateau(offered: float, lines: int) -> Plateau:
    return msgspec.structs.replace(BASE, offered=offered, running=offered, decode_lines=lines)


def test_the_heaviest_level_of_a_sweep_counts_however_short_beside_the_others():
    found = operating_plateau([plateau(4, 1200), plateau(16, 400), plateau(64, 150), plateau(128, 40)])
    assert found is not None
    assert found.plateau.offered == 128
    assert found.burst is None


@pytest.mark.parametrize(("lines", "offered"), [(5, 20), (60, 200)])
def test_a_burst_above_a_days_load_is_a_burst_until_it_lasts(lines, offered):
    found = operating_plateau([plateau(20, 4000), plateau(200, lines), plateau(20, 4600)])
    assert found is not None
    assert found.plateau.offered == offered
    assert (found.burst is not None) == (offered == 20)


def test_of_the_same_load_seen_again_the_longest_stretch_shows_it():
    found = operating_plateau([plateau(121, 3), plateau(120, 18), plateau(112, 10), plateau(37, 3)])
    assert found is not None
    assert (found.plateau.offered, found.plateau.decode_lines) == (120, 18)


def test_two_lines_between_levels_are_a_ramp_and_an_excerpt_is_all_there_is():
    found = operating_plateau([plateau(8, 30), plateau(24, 2), plateau(16, 30)])
    assert found is not None
    assert found.plateau.offered == 16
    alone = operating_plateau([plateau(6, 2)])
    assert alone is not None
    assert alone.plateau.offered == 6
    assert operating_plateau([]) is None
