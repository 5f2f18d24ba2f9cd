"""Where the measurements of a run turn: on both sides of each number that decides what a record is taken for."""

import msgspec
import pytest

from stepline.evidence.gpu import GpuSample
from stepline.evidence.load import LoadLevel
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport, PrefillReport, SchedulerEvent
from stepline.model.measure.client_health import overtaxed
from stepline.model.measure.drift import find_drift
from stepline.model.measure.gpu_use import align_clocks, gpu_use, working_gpus
from stepline.model.measure.idle_engine import idle_use
from stepline.model.measure.law import LawPoint, NoLaw, StepLaw, fit
from stepline.model.measure.levels import offered_levels
from stepline.model.measure.preemption import find_cliff, lost_request
from stepline.model.measure.steady_regression import regressed_points
from stepline.model.measure.timeline import Interval, plateaus
from stepline.model.measure.windows import MixedLine, decode_windows
from tests.unit.model.measure.test_client_health import health

AT = Origin("log", 1)


def line(seq: int, running: int, step_ms: float = 5.0, **changes) -> DecodeReport:
    report = DecodeReport(seq=seq, origin=Origin("log", seq), running=running, tok_s=1000 * running / step_ms)
    return msgspec.structs.replace(report, **changes)


# the log's plateaus


@pytest.mark.parametrize(("after", "same"), [(13, True), (11, False), (19, True), (21, False)])
def test_a_load_that_changes_by_over_a_quarter_begins_another_level(after, same):
    run = Run(decodes=tuple(line(n, 16 if n < 4 else after, time_s=float(n)) for n in range(8)))
    assert (len(plateaus(run)) == 1) is same


def test_a_line_over_a_fixed_time_reaches_ten_seconds_back():
    run = Run(decodes=tuple(line(n, 16, time_s=10.0 * n, instrument="interval") for n in range(3)))
    assert plateaus(run)[0].reaches_back_s == 10.0


# client levels beside the log


def level(**numbers) -> LoadLevel:
    return msgspec.structs.replace(LoadLevel(origin=AT, concurrency=64), **numbers)


def logged(offered: int, start_s: float, end_s: float, *, profile=None) -> Run:
    steps = 8
    decodes = tuple(
        line(2 * n, offered, queued=0, time_s=start_s + (end_s - start_s) * n / (steps - 1))
        for n in range(steps)
    )
    events = ()
    if profile is not None:
        events = tuple(
            SchedulerEvent(seq=2 * n + 1, origin=AT, kind=kind, time_s=profile, text="")
            for n, kind in ((2, "profile-start"), (3, "profile-end"))
        )
    return Run(decodes=decodes, events=events)


def offered(run: Run, given: LoadLevel):
    return offered_levels(msgspec.structs.replace(run, levels=(given,)), plateaus(run))[0]


@pytest.mark.parametrize(("common", "its_own"), [(0.55, True), (0.45, False)])
def test_a_plateau_that_covers_half_a_level_is_its_own(common, its_own):
    given = level(start_s=1000.0, end_s=1100.0, tok_s=1000.0, tpot_ms=5.0)
    seen = offered(logged(20, 1000.0, 1000.0 + 100 * common), given)
    assert (seen.running.route == "scheduler log") is its_own


@pytest.mark.parametrize(("running", "same"), [(59, True), (57, False), (69, True), (71, False)])
def test_a_plateau_within_a_tenth_of_the_streams_is_a_levels(running, same):
    seen = offered(logged(running, 0.0, 50.0), level(tok_s=1000.0, tpot_ms=5.0))
    assert (seen.running.route == "scheduler log") is same


@pytest.mark.parametrize(("late_s", "profiled"), [(50, False), (70, True)])
def test_clocks_that_agree_to_a_minute_are_one(late_s, profiled):
    """By one clock the profiler ran after the level; by two clocks the log's level is this one, profiler and all."""
    given = level(start_s=1000.0, end_s=1050.0, tok_s=6400.0, tpot_ms=10.0)
    run = logged(64, 1050.0 + late_s, 1100.0 + late_s, profile=1060.0 + late_s)
    assert ("profiler" in (offered(run, given).disturbed or "")) is profiled


@pytest.mark.parametrize(("time_s", "seen"), [(22.0, False), (28.0, True)])
def test_a_level_opens_with_a_quarter_of_its_time(time_s, seen):
    given = level(start_s=0.0, end_s=100.0, tok_s=6400.0, tpot_ms=10.0)
    scrapes = tuple(EngineMetrics(origin=AT, time_s=at, running=60.0) for at in (time_s, 90.0))
    found = offered_levels(Run(levels=(given,), metrics=scrapes), ())[0]
    assert (found.running.route == "engine's gauge") is seen


