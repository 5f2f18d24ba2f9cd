"""Steps that level off as a batch grows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.model.measure.law import LawPoint, fit
from stepline.model.measure.saturation import saturation

QWEN = ((1.0, 2.180), (8.0, 4.405), (16.0, 5.974), (32.0, 7.067))
"""Decode windows of Qwen3-30B-A3B, cut to 24 layers, on an H200 (tests/data/h200-lab/sglang/moe-healthy)."""


def points(pairs):
    return tuple(LawPoint(running=running, step_ms=step, windows=4) for running, step in pairs)


@given(st.floats(3, 20), st.floats(0.3, 0.9), st.floats(0.6, 0.97))
def test_three_levels_give_back_the_law_they_come_from(full, share, untouched):
    steps = [(n, full * (1 - share * untouched**n)) for n in (1, 8, 32)]
    found = saturation(steps)
    assert found is not None
    assert found.step_ms(16) == pytest.approx(full * (1 - share * untouched**16), rel=1e-3)


def test_what_does_not_level_off_is_none():
    assert saturation([(1, 2.0), (8, 3.0), (32, 9.0)]) is None
    assert saturation([(1, 2.0), (8, 4.0)]) is None


def test_three_levels_of_a_real_model_with_experts_foretell_the_fourth():
    three = points(QWEN[:2] + QWEN[3:])
    law = fit(three, "windows", experts=True)
    assert law.shape == "saturating"
    assert law.ceiling_tok_s is None
    assert law.step_interval(16) is None
    assert law.step_ms(16) == pytest.approx(QWEN[2][1], rel=0.03)
    assert fit(three, "windows").step_ms(16) < 0.85 * QWEN[2][1]


def test_a_straight_law_stays_one_with_experts():
    straight = points([(n, 4 + 0.1 * n) for n in (1, 8, 32)])
    assert fit(straight, "windows", experts=True).saturation is None
    assert fit(points(QWEN), "windows").saturation is None
