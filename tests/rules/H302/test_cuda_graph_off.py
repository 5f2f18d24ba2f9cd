import msgspec
import pytest

from stepline.evidence.load import StepRow
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.scheduler import PrefillReport
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import LOG, Stage, check, picture, server
from tests.rules.traces import with_trace


def _eager(busy: float | None):
    return [
        Stage(running=1, step_ms=26.3, graph=False, gpu_busy=busy, lines=9),
        Stage(running=64, step_ms=35.0, graph=False, gpu_busy=busy, lines=9),
    ]


def test_confirmed_when_decode_is_eager_and_the_gpu_waits():
    answer = check("H302", server(_eager(0.2), decode_graphs=False))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert answer.gain is not None
    assert any("K404" in ruled.rival for ruled in answer.ruled_out)


def test_a_trace_of_launches_confirms_what_only_the_setting_says():
    stages = [Stage(running=n, step_ms=26.0, graph=None, gpu_busy=0.2, lines=9) for n in (1, 64)]
    run = server(stages, decode_graphs=False)
    for trace, status in ((False, "suspected"), (True, "confirmed")):
        answer = check("H302", with_trace(run, batch=64, busy_ms=5.0, eager=True) if trace else run)
        assert isinstance(answer, Fired)
        assert answer.status == status
    replayed = check("H302", with_trace(run, batch=64, busy_ms=5.0))
    assert isinstance(replayed, Fired)
    assert replayed.status == "suspected"


@pytest.mark.parametrize(("graph_launches", "launches"), [(0.0, 20.0), (30.0, 95.0)])
def test_a_trace_that_holds_graphs_or_few_of_the_launches_confirms_nothing(graph_launches, launches):
    """The profiler may drop launches, and an engine may replay small graphs between kernels launched alone."""
    stages = [Stage(running=n, step_ms=26.0, graph=None, gpu_busy=0.2, lines=9) for n in (1, 64)]
    run = with_trace(server(stages, decode_graphs=False), batch=64, busy_ms=5.0, eager=True)
    (rank,) = run.trace.ranks
    group = msgspec.structs.replace(rank.groups[0], graph_launches=graph_launches, launches=launches)
    trace = msgspec.structs.replace(run.trace, ranks=(msgspec.structs.replace(rank, groups=(group,)),))
    answer = check("H302", msgspec.structs.replace(run, trace=trace))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"


def test_a_table_may_state_that_steps_ran_without_graphs():
    def stated(graph: bool | None):
        row = StepRow(
            origin=Origin("steps.csv", 2), running=64, step_ms=35.0, context_tokens=320, graph=graph
        )
        return check("H302", msgspec.structs.replace(server([]), step_rows=(row,)))

    assert isinstance(stated(False), Fired)
    assert isinstance(stated(True), Clear)
    assert isinstance(stated(None), CannotTell)


def test_clear_when_the_gpu_is_busy_without_graphs():
    answer = check("H302", server(_eager(0.97), decode_graphs=False))
    assert isinstance(answer, Clear)
    assert "save little" in answer.reason


def test_suspected_far_above_the_floor_without_counters():
    answer = check("H302", server(_eager(None)))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"


def test_cannot_tell_near_the_floor_without_counters():
    stages = [Stage(running=64, step_ms=7.0, graph=False)]
    assert isinstance(check("H302", server(stages)), CannotTell)


def test_eager_prefill_lines_say_nothing_about_decode():
    run = server([Stage(running=64, step_ms=6.6, gpu_busy=0.2, lines=9)])
    prefill = PrefillReport(seq=0, origin=Origin("server.log", 1), new_sequences=1, new_tokens=9, graph=False)
    assert isinstance(check("H302", msgspec.structs.replace(run, prefills=(prefill,))), Clear)


def test_the_decode_counter_outweighs_the_setting():
    metrics = EngineMetrics(origin=Origin("metrics.txt"), decode_graph_passes=500.0)
    run = server([Stage(running=64, step_ms=6.6, graph=None)], metrics=metrics, decode_graphs=False)
    answer = check("H302", run)
    assert isinstance(answer, Clear)
    assert "decode pass counter" in answer.reason
    by_lines = check("H302", server([Stage(running=64, step_ms=6.6)]))
    assert "decode lines of the log" in by_lines.reason


def test_cannot_tell_when_nothing_mentions_graphs():
    assert isinstance(check("H302", server([Stage(running=8, step_ms=5.1, graph=None)])), CannotTell)


