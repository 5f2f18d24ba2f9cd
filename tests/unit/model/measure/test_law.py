import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stepline.model.measure.law import NoLaw, StepLaw, fit, level_points

SIZES = st.lists(st.integers(1, 512), min_size=3, max_size=6, unique=True).filter(
    lambda sizes: max(sizes) >= 2 * min(sizes)
)


def _fit(steps, graph=True):
    return fit(level_points((n, t, graph) for n, t in steps), "test")


@given(SIZES, st.floats(0.5, 100), st.floats(0.001, 50))
def test_an_exact_line_is_found_again(sizes, fixed, slope):
    law = _fit([(n, fixed + slope * n) for n in sizes])
    assert isinstance(law, StepLaw)
    assert law.fixed_ms == pytest.approx(fixed, rel=1e-6, abs=1e-6)
    assert law.per_request_ms == pytest.approx(slope, rel=1e-6, abs=1e-9)


@given(
    SIZES, st.floats(1, 100), st.floats(0.01, 10), st.lists(st.floats(-0.02, 0.02), min_size=6, max_size=6)
)
def test_the_interval_holds_the_line_it_came_from_for_the_mean_batch(sizes, fixed, slope, noise):
    steps = [(n, (fixed + slope * n) * (1 + e)) for n, e in zip(sorted(sizes), noise, strict=False)]
    law = _fit(steps)
    assume(isinstance(law, StepLaw))
    span = law.step_interval(sum(sizes) / len(sizes))
    assert span.low <= law.step_ms(sum(sizes) / len(sizes)) <= span.high


def test_two_batches_give_a_line_without_an_interval():
    law = _fit([(1, 5.0), (8, 5.2)])
    assert law.per_request_interval is None
    assert law.step_interval(4) is None


def test_one_batch_gives_no_law():
    assert isinstance(_fit([(8, 5.1)]), NoLaw)


def test_a_falling_step_is_refused_with_both_points():
    law = _fit([(1, 2.2), (16, 3.12), (32, 2.72)])
    assert isinstance(law, NoLaw)
    assert "3.12 ms at 16" in law.reason
    assert "2.72 ms at 32" in law.reason


def test_noise_within_a_level_is_no_fall():
    steps = [(1, 30.5), (1, 21.3), (1, 23.5), (8, 23.5), (8, 28.0)]
    assert isinstance(_fit(steps), StepLaw)


def test_eager_batches_are_a_cliff_and_never_part_of_the_line():
    points = level_points([(4, 5.0, True), (8, 5.1, True), (32, 28.0, False)])
    law = fit(points, "test")
    assert law.shape == "cliff"
    assert law.step_ms(32) == pytest.approx(5.7)
    assert [point.running for point in law.eager] == [32]


def test_a_flat_law_has_no_ceiling():
    assert _fit([(1, 5.0), (8, 5.01), (32, 5.02)]).ceiling_tok_s is None


@given(SIZES, st.floats(-20, 50), st.floats(-0.05, 5), st.lists(st.floats(0.7, 1.4), min_size=6, max_size=6))
def test_a_law_never_starts_below_nothing_falls_or_ends_below_a_measured_rate(sizes, fixed, slope, noise):
    law = _fit([(n, max(0.5, (fixed + slope * n) * e)) for n, e in zip(sizes, noise, strict=False)])
    assume(isinstance(law, StepLaw))
    assert law.per_request_ms >= 0
    sizes = [point.running for point in law.points]
    assert max(sizes) >= 2 * min(sizes)
    start = law.fixed_ms if law.fixed_interval is None else law.fixed_interval.high
    assert start >= -0.001 * law.points[-1].step_ms
    if law.ceiling_tok_s is not None:
        rates = [1000 * point.running / point.step_ms for point in law.points]
        assert max(rates) <= 1.001 * law.ceiling_tok_s


@pytest.mark.parametrize(("largest", "known"), [(11, False), (12, True)])
def test_a_range_under_twofold_is_no_law(largest, known):
    law = _fit([(6, 10.0), (9, 10.5), (largest, 11.0)])
    assert isinstance(law, StepLaw) == known
    assert known or "6 to 11 running" in law.reason


def test_two_levels_whose_line_starts_below_zero_are_no_law():
    law = _fit([(2, 5.0), (8, 55.0)])
    assert isinstance(law, NoLaw)
    assert "starts at -11.7 ms" in law.reason


def test_a_step_that_falls_within_the_noise_is_flat():
    law = _fit([(1, 5.02), (8, 5.0), (16, 4.95)])
    assert law.shape == "flat"
    assert law.per_request_ms == 0
    assert law.fixed_ms == pytest.approx(4.99)
    assert law.fixed_interval.low < 4.95 < law.fixed_interval.high
