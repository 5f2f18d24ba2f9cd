import msgspec
import pytest

from stepline.evidence.gpu import GpuSample
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, diagnosed, level, server

POWER_CAP, SETTING, SLOWDOWN, SW_HEAT, HW_HEAT, BRAKE, IDLE = 0x4, 0x2, 0x8, 0x20, 0x40, 0x80, 0x1


def sampled(
    clock: float,
    reasons: int | None,
    *,
    busy: float | None = 0.97,
    gpu: int = 0,
    number: int = 8,
    start_s: float = 1.0,
) -> tuple[GpuSample, ...]:
    """Half seconds of one GPU."""
    return tuple(
        GpuSample(
            origin=Origin("gpm.csv", 2 + tick),
            time_s=start_s + tick / 2,
            gpu=gpu,
            graphics_busy=busy,
            sm_clock_mhz=clock,
            temperature_c=88.0,
            clock_event_reasons=reasons,
        )
        for tick in range(number)
    )


def loaded(*samples: GpuSample) -> Run:
    """A healthy-looking load of 64 streams beside those samples."""
    run = server(
        [Stage(running=1, step_ms=6.0, lines=9), Stage(running=64, step_ms=12.0, lines=9)],
        levels=[level(1, 160, 6.1, 40), level(64, 4600, 13.0, 90)],
    )
    return msgspec.structs.replace(run, gpu_samples=samples)


@pytest.mark.parametrize("reason", [SETTING, SLOWDOWN, SW_HEAT, HW_HEAT, BRAKE])
def test_fires_on_a_low_clock_with_a_reason(reason):
    answer = check("P601", loaded(*sampled(990, reason | POWER_CAP)))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.headline.startswith("the GPU runs at 50 % of its clock: ")
    assert "990 of 1,980 MHz (by the data sheet)" in answer.evidence[0].text
    assert [line.text for line in answer.evidence[2:]] == ["it was up to 88 °C hot"]
    assert [ruled.rival for ruled in answer.ruled_out] == ["a software power cap"]
    assert answer.rivals == ()


def test_the_gain_lies_between_none_and_all_of_the_clock():
    answer = check("P601", loaded(*sampled(990, HW_HEAT)))
    assert answer.gain.low == pytest.approx(4600)
    assert 4600 < answer.gain.tok_s < answer.gain.high <= 1.03 * 9200
    assert answer.recoverable_tok_s == pytest.approx(answer.gain.tok_s - 4600)
    assert diagnosed(loaded(*sampled(990, HW_HEAT))).findings[0].code == "P601"


def test_no_step_is_promised_below_its_floor():
    slow, near = (
        check("P601", msgspec.structs.replace(loaded(*sampled(594, HW_HEAT)), levels=()), gpu=gpu).gain
        for gpu in ("h200", "a100")
    )
    assert slow.high > 2.5 * slow.low  # 12 ms at 30 % of the clock: 3.9 ms of floor bind before 3.6
    assert near.high < 1.6 * near.low  # reading these weights takes an A100 8.4 ms


@pytest.mark.parametrize("clock", [1770, 1980])
def test_the_power_cap_of_a_healthy_server_is_clear(clock):
    answer = check("P601", loaded(*sampled(clock, POWER_CAP)))
    assert isinstance(answer, Clear)
    assert "of 1,980 MHz" in answer.reason


def test_a_power_cap_alone_never_fires():
    answer = check("P601", loaded(*sampled(1200, POWER_CAP)))
    assert isinstance(answer, Clear)
    assert "a power cap" in answer.reason


def test_heat_in_few_samples_is_no_cause():
    run = loaded(*sampled(1200, HW_HEAT, number=3), *sampled(1200, POWER_CAP, start_s=3.0))
    assert isinstance(check("P601", run), Clear)
    half = loaded(*sampled(1200, HW_HEAT), *sampled(1200, POWER_CAP, start_s=5.5))
    assert isinstance(check("P601", half), Fired)


def test_a_low_clock_without_reasons_needs_them_unless_it_is_far_below():
    assert isinstance(check("P601", loaded(*sampled(1200, None))), CannotTell)
    far = check("P601", loaded(*sampled(900, None)))
    assert isinstance(far, Fired)
    assert far.ruled_out == ()


def test_an_idle_gpu_s_low_clock_says_nothing():
    assert isinstance(check("P601", loaded(*sampled(345, IDLE | HW_HEAT, busy=0.0))), CannotTell)
    beside = (*sampled(1980, 0), *sampled(345, HW_HEAT, busy=0.0, gpu=1))
    assert isinstance(check("P601", loaded(*beside)), Clear)


def test_the_slowest_of_the_serving_gpus_counts():
    run = loaded(*sampled(1980, 0), *sampled(1100, HW_HEAT, gpu=1))
    answer = check("P601", run)
    assert isinstance(answer, Fired)
    assert "1,100" in answer.evidence[0].text


@pytest.mark.parametrize("samples", [(), sampled(990, HW_HEAT, number=3), sampled(990, HW_HEAT, busy=None)])
def test_cannot_tell_without_samples_under_load(samples):
    assert isinstance(check("P601", loaded(*samples)), CannotTell)


def test_the_highest_clock_seen_stands_in_for_a_data_sheet():
    cool, hot = sampled(1900, 0, number=4), sampled(950, HW_HEAT, number=9, start_s=4.0)
    answer = check("P601", loaded(*cool, *hot), gpu=None)
    assert isinstance(answer, Fired)
    assert "950 of 1,900 MHz (seen in this recording)" in answer.evidence[0].text


def stated(clock: float) -> Run:
    """One figure that somebody wrote down."""
    return Run(gpu_samples=(GpuSample(origin=Origin("gpu.json"), sm_clock_mhz=clock),))


def test_a_clock_as_stated_is_held_against_the_data_sheet():
    answer = check("P601", stated(628), gpu="rtx a4000")
    assert isinstance(answer, Fired)
    assert answer.evidence[0].text.endswith("as stated")
    assert [rival.rival for rival in answer.rivals] == ["a software power cap", "an idle GPU"]
    assert isinstance(check("P601", stated(1500), gpu="rtx a4000"), Clear)
    assert isinstance(check("P601", stated(628), gpu=None), CannotTell)
    assert isinstance(check("P601", stated(628), gpu="mi300x"), CannotTell)


def test_at_the_fast_end_time_shrinks_with_the_clock_read_two_percent_too_high():
    answer = check("P601", loaded(*sampled(990, HW_HEAT)))
    assert answer.gain.high == pytest.approx(4600 / (0.98 * 0.5), rel=0.001)


@pytest.mark.parametrize(("share", "fires"), [(0.80, True), (0.87, False)])
def test_a_clock_is_low_below_85_percent(share, fires):
    assert isinstance(check("P601", loaded(*sampled(1980 * share, HW_HEAT))), Fired) is fires


@pytest.mark.parametrize(("share", "fires"), [(0.45, True), (0.55, False)])
def test_without_reasons_a_clock_below_half_is_enough(share, fires):
    assert isinstance(check("P601", loaded(*sampled(1980 * share, None))), Fired) is fires


@pytest.mark.parametrize(("named", "fires"), [(3, False), (5, True)])
def test_most_samples_must_name_the_reason(named, fires):
    samples = (
        *sampled(990, HW_HEAT, number=named),
        *sampled(990, POWER_CAP, number=8 - named, start_s=1.0 + named / 2),
    )
    assert isinstance(check("P601", loaded(*samples)), Fired) is fires
