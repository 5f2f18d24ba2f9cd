"""Where the planner turns: on both sides of each number that decides what is measured next."""

import msgspec
import pytest

from stepline.model.measure.law import Interval
from stepline.plan.experiment import Experiment, Stop
from stepline.plan.policy import fitted, next_experiment, outline
from tests.rules.server import Stage, level
from tests.unit.plan.test_policy import LIMITS, SOUND, done, known, slow_to_turn_over


def _wide(half: float):
    """A sound server whose step is known within that share of it."""
    picture, found = known(*SOUND)
    step = picture.step.measured_ms
    interval = Interval(step * (1 - half), step * (1 + half))
    return msgspec.structs.replace(
        picture, step=msgspec.structs.replace(picture.step, interval=interval)
    ), found


@pytest.mark.parametrize(("half", "again"), [(0.027, False), (0.033, True)])
def test_a_load_is_repeated_while_its_step_is_not_known_within_3_percent(half, again):
    following = next_experiment(*_wide(half), done(1, 64, 8), LIMITS)
    assert isinstance(following, Experiment) is again
    if again:
        assert following.concurrency == 64


@pytest.mark.parametrize(("before", "again"), [((64, 64), True), ((64, 64, 64), False)])
def test_a_load_is_repeated_twice_at_most(before, again):
    following = next_experiment(*_wide(0.2), done(1, 8, *before), LIMITS)
    assert isinstance(following, Experiment) is again


@pytest.mark.parametrize(("requests", "enough"), [(28, False), (36, True)])
def test_half_the_streams_must_have_ended_an_answer(requests, enough):
    following = next_experiment(*slow_to_turn_over(requests=requests), done(1, 64, 8), LIMITS)
    assert isinstance(following, Stop) is enough


def test_a_longer_level_spares_three_tenths_for_late_ends():
    again = next_experiment(*slow_to_turn_over(requests=16), done(1, 64, 8), LIMITS)
    assert again.seconds == pytest.approx(1.3 * 12)
    assert again.together_tokens == 24
    none_yet = next_experiment(*slow_to_turn_over(requests=0, ttft_p99_ms=9_000.0), done(1, 64, 8), LIMITS)
    assert none_yet.seconds == pytest.approx(1.3 * (9.0 + (24 + 96) * 0.0066))


@pytest.mark.parametrize(("step_ms", "profiled"), [(1.25, False), (1.35, True)])
def test_a_step_next_to_the_typical_one_is_not_profiled(step_ms, profiled):
    picture, found = known(*SOUND)
    step = msgspec.structs.replace(picture.step, measured_ms=step_ms * picture.floors.typical.ms)
    following = next_experiment(msgspec.structs.replace(picture, step=step), found, done(1, 64, 8), LIMITS)
    assert isinstance(following, Experiment) is profiled
    if profiled:
        assert (following.kind, following.steps) == ("profile", 8)
        assert following.seconds == pytest.approx(12 + 4 * 8 * step.measured_ms / 1000)


@pytest.mark.parametrize(("tries", "again"), [((32,), True), ((32, 32), False)])
def test_a_level_without_a_rate_is_tried_twice(tries, again):
    picture, found = known(SOUND[0][:1], [level(1, 195, 4.9, 20)])
    limits = msgspec.structs.replace(LIMITS, concurrency=(1, 32))
    following = next_experiment(picture, found, done(1, *tries), limits)
    assert (isinstance(following, Experiment) and following.concurrency == 32) is again


def test_the_first_level_lasts_as_long_as_steps_of_10_ms_need():
    first = outline(LIMITS)[0]
    assert first.seconds == 6.0, (
        "160 + 1.5 × 192 steps of 10 ms take 4.5 s, which is less than a level may be"
    )
    longer = outline(msgspec.structs.replace(LIMITS, output_tokens=512))[0]
    assert longer.seconds == pytest.approx((160 + 1.5 * 512) * 0.010)
    longest = outline(msgspec.structs.replace(LIMITS, output_tokens=4096))[0]
    assert longest.seconds == 30.0
    assert (first.together_tokens, longest.together_tokens) == (160, 160)


@pytest.mark.parametrize(
    ("step_ms", "together"),
    [(100.0, round(0.4 * 30_000 / 100)), (600.0, 24)],
    ids=["two fifths of the level", "24 at least"],
)
def test_slow_steps_share_fewer_rounds(step_ms, together):
    stages = [Stage(running=n, step_ms=step_ms) for n in (1, 8, 64)]
    levels = [level(n, 1000 * n / step_ms, step_ms, 20) for n in (1, 8, 64)]
    picture, found = known(stages, levels)
    limits = msgspec.structs.replace(LIMITS, concurrency=(1, 8, 64, 32), budget_s=600)
    following = next_experiment(picture, found, done(1, 8, 64), limits)
    assert following.together_tokens == together


def test_a_level_of_which_nothing_is_known_is_the_third_at_8_streams():
    sweep = [step for step in outline(LIMITS) if step.kind == "level" and step.sure]
    assert [step.concurrency for step in sweep] == [1, 64, 8]


@pytest.mark.parametrize(("running", "third"), [(30, 30), (34, 6)])
def test_the_third_level_is_the_cap_where_less_than_half_ran(running, third):
    stages = [Stage(running=1, step_ms=4.9), Stage(running=running, step_ms=5.5, queued=64 - running)]
    picture, found = known(stages, [level(1, 195, 4.9, 20), level(64, 1000 * running / 5.5, 5.5, 900)])
    assert next_experiment(picture, found, done(1, 64), LIMITS).concurrency == third


@pytest.mark.parametrize(
    ("prompt", "other"),
    [(8000, 48_000), (8400, 1400), (400, 2400)],
    ids=["below 8,192 longer", "from 8,192 on shorter", "six times"],
)
def test_the_other_context_is_six_times_the_prompt_or_a_sixth(prompt, other):
    limits = msgspec.structs.replace(LIMITS, input_tokens=prompt, context_tokens=131_072)
    assert outline(limits)[-1].input_tokens == other


@pytest.mark.parametrize(("prompt", "some"), [(300, False), (504, True)])
def test_no_other_context_below_64_tokens(prompt, some):
    limits = msgspec.structs.replace(LIMITS, input_tokens=prompt, context_tokens=6 * prompt)
    assert (outline(limits)[-1].input_tokens == prompt // 6) is some


def test_a_prompt_leaves_room_for_three_answers_and_the_first_rounds():
    limits = msgspec.structs.replace(LIMITS, context_tokens=2048)
    assert fitted(limits, 4000) == 2048 - 3 * 192 - 160
    assert fitted(msgspec.structs.replace(limits, context_tokens=500), 4000) == 16
