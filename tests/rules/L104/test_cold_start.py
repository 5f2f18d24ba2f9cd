import msgspec
import pytest

from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import SchedulerEvent
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, diagnosed, level, server

STEADY = [Stage(running=1, step_ms=5.0), Stage(running=8, step_ms=5.1)]


def test_fires_when_the_lightest_level_waits_longest():
    answer = check("L104", server(STEADY, levels=[level(1, 190, 5.0, 26800), level(8, 1450, 5.1, 60)]))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"  # another request may have come first
    assert answer.evidence[0].text == "first tokens took 26.8 s at C = 1, but 60.0 ms at a heavier load"
    assert answer.recoverable_tok_s is None  # it costs a benchmark, not the server


def test_confirmed_and_first_when_the_same_level_reads_faster_later():
    levels = [level(1, 122, 4.9, 43), level(1, 195, 4.9, 43)]
    answer = check("L104", server(STEADY, levels=levels))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert diagnosed(server(STEADY, levels=levels)).findings[0].code == "L104"


def test_two_equal_measurements_are_clear():
    assert isinstance(
        check("L104", server(STEADY, levels=[level(1, 191, 4.9, 43), level(1, 195, 4.9, 43)])), Clear
    )


def test_the_opening_burst_of_a_level_is_no_first_reading_of_it():
    """One that ended after 4 of 64 answers reads slower than the same level in full."""
    whole = msgspec.structs.replace(level(64, 6500, 6.6, 270), requests=256)
    cut = msgspec.structs.replace(whole, tok_s=1200.0, requests=4)
    assert isinstance(check("L104", server(STEADY, levels=[cut, whole])), Clear)
    as_many_as_streams = msgspec.structs.replace(cut, requests=64)
    assert isinstance(check("L104", server(STEADY, levels=[as_many_as_streams, whole])), Clear)
    enough = msgspec.structs.replace(cut, requests=192)
    assert isinstance(check("L104", server(STEADY, levels=[enough, whole])), Fired)


def test_a_burst_waits_and_no_load_is_heavier_for_it():
    """64 requests of 64 streams start at once: their wait is no sign of a cold server beside a steady load."""
    burst = msgspec.structs.replace(level(64, 1400, 32, 9700), requests=64)
    steady = msgspec.structs.replace(level(128, 1500, 42, 718), requests=2560)
    assert isinstance(check("L104", server(STEADY, levels=[burst, steady])), Clear)
    slow = msgspec.structs.replace(burst, requests=640)
    assert isinstance(check("L104", server(STEADY, levels=[slow, steady])), Fired)


def test_another_workload_at_the_same_concurrency_is_no_repeat():
    first = msgspec.structs.replace(level(12, 964, 10, 92), workload="telecom", requests=400)
    same = msgspec.structs.replace(level(12, 1359, 8, 92), workload="telecom", requests=400)
    other = msgspec.structs.replace(same, workload="airline")
    longer = msgspec.structs.replace(same, input_tokens=9000.0)
    assert isinstance(check("L104", server(STEADY, levels=[first, same])), Fired)
    assert isinstance(check("L104", server(STEADY, levels=[first, other])), Clear)
    assert isinstance(check("L104", server(STEADY, levels=[first, longer])), Clear)


def test_levels_that_nobody_described_are_repeats_only_with_as_many_requests():
    first = msgspec.structs.replace(
        level(64, 1782, 10, 106), requests=2498, input_tokens=None, output_tokens=None, duration_s=405.0
    )
    other = msgspec.structs.replace(first, tok_s=2100.0, requests=2946, duration_s=702.0)
    assert isinstance(check("L104", server(STEADY, levels=[first, other])), Clear)
    again = msgspec.structs.replace(other, requests=2498)
    assert isinstance(check("L104", server(STEADY, levels=[first, again])), Fired)


def test_the_order_of_measuring_is_that_of_time_not_of_files():
    """A level read slower the second time is no cold start, whatever file comes first."""
    early = msgspec.structs.replace(level(8, 1200, 6, 40), start_s=1000.0)
    late = msgspec.structs.replace(level(8, 900, 8, 40), start_s=2000.0)
    assert isinstance(check("L104", server(STEADY, levels=[late, early])), Clear)
    assert isinstance(
        check("L104", server(STEADY, levels=[early, msgspec.structs.replace(late, start_s=500.0)])), Fired
    )


