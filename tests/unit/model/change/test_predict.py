"""What a change would bring: both ends of a gain, by the numbers that they rest on."""

import msgspec
import pytest

from stepline.model.change.estimate import Estimate
from stepline.model.change.larger_batch import with_larger_batch
from stepline.model.change.less_idle import without_host
from stepline.model.change.shorter_step import with_clean_step, without_excess, without_work
from stepline.model.picture.picture import Picture
from stepline.model.signs.per_request_excess import per_request_cost
from stepline.model.signs.recompute import own_prompt_floor_ms
from tests.rules.server import Stage, level, picture, server


def _sound(**facts: object) -> Picture:
    stages = [Stage(running=1, step_ms=4.9), Stage(running=64, step_ms=10.0)]
    return picture(server(stages, levels=[level(64, 5000, 10.0, 60)], **facts))


@pytest.mark.parametrize(
    ("turns", "busy", "middle", "slow"),
    [
        (False, 0.8, 0.5, 0.25),
        (True, 0.8, 0.88, 0.5),
        (True, 0.69, 0.88, 0.5),
        (True, 0.64, 0.5, 0.25),
    ],
    ids=["overlapped", "takes turns", "hides up to a third idle", "more does not hide"],
)
def test_what_of_the_idle_time_goes_with_the_hosts_delay(turns, busy, middle, slow):
    gain = without_host(_sound(overlap_schedule=not turns), busy)
    idle = 1 - busy
    assert (gain.tok_s, gain.low) == (
        pytest.approx(5000 / (1 - middle * idle)),
        pytest.approx(5000 / (1 - slow * idle)),
    )


def test_counters_may_read_two_percent_too_much_and_never_half():
    assert without_host(_sound(), 0.8).high == pytest.approx(5000 / 0.78)
    assert without_host(_sound(), 0.03).high == pytest.approx(5000 / 0.015)


def test_kernels_take_the_gaps_between_them_along():
    seen = _sound()
    plain = msgspec.structs.replace(seen, loop=None, floors=None)
    gain = without_work(plain, 5.0)
    assert gain.high == pytest.approx(64_000 / (10.0 - 1.1 * 5.0))
    assert (gain.tok_s, gain.low) == (pytest.approx(64_000 / 5.0), pytest.approx(64_000 / 7.5))


def _linear() -> Picture:
    """A step that grows by 0.72 ms for each request, far beyond its bytes, on two batches."""
    stages = [Stage(running=1, step_ms=10.72), Stage(running=32, step_ms=10 + 0.72 * 32)]
    return msgspec.structs.replace(picture(server(stages)), loop=None)


def test_without_its_excess_the_fixed_part_grows_as_on_sound_servers():
    seen = _linear()
    cost = per_request_cost(seen)
    granted = cost.granted_slope_ms * 32
    assert cost.at_running == 32
    gain = without_excess(seen, cost)
    assert gain.tok_s == pytest.approx(32_000 / (10 * (1 + 0.005 * 32) + 2 * granted))
    assert gain.low == pytest.approx(32_000 / (1.1 * 10 * (1 + 2 * 0.005 * 32) + 4 * granted))
    assert gain.high == pytest.approx(32_000 / (0.9 * 10 + granted))


@pytest.mark.parametrize(("other_ms", "told"), [(10.0, False), (19.0, True)])
def test_prefill_is_named_as_next_where_it_takes_over_a_quarter_of_the_time(other_ms, told):
    seen = _sound()
    loop = msgspec.structs.replace(seen.loop, running=8, step_ms=5.0, other_ms_per_request=other_ms)
    stage = msgspec.structs.replace(seen.step, running=8, measured_ms=5.0)
    gain = with_larger_batch(msgspec.structs.replace(seen, loop=loop, step=stage), 16)
    assert ("prefill and admission" in gain.binds_next) is told, gain.binds_next


def test_prompts_out_of_the_steps_take_their_floor_or_an_ordinary_time():
    seen = _sound()
    seen = msgspec.structs.replace(seen, loop=msgspec.structs.replace(seen.loop, other_ms_per_request=0.5))
    loop, floor = seen.loop, own_prompt_floor_ms(seen)
    gain = with_clean_step(seen, Estimate(3.0, 2.5, 3.5), "the law")
    ends = [
        msgspec.structs.replace(loop, step_ms=step_ms, other_ms_per_request=over * floor).tok_s
        for step_ms, over in ((3.0, 1.35), (2.5, 1.0), (3.5, 1.7))
    ]
    assert ends[2] > loop.tok_s
    assert [gain.tok_s, gain.high, gain.low] == pytest.approx(ends)