def test_the_gain_holds_what_the_gpu_needs_and_never_beats_the_floor():
    answer = check("H302", server(_eager(0.2), decode_graphs=False))
    assert 64_000 / 12 < answer.gain.low < answer.gain.tok_s < answer.gain.high
    assert answer.gain.tok_s == pytest.approx(64_000 / 7.0, rel=0.01)  # a fifth of 35 ms


def test_on_by_setting_is_clear_and_off_by_setting_alone_is_no_proof():
    no_flags = [Stage(running=64, step_ms=35.0, graph=None, gpu_busy=0.2, lines=9)]
    assert isinstance(check("H302", server(no_flags, decode_graphs=True)), Clear)
    answer = check("H302", server(no_flags, decode_graphs=False))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"


def test_graphs_in_most_passes_are_clear():
    metrics = EngineMetrics(origin=Origin("metrics.txt"), decode_graph_passes=90.0, decode_eager_passes=10.0)
    assert isinstance(check("H302", server(_eager(0.2), metrics=metrics)), Clear)


def test_cannot_tell_without_a_step():
    metrics = EngineMetrics(origin=Origin("metrics.txt"), decode_eager_passes=10.0)
    assert isinstance(check("H302", server([], metrics=metrics)), CannotTell)


def test_evidence_names_counter_lines_setting_and_floor():
    metrics = EngineMetrics(origin=Origin("metrics.txt"), decode_eager_passes=905.0)
    texts = [
        line.text
        for line in check("H302", server(_eager(0.2), metrics=metrics, decode_graphs=False)).evidence
    ]
    assert any("905 decode passes" in text for text in texts)
    assert any("switched off by setting" in text for text in texts)
    assert any("its floor" in text for text in texts)
    by_lines = [line.text for line in check("H302", server(_eager(0.2))).evidence]
    assert any("all 18 decode lines" in text for text in by_lines)
    assert check("H302", server(_eager(0.2))).evidence[0].origin == Origin(LOG, 1)
    assert not any("by setting" in text for text in by_lines)


def test_the_setting_is_cited_from_where_it_was_read():
    answer = check("H302", server(_eager(0.2), decode_graphs=False))
    cited = [line.origin for line in answer.evidence if "switched off by setting" in line.text]
    assert cited == [Origin("server_info.json", None, "decode_graphs")]


def test_where_the_gpu_hardly_works_in_a_step_its_floor_bounds_the_gain():
    """A GPU that is busy 2 % of a 26.3 ms step for one stream would read all weights in half a millisecond."""
    stages = [Stage(running=1, step_ms=26.3, graph=False, gpu_busy=0.02, lines=9)]
    with_floor, without = (check("H302", server(stages), gpu=gpu).gain for gpu in ("h200", None))
    assert with_floor.low < with_floor.tok_s <= with_floor.high
    assert with_floor.high == pytest.approx(
        4.8e12 / 15.0e9, rel=0.02
    )  # the memory's rate over the weights read
    assert without.tok_s == pytest.approx(1000 / (0.02 * 26.3))
    assert without.low < without.tok_s < without.high


def test_without_counters_the_rival_stays_open():
    answer = check("H302", server(_eager(None)))
    assert any("K404" in rival.rival for rival in answer.rivals)
    assert answer.ruled_out == ()
    assert answer.gain is not None
    assert check("H302", server(_eager(None), model=None), gpu=None).__class__ is CannotTell


def test_a_graph_may_take_a_fifth_less_or_a_quarter_more_than_the_gpu_works_now():
    gain = check("H302", server(_eager(0.2), decode_graphs=False)).gain
    assert gain.low == pytest.approx(64_000 / (1.25 * 7.0), rel=0.01)
    assert gain.high == pytest.approx(64_000 / (0.8 * 7.0), rel=0.01)


def test_without_counters_a_step_with_graphs_reaches_six_tenths_of_its_floor():
    run = server(_eager(None))
    floors = picture(run).floors
    gain = check("H302", run).gain
    assert gain.tok_s == pytest.approx(64_000 / (floors.expected.total_ms / 0.6))
    assert gain.high == pytest.approx(64_000 / floors.strict.total_ms)


@pytest.mark.parametrize(("times", "fires"), [(2.4, False), (2.6, True)])
def test_without_counters_a_step_is_suspected_from_two_and_a_half_floors_on(times, fires):
    floor = picture(server(_eager(None))).floors.here.total_ms
    answer = check("H302", server([Stage(running=64, step_ms=times * floor, graph=False)]))
    assert isinstance(answer, Fired) is fires
