import pytest

from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, level, server
from tests.rules.traces import with_trace


def _load(busy: float | None, graph: bool = True):
    return [
        Stage(running=n, step_ms=t, gpu_busy=busy, lines=9, graph=graph)
        for n, t in ((8, 2.7), (16, 3.1), (32, 2.7))
    ]


CLOSED_LOOP = [level(32, 10_000, 2.7, 60)]


def test_cannot_tell_whether_an_idle_gpu_waits_for_the_host_or_for_requests():
    answer = check("H301", server(_load(0.55)))
    assert isinstance(answer, CannotTell)
    assert "closed loop" in answer.command


def test_fires_when_the_gpu_idles_under_graphs():
    answer = check("H301", server(_load(0.55), levels=CLOSED_LOOP))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"  # 45 % idle do not fit into the 16 % beside decode steps
    assert any("S204" in ruled.rival for ruled in answer.ruled_out)
    assert any("H302" in ruled.rival for ruled in answer.ruled_out)
    assert any("16 % of the time lies beside decode steps" in line.text for line in answer.evidence)
    assert answer.gain is not None
    assert answer.gain.low <= answer.gain.tok_s <= answer.gain.high


def test_only_suspected_where_the_idle_time_fits_beside_decode_steps():
    answer = check("H301", server(_load(0.8), levels=CLOSED_LOOP))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"


def test_clear_when_the_gpu_is_busy():
    assert isinstance(check("H301", server(_load(0.97))), Clear)


def test_nearest_rival_graphs_off_takes_the_blame_itself():
    assert isinstance(check("H301", server(_load(0.2, graph=False))), Clear)


def test_nearest_rival_graphs_that_end_below_the_batch_take_the_blame_themselves():
    stages = [
        Stage(running=n, step_ms=t, gpu_busy=0.4, lines=9, graph=graph)
        for n, t, graph in ((8, 2.7, True), (32, 9.0, False))
    ]
    answer = check("H301", server(stages, levels=[level(32, 3300, 9.0, 60)]))
    assert isinstance(answer, Clear)
    assert "H303" in answer.reason


def test_lines_that_say_a_graph_was_used_outweigh_the_sizes_that_were_stated():
    stage = Stage(running=32, step_ms=2.7, gpu_busy=0.55, lines=9, graph=True)
    run = server([stage], levels=CLOSED_LOOP, decode_graph_sizes=(1, 2, 4, 8))
    assert isinstance(check("H301", run), Fired)


def test_cannot_tell_without_counters_and_says_what_the_steps_look_like():
    answer = check("H301", server(_load(None)))
    assert isinstance(answer, CannotTell)
    assert "monotone" in answer.needs


def test_confirmed_by_gpu_work_shorter_than_the_unprofiled_step():
    answer = check("H301", with_trace(server(_load(0.55)), batch=16, busy_ms=2.0))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert any("S204" in ruled.rival for ruled in answer.ruled_out)
    assert any("works 2.00 ms of a step that takes 3.10 ms" in line.text for line in answer.evidence)


def test_a_trace_at_a_batch_that_was_not_measured_is_no_evidence_of_idle_time():
    run = server(_load(0.55), levels=CLOSED_LOOP)
    assert check("H301", with_trace(run, batch=5, busy_ms=0.5)).evidence == check("H301", run).evidence


def test_a_busy_decode_step_in_the_trace_leaves_the_idle_time_to_prefill():
    answer = check("H301", with_trace(server(_load(0.55), levels=CLOSED_LOOP), batch=16, busy_ms=3.0))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert any("S204" in rival.rival for rival in answer.rivals)


def test_a_trace_over_unprofiled_steps_stands_in_for_counters():
    assert isinstance(check("H301", with_trace(server(_load(None)), batch=16, busy_ms=1.5)), Fired)
    assert isinstance(check("H301", with_trace(server(_load(None)), batch=16, busy_ms=3.0)), Clear)


def test_a_trace_at_another_batch_says_nothing_of_idle():
    assert isinstance(check("H301", with_trace(server(_load(None)), batch=5, busy_ms=0.5)), CannotTell)


@pytest.mark.parametrize(
    ("busy", "overlap", "kind"), [(0.88, False, Fired), (0.88, True, Clear), (0.95, False, Clear)]
)
def test_less_idle_time_counts_where_host_and_gpu_take_turns_by_setting(busy, overlap, kind):
    answer = check("H301", server(_load(busy), levels=CLOSED_LOOP, overlap_schedule=overlap))
    assert isinstance(answer, kind)


def test_most_of_a_short_turn_of_the_host_comes_back_and_half_of_a_long_one():
    def gain(busy: float, *, overlap: bool):
        return check("H301", server(_load(busy), levels=CLOSED_LOOP, overlap_schedule=overlap)).gain

    assert gain(0.75, overlap=False).tok_s == pytest.approx(10_000 / (1 - 0.88 * 0.25))
    assert gain(0.75, overlap=True).tok_s == pytest.approx(10_000 / (1 - 0.5 * 0.25))
    assert gain(0.55, overlap=False) == gain(0.55, overlap=True)


@pytest.mark.parametrize(("busy", "fires"), [(0.92, False), (0.88, True)])
def test_where_host_and_gpu_take_turns_a_tenth_idle_is_worth_naming(busy, fires):
    run = server(_load(busy), levels=CLOSED_LOOP, overlap_schedule=False)
    assert isinstance(check("H301", run), Fired) is fires
