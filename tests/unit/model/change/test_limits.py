"""Where a comparison turns: on both sides of each number that says what is alike and how steady a server was."""

import math

import msgspec
import pytest
from scipy.special import stdtrit

from stepline.model.change.speedup import Measured, ratio
from stepline.model.change.step_pairs import least_steady, step_pairs, window_groups
from stepline.model.change.throughput_pairs import rate_pairs
from tests.rules.server import Stage, level, picture, server


def _one(spread: float, independent: float = 20.0) -> Measured:
    return Measured(log_speed=0.0, windows=20, spread=spread, independent=independent)


def test_starts_of_a_sound_server_differ_by_six_in_a_thousand_known_from_seven_pairs():
    found = ratio([_one(0.004)], [_one(0.015)], 1)
    assert found.half == pytest.approx(math.sqrt(2) * 0.006 * stdtrit(14, 0.975))
    assert found.wide == found.half
    three = ratio([_one(0.004)], [_one(0.004)], 3)
    assert three.wide == pytest.approx(math.sqrt(2) * 0.006 * stdtrit(14, 1 - 0.025 / 3))


def test_a_spread_beyond_that_of_sound_windows_is_known_from_four_levels_only():
    found = ratio([_one(0.1)], [_one(0.1)], 1)
    starts, beyond = 0.006**2, (0.1**2 - 0.015**2) * (1 + math.pi / 2 / 20)
    degrees = (starts + beyond) ** 2 / (starts**2 / 7 + beyond**2 / 4)
    assert found.half == pytest.approx(math.sqrt(2 * (starts + beyond)) * stdtrit(2 * degrees, 0.975))


@pytest.mark.parametrize(("lines", "told"), [(4, False), (5, True)])
def test_four_windows_tell_how_steady_a_server_is(lines, told):
    """The first line of a stage has no start."""
    run = server([Stage(running=8, step_ms=5.0, lines=lines, context=1000)])
    assert (least_steady(picture(run)) is not None) is told


@pytest.mark.parametrize(("context", "groups"), [(1900, 1), (2100, 2)])
def test_contexts_within_a_factor_of_two_are_one_group(context, groups):
    stages = [Stage(running=8, step_ms=5.0, context=1000), Stage(running=8, step_ms=5.0, context=context)]
    assert len(window_groups(picture(server(stages)))) == groups


@pytest.mark.parametrize(("context", "pairs"), [(1080, 1), (1150, 0)])
def test_steps_at_contexts_within_a_tenth_are_alike(context, pairs):
    sides = [picture(server([Stage(running=8, step_ms=5.0, context=c)])) for c in (1000, context)]
    assert len(step_pairs(sides[:1], sides[1:]).pairs) == pairs
    assert len(step_pairs(sides[1:], sides[:1]).pairs) == pairs


@pytest.mark.parametrize(("tokens", "pairs"), [(275, 1), (290, 0)])
def test_prompts_within_a_tenth_are_one_load(tokens, pairs):
    plain = level(8, 1450, 5.1, 25)
    sides = [
        picture(server([], levels=[msgspec.structs.replace(plain, input_tokens=count)]))
        for count in (256, tokens)
    ]
    assert len(rate_pairs(sides[:1], sides[1:]).pairs) == pairs
