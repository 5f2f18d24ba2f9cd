"""An interval stays an interval through the arithmetic that is allowed on it."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stepline.model.change.estimate import Estimate
from stepline.model.change.loop_rates import rates
from stepline.model.measure.closed_loop import from_measured

VALUES = st.floats(0.01, 1e4)
ESTIMATES = st.lists(VALUES, min_size=3, max_size=3).map(sorted).map(lambda s: Estimate(s[1], s[0], s[2]))


def ordered(one: Estimate) -> bool:
    return one.low <= one.middle <= one.high


@given(ESTIMATES, VALUES)
def test_bounds_and_factors_keep_the_order(one: Estimate, value: float) -> None:
    assert all(ordered(each) for each in (one.at_most(value), one.at_least(value), one.times(value)))
    assert one.at_most(value).high <= value <= one.at_least(value).low
    assert Estimate.exact(value) == (value, value, value)


@given(ESTIMATES, ESTIMATES)
def test_long_steps_and_dear_requests_make_the_slow_end(step: Estimate, other: Estimate) -> None:
    loop = from_measured(32, 10.0, 128, 2000.0, 1.0)
    assert loop is not None
    rate = rates(loop, step, other)
    slowest = msgspec.structs.replace(loop, step_ms=step.high, other_ms_per_request=other.high)
    assert ordered(rate)
    assert rate.low == slowest.tok_s


def test_a_request_costs_what_it_costs_where_nobody_says_otherwise() -> None:
    loop = from_measured(32, 10.0, 128, 2000.0, 1.0)
    assert loop is not None
    assert rates(loop, Estimate.exact(loop.step_ms)).middle == loop.tok_s