@pytest.mark.parametrize(
    ("missing", "requests", "stood"),
    [(0.13, None, False), (0.18, None, True), (0.36, 128, False), (0.44, 128, True)],
    ids=["13 %", "18 %", "two rounds, 36 %", "two rounds, 44 %"],
)
def test_streams_that_are_missing_by_littles_law(missing, requests, stood):
    numbers = {"tpot_ms": 10.0, "ttft_ms": 10.0, "output_tokens": 100.0, "requests": requests}
    given = level(tok_s=6400 * (1 - missing), **numbers)
    assert ("stood still" in (offered_levels(Run(levels=(given,)), ())[0].disturbed or "")) is stood


@pytest.mark.parametrize(
    ("cpu", "late", "overtaxed_"),
    [(0.85, 0.0, False), (0.95, 0.0, True), (0.5, 0.08, False), (0.5, 0.12, True)],
)
def test_a_client_with_a_full_core_or_a_tenth_of_its_time_late_is_overtaxed(cpu, late, overtaxed_):
    assert (overtaxed(health(cpu, late_share=late)) is not None) is overtaxed_


# windows


@pytest.mark.parametrize(("elapsed_s", "whole"), [(2.0, True), (2.2, False)])
def test_a_line_that_comes_three_windows_late_was_cut(elapsed_s, whole):
    """Forty steps of 5 ms are 0.2 s: three of them and what whole seconds hide are 2.1 s."""
    run = Run(decodes=(line(1, 8, time_s=0.0), line(2, 8, time_s=elapsed_s)))
    assert (len(decode_windows(run).valid) == 1) is whole


# the law


def point(running: float, step_ms: float, **changes) -> LawPoint:
    return msgspec.structs.replace(LawPoint(running=running, step_ms=step_ms, windows=9), **changes)


@pytest.mark.parametrize(("faster", "law"), [(0.045, True), (0.055, False)])
def test_a_larger_batch_may_read_five_percent_faster(faster, law):
    found = fit((point(1, 10.0), point(8, 10.0 * (1 - faster)), point(32, 12.0)), "log")
    assert isinstance(found, StepLaw if law else NoLaw)


@pytest.mark.parametrize(("share", "shape"), [(0.085, "flat"), (0.12, "linear")])
def test_a_law_is_linear_from_a_tenth_of_the_step_on(share, shape):
    slope = 10 * share / (1 - share) / 64
    assert fit((point(1, 10 + slope), point(64, 10 + 64 * slope)), "log").shape == shape


@pytest.mark.parametrize(("over", "shape"), [(1.07, "linear"), (1.2, "cliff")])
def test_an_eager_step_a_tenth_above_the_law_is_a_cliff(over, shape):
    covered = (point(1, 10.1, graph=True), point(32, 13.2, graph=True))
    law = fit((*covered, point(64, 16.4 * over, graph=False)), "log")
    assert law.shape == shape


def test_intervals_are_those_of_19_in_20():
    law = fit((point(1, 10.0), point(8, 11.0), point(32, 13.0), point(64, 17.0)), "log")
    half = (law.fixed_interval.high - law.fixed_interval.low) / 2
    errors = half / 4.30265  # Student's t of two degrees, two-sided 95 %
    assert law.residual_ms * 0.5 < errors < law.residual_ms


@pytest.mark.parametrize(("bend_ms", "off"), [(0.25, 0.0246), (0.35, 0.0345)])
def test_experts_level_off_where_no_line_is_within_three_percent(bend_ms, off):
    steps = {1: 10.1 - bend_ms, 8: 10.8 + bend_ms / 2, 32: 13.2 + bend_ms, 64: 16.4 - bend_ms}
    points = tuple(point(n, ms) for n, ms in steps.items())
    line_ms = fit(points, "log").residual_ms
    assert line_ms / (sum(steps.values()) / 4) == pytest.approx(off, abs=0.0002)
    assert (fit(points, "log", experts=True).saturation is not None) is (off > 0.03)


# preemption