def test_fires_when_kernels_are_compiled_while_serving():
    run = server(STEADY)
    events = [
        SchedulerEvent(seq=0, origin=Origin("server.log", 1), kind="ready", text="ready"),
        SchedulerEvent(
            seq=3, origin=Origin("server.log", 9), kind="jit-compile", text="Entering DeepGEMM JIT"
        ),
    ]
    assert isinstance(check("L104", msgspec.structs.replace(run, events=tuple(events))), Fired)


def test_compiling_before_ready_is_clear():
    run = server(STEADY)
    events = [
        SchedulerEvent(
            seq=0, origin=Origin("server.log", 1), kind="jit-compile", text="Entering DeepGEMM JIT"
        ),
        SchedulerEvent(seq=1, origin=Origin("server.log", 9), kind="ready", text="ready"),
    ]
    assert isinstance(check("L104", msgspec.structs.replace(run, events=tuple(events))), Clear)


def test_nearest_rival_queueing_grows_with_load_and_is_clear():
    assert isinstance(
        check("L104", server(STEADY, levels=[level(1, 190, 5.0, 24), level(64, 1450, 5.1, 4945)])), Clear
    )


def test_cannot_tell_from_nothing():
    assert isinstance(check("L104", Run()), CannotTell)


def _again(first_p99_ms: float, later_p99_ms: float):
    levels = [
        msgspec.structs.replace(level(1, tok_s, 4.9, 26), ttft_p99_ms=p99)
        for tok_s, p99 in ((190, first_p99_ms), (204, later_p99_ms))
    ]
    return check("L104", server(STEADY, levels=levels))


def test_suspected_when_a_first_token_came_far_later_the_first_time():
    answer = _again(516.0, 31.5)
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.rivals


@pytest.mark.parametrize(
    ("first_ms", "later_ms"), [(160.0, 57.0), (200.0, 10.0), (500.0, 150.0), (31.0, 516.0)]
)
def test_ordinary_differences_of_the_slowest_first_token_are_clear(first_ms, later_ms):
    assert isinstance(_again(first_ms, later_ms), Clear)


@pytest.mark.parametrize(("warm_s", "kind"), [(0.0, Clear), (100.0, Fired)])
def test_a_server_that_answered_quickly_before_was_warm(warm_s, kind):
    """Levels of 24, 8 and 24 streams; the first at second 0, or after the others."""
    timed = ((24, 60, warm_s), (8, 735, 20.0), (24, 92, 40.0))
    levels = [
        msgspec.structs.replace(level(n, 900, 9.0, ttft_ms), start_s=start_s, end_s=start_s + 15.0)
        for n, ttft_ms, start_s in sorted(timed, key=lambda one: one[2])
    ]
    assert isinstance(check("L104", server(STEADY, levels=levels)), kind)


@pytest.mark.parametrize(("requests", "fires"), [(28, False), (36, True)])
def test_a_first_reading_holds_answers_of_half_its_streams(requests, fires):
    whole = msgspec.structs.replace(level(64, 6500, 6.6, 270), requests=256, duration_s=30.0)
    first = msgspec.structs.replace(whole, tok_s=1200.0, requests=requests)
    assert isinstance(check("L104", server(STEADY, levels=[first, whole])), Fired) is fires


@pytest.mark.parametrize(("faster", "fires"), [(1.1, False), (1.2, True)])
def test_a_repeated_level_15_percent_faster_was_cold_the_first_time(faster, fires):
    levels = [level(1, 100, 4.9, 43), level(1, 100 * faster, 4.9, 43)]
    assert isinstance(check("L104", server(STEADY, levels=levels)), Fired) is fires


@pytest.mark.parametrize(("times", "fires"), [(4.5, False), (5.5, True)])
def test_a_first_token_five_times_later_under_light_load(times, fires):
    levels = [level(1, 190, 5.0, 300 * times), level(8, 1450, 5.1, 300)]
    assert isinstance(check("L104", server(STEADY, levels=levels)), Fired) is fires


@pytest.mark.parametrize(("later_ms", "fires"), [(180.0, False), (220.0, True)])
def test_a_slowest_first_token_must_be_200_ms_later_too(later_ms, fires):
    assert isinstance(_again(20.0 + later_ms, 20.0), Fired) is fires
