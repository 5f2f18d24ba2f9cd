"""Ratios of speeds: reciprocal under a swap, honest about single runs, tighter with repeats."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.model.change.speedup import Measured, drift, from_windows, ratio, runs_that_settle
from stepline.model.change.speedup import T as SPEEDUP

MS = st.floats(0.5, 500)
RUN = st.builds(from_windows, st.integers(2, 30).flatmap(lambda n: st.lists(MS, min_size=n, max_size=n)))
SIDE = st.lists(RUN, min_size=1, max_size=4)


def quiet(ms: float, spread: float = 0.004) -> Measured:
    return Measured(log_speed=-math.log(ms), windows=20, spread=spread, independent=20.0)


@given(SIDE, SIDE, st.integers(1, 9))
def test_swapping_the_sides_gives_the_reciprocal(before, after, lines):
    there, back = ratio(before, after, lines), ratio(after, before, lines)
    assert there.speedup * back.speedup == pytest.approx(1)
    assert there.low * back.high == pytest.approx(1)
    assert there.half == pytest.approx(back.half)
    assert there.wide == pytest.approx(back.wide)
    assert there.low <= there.speedup <= there.high
    assert there.wide >= there.half


@given(SIDE, SIDE, st.floats(0.1, 10))
def test_the_unit_of_time_does_not_matter(before, after, scale):
    def scaled(side):
        return [Measured(**{**_fields(run), "log_speed": run.log_speed - math.log(scale)}) for run in side]

    plain, other = ratio(before, after, 3), ratio(scaled(before), scaled(after), 3)
    assert other.log_ratio == pytest.approx(plain.log_ratio, abs=1e-9)
    assert other.half == pytest.approx(plain.half)


def _fields(run: Measured) -> dict:
    return {name: getattr(run, name) for name in run.__struct_fields__}


def test_one_quiet_run_a_side_resolves_about_two_percent():
    found = ratio([quiet(5.0)], [quiet(5.0)], 1)
    assert found.half == pytest.approx(2.14 * math.sqrt(2) * SPEEDUP.run_spread, rel=0.01)


def test_windows_beyond_those_of_a_sound_server_widen_the_interval():
    assert ratio([quiet(5.0, 0.10)], [quiet(5.0)], 1).half > 5 * ratio([quiet(5.0)], [quiet(5.0)], 1).half


def test_more_windows_of_one_run_do_not_stand_for_more_runs():
    few, many = (Measured(log_speed=0.0, windows=n, spread=0.1, independent=float(n)) for n in (10, 10_000))
    assert ratio([many], [many], 1).half > 0.9 * ratio([few], [few], 1).half
    assert ratio([few] * 4, [few] * 4, 1).half < 0.5 * ratio([few], [few], 1).half


def test_runs_that_disagree_widen_the_interval_and_show_as_drift():
    apart, close = [quiet(5.0), quiet(5.5)], [quiet(5.0), quiet(5.01)]
    assert ratio(apart, close, 1).half > 2 * ratio(close, close, 1).half
    assert drift(apart) == pytest.approx(5.0 / 5.5 - 1)
    assert drift([quiet(5.0)]) is None


def test_neighbours_that_follow_each_other_count_for_less():
    rising = [1.0 + 0.01 * step for step in range(20)]
    shuffled = random.Random(7).sample(rising, 20)  # noqa: S311  # no secret
    assert from_windows(rising).independent < 0.3 * from_windows(shuffled).independent


def test_equal_windows_have_no_spread_and_all_count():
    assert from_windows([5.0] * 8) == Measured(
        log_speed=-math.log(5.0), windows=8, spread=0.0, independent=8.0
    )


@given(st.floats(0.0, 0.06), st.floats(0.0, 0.06), st.integers(1, 8))
def test_after_the_runs_asked_for_every_middle_gives_a_verdict(first, second, lines):
    before, after = [quiet(5.0, first)], [quiet(5.0, second)]
    runs = runs_that_settle(before, after, lines, 0.03)
    if runs is not None:
        found = ratio(before * runs, after * runs, lines)
        assert found.half + found.wide <= math.log(1.03)
        assert runs >= 1


def test_noise_that_no_hundred_runs_settle_is_said():
    assert runs_that_settle([quiet(5.0, 0.4)], [quiet(5.0)], 1, 0.03) is None


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Simulated starts of a sound server, two a side: 95 % intervals miss a true ratio of 1 in about one in twenty."""
    noise = random.Random(11)  # noqa: S311
    misses = 0
    for _ in range(2000):
        sides = [[quiet(math.exp(noise.gauss(0, SPEEDUP.run_spread))) for _ in range(2)] for _ in range(2)]
        found = ratio(*sides, 1)
        misses += not found.low <= 1 <= found.high
    assert 0.02 < misses / 2000 < 0.07