@pytest.mark.parametrize(
    ("before", "after", "more", "slower", "fell"),
    [
        (0.90, 0.97, 1.1, 3.0, True),
        (0.90, 0.93, 1.1, 3.0, False),
        (0.90, 0.97, 1.1, 1.1 * 1.8, False),
        (0.90, 0.97, 1.1, 1.1 * 2.2, True),
        (0.90, 0.97, 1.4, 6.0, True),
        (0.90, 0.97, 1.6, 6.0, False),
    ],
    ids=["cliff", "pool not full", "slower by 1.8", "slower by 2.2", "next level", "two levels on"],
)
def test_a_cliff_at_a_full_pool(before, after, more, slower, fell):
    levels = (
        level(running=50.0, tpot_ms=10.0, pool_usage=before),
        level(running=50.0 * more, tpot_ms=10.0 * slower, pool_usage=after),
    )
    assert (find_cliff(Run(levels=levels)) is not None) is fell


@pytest.mark.parametrize(
    ("usage", "pending", "lost"), [(0.995, 12.0, True), (0.98, 12.0, False), (0.995, 8.0, False)]
)
def test_a_request_lost_at_a_full_pool(usage, pending, lost):
    prefill = PrefillReport(
        seq=2, origin=AT, new_sequences=1, new_tokens=100, running=9, pending_tokens=round(100 * pending)
    )
    run = Run(decodes=(line(1, 10, pool_usage=usage),), prefills=(prefill,))
    assert (lost_request(run) is not None) is lost


# GPU samples


def sample(time_s: float, busy: float = 0.5, gpu: int = 0) -> GpuSample:
    return GpuSample(origin=AT, time_s=time_s, graphics_busy=busy, gpu=gpu)


@pytest.mark.parametrize(("number", "told"), [(3, False), (4, True)])
def test_fewer_than_four_samples_say_nothing(number, told):
    samples = [sample(1.5 + 0.5 * n) for n in range(number)]
    assert (gpu_use(samples, Interval(0.0, 10.0)) is not None) is told


@pytest.mark.parametrize(("busy", "serves"), [(0.44, False), (0.56, True)])
def test_a_gpu_half_as_busy_as_the_busiest_serves_too(busy, serves):
    assert (len(working_gpus([sample(1.0, 1.0), sample(1.0, busy, gpu=1)])) == 2) is serves


@pytest.mark.parametrize(("common", "shifted"), [(0.75, False), (0.85, True)])
def test_a_clock_is_shifted_where_four_fifths_fall_together(common, shifted):
    samples = [sample(7200 + 100 * (1 - common) + n) for n in range(101)]
    assert bool(align_clocks(samples, Interval(0.0, 100.0))) is shifted


@pytest.mark.parametrize(("offset_s", "number", "told"), [(0.6, 3, True), (0.6, 2, False), (0.4, 3, False)])
def test_three_samples_half_a_second_into_idleness_tell_of_it(offset_s, number, told):
    scrapes = tuple(
        EngineMetrics(origin=AT, time_s=at, running=0.0, queued=0.0, generated_tokens=5.0)
        for at in (0.0, 10.0)
    )
    samples = tuple(sample(offset_s + (n or 0.0)) for n in range(number))
    assert (idle_use(Run(metrics=scrapes, gpu_samples=samples)) is not None) is told


# what a run of lines tells


@pytest.mark.parametrize(
    ("lines", "refilled", "noise", "told"),
    [(12, 9, 0.0, True), (11, 9, 0.0, False), (12, 10, 0.0, False), (12, 9, 1.3, True), (12, 9, 1.8, False)],
    ids=["twelve", "eleven", "over three tenths refilled", "3.6 % error", "4.6 % error"],
)
def test_steps_regressed_out_of_lines_with_prefill(lines, refilled, noise, told):
    mixed = [
        MixedLine(
            origin=AT,
            running=32,
            wall_ms=10.0 + 0.05 * tokens + noise * (-1) ** (n // 2),
            prefill_tokens=tokens,
            prefill_sequences=refilled,
            graph=True,
        )
        for n, tokens in enumerate((100, 200, 300, 400) * 3)
    ][:lines]
    assert bool(regressed_points(mixed, ())) is told


@pytest.mark.parametrize(
    ("each_side", "ratio", "told"), [(5, 1.3, True), (4, 1.3, False), (5, 1.12, False), (5, 1.18, True)]
)
def test_a_drift_of_15_percent_over_five_windows(each_side, ratio, told):
    run = Run(
        decodes=tuple(
            line(n + 1, 8, 5.0 if n <= each_side else 5.0 * ratio, time_s=0.2 * n)
            for n in range(2 * each_side + 1)
        )
    )
    windows = decode_windows(run).valid
    assert len(windows) == 2 * each_side
    assert (find_drift(windows, 8) is not None) is told
