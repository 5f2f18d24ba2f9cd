import msgspec
import pytest

from stepline.evidence.load import ClientHealth, LeverTrial, LoadLevel, StepRow
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport, PrefillReport, SchedulerEvent
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, diagnosed, level, server

KEPT_UP = ClientHealth(
    cpu_share=0.2, us_per_token=8.0, lag_p50_ms=0.1, lag_p99_ms=1.0, late_share=0.01, processes=1
)


def driven(
    tpot_ms: float, *, concurrency: int = 64, tok_s: float = 3000, health: ClientHealth | None = KEPT_UP
) -> LoadLevel:
    """A level over seconds 0 to 10 of the log."""
    return msgspec.structs.replace(
        level(concurrency, tok_s, tpot_ms, 90), start_s=0.0, end_s=10.0, health=health
    )


def decoding(running: int, step_ms: float, client: LoadLevel, **facts: object) -> Run:
    """The engine's lines while that level ran."""
    return server([Stage(running=running, step_ms=step_ms, lines=9, queued=0)], levels=[client], **facts)


def test_fires_when_tokens_reach_the_client_later_than_the_engine_makes_them():
    answer = check("H304", decoding(60, 8.0, driven(20.0)))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert "2.5×" in answer.headline
    assert [line.text[:62] for line in answer.evidence] == [
        "at 64 streams a token takes 20.0 ms to the client and 8.00 ms ",
        "the client holds 64 requests open; the engine runs 60 and 0 wa",
    ]
    assert [ruled.rival for ruled in answer.ruled_out] == ["S204 prefill-interference", "L101 client-bound"]
    assert [rival.rival for rival in answer.rivals] == ["a slow network"]


def test_fires_when_open_requests_are_not_in_the_engine():
    answer = check("H304", decoding(40, 8.0, driven(8.2, tok_s=4400)))
    assert isinstance(answer, Fired)
    assert "38 %" in answer.headline
    assert [ruled.rival for ruled in answer.ruled_out] == ["L101 client-bound"]
    # 40 in 8 ms is what the engine does now while it decodes, 64 in 8 ms what it could at best.
    assert (answer.gain.low, answer.gain.high) == (5000, 8000)
    assert answer.recoverable_tok_s == pytest.approx(6500 - 4400)


def test_a_client_that_does_not_measure_itself_stays_a_rival():
    answer = check("H304", decoding(60, 8.0, driven(20.0, health=None)))
    assert isinstance(answer, Fired)
    assert "L101 client-bound" in [rival.rival for rival in answer.rivals]


def test_a_client_that_was_late_accuses_nobody_else():
    late = msgspec.structs.replace(KEPT_UP, late_share=0.3)
    said = diagnosed(decoding(60, 8.0, driven(20.0, health=late)))
    assert [finding.code for finding in said.findings][:1] == ["L101"]
    assert isinstance(check("H304", decoding(60, 8.0, driven(20.0, health=late))), CannotTell)


@pytest.mark.parametrize(("client_ms", "running"), [(10.3, 64), (9.0, 58)])
def test_clear_when_both_sides_agree(client_ms, running):
    answer = check("H304", decoding(running, 8.0, driven(client_ms)))
    assert isinstance(answer, Clear)
    assert f"64 streams a token takes {client_ms:.3g}" in answer.reason
    assert "and 8.00 ms in the engine" in answer.reason


def test_clear_when_the_rest_waits_in_the_engine():
    run = server([Stage(running=8, step_ms=5.1, lines=9, queued=56)], levels=[driven(5.4, tok_s=1440)])
    assert isinstance(check("H304", run), Clear)


def test_prompts_between_the_steps_are_no_front_end():
    """A client's gap of half as much again as the step, as on a healthy server: the lines say so too."""
    pure, mixed = (Stage(running=64, step_ms=ms, lines=9) for ms in (7.1, 10.4))
    assert isinstance(check("H304", decoding(64, pure.step_ms, driven(10.9))), Fired)
    assert isinstance(check("H304", server([mixed], levels=[driven(10.9)])), Clear)


def test_the_heaviest_load_decides():
    light = msgspec.structs.replace(driven(20.0, concurrency=8), start_s=0.0, end_s=10.0)
    heavy = msgspec.structs.replace(driven(8.3), start_s=20.0, end_s=30.0)
    stages = [
        Stage(running=8, step_ms=8.0, lines=9),
        Stage(running=1, step_ms=8.0, lines=1),
        Stage(running=64, step_ms=8.0, lines=9),
    ]
    assert isinstance(check("H304", server(stages, levels=[light, heavy])), Clear)


def test_lines_at_a_level_s_opening_do_not_count():
    for lines, answer in ((3, CannotTell), (5, CannotTell), (6, Fired)):
        opening = [Stage(running=60, step_ms=8.0, lines=lines)]
        assert isinstance(check("H304", server(opening, levels=[driven(20.0)])), answer)


def lined(*lines: tuple[float, int, float]) -> Run:
    """Lines of (time, running, ms a token) beside a level from 0 to 10 s."""
    decodes = tuple(
        DecodeReport(
            seq=n,
            origin=Origin("server.log", n),
            time_s=time_s,
            running=running,
            queued=0,
            tok_s=1000 * running / step_ms,
        )
        for n, (time_s, running, step_ms) in enumerate(lines, 1)
    )
    return Run(decodes=decodes, levels=(driven(20.0),))


LATER = [(float(second), 64, 12.0) for second in range(4, 10)]


def test_the_opening_s_prompts_are_in_the_client_s_times_too():
    """Of 20 ms to the client the engine accounts for 17 when its opening is counted, and 12 without."""
    assert isinstance(check("H304", lined(*LATER)), Fired)
    opening = [(1.0, 64, 12.0), (2.0, 64, 40.0), (2.0, 64, 40.0)]
    assert isinstance(check("H304", lined(*opening, *LATER)), Clear)


def test_a_pause_before_the_level_is_not_the_engine_s_time():
    assert isinstance(check("H304", lined((0.0, 64, 900.0), *LATER)), Fired)


def test_the_drain_in_a_level_s_last_second_does_not_count():
    steady = [(float(second), 64, 19.0) for second in range(4, 9)]
    drain = [(10.0, 16, 5.0)] * 12
    assert isinstance(check("H304", lined(*steady, *drain)), Clear)


@pytest.mark.parametrize(
    ("start_s", "end_s", "answer"), [(2.0, 3.0, CannotTell), (10.5, 11.0, Fired), (-3.0, -1.0, Fired)]
)
def test_a_profiler_inside_the_level_leaves_nothing_to_compare(start_s, end_s, answer):
    run = decoding(60, 8.0, driven(20.0))
    marks = [
        SchedulerEvent(seq=seq, origin=Origin("server.log", seq), kind=kind, text="", time_s=time_s)
        for seq, kind, time_s in ((101, "profile-start", start_s), (102, "profile-end", end_s))
    ]
    assert isinstance(check("H304", msgspec.structs.replace(run, events=tuple(marks))), answer)


def test_streams_that_the_pool_threw_out_wait_in_the_engine():
    """With retractions a token may be late because its request waits in the queue; who is missing still shows."""
    event = SchedulerEvent(
        seq=90, origin=Origin("server.log", 90), kind="retraction", text="", time_s=5.0, amount=4
    )
    retracted = {"events": (event,)}
    answer = check("H304", msgspec.structs.replace(decoding(60, 8.0, driven(20.0)), **retracted))
    assert isinstance(answer, Clear)
    assert "the 64 requests that are open" in answer.reason
    assert isinstance(
        check("H304", msgspec.structs.replace(decoding(40, 8.0, driven(8.2)), **retracted)), Fired
    )
    cut = server(
        [Stage(running=60, step_ms=8.0, lines=9, pool_usage=1.0, context=450)], levels=[driven(20.0)]
    )
    lost = PrefillReport(
        seq=50, origin=Origin("server.log", 50), new_sequences=1, new_tokens=9, running=59, pending_tokens=900
    )
    assert isinstance(check("H304", msgspec.structs.replace(cut, prefills=(lost,))), Clear)


def test_ranks_are_added_up():
    run = decoding(30, 8.0, driven(8.2))
    other = tuple(msgspec.structs.replace(d, dp=1, seq=d.seq + 100) for d in run.decodes)
    mine = tuple(msgspec.structs.replace(d, dp=0) for d in run.decodes)
    assert isinstance(check("H304", msgspec.structs.replace(run, decodes=mine + other)), Clear)


def test_one_line_over_ten_seconds_is_enough():
    line = DecodeReport(
        seq=1,
        origin=Origin("server.log", 1),
        time_s=15.0,
        running=60,
        queued=0,
        tok_s=7500,
        instrument="interval",
    )
    client = msgspec.structs.replace(driven(20.0), end_s=20.0)
    run = Run(decodes=(line,), levels=(client,))
    assert isinstance(check("H304", run), Fired)
    early = msgspec.structs.replace(run, decodes=(msgspec.structs.replace(line, time_s=9.0),))
    assert isinstance(check("H304", early), CannotTell)


def by_clock(*states: tuple[float, int, int], tok_s: float) -> Run:
    """Lines over ten seconds (second, running, queued) of a level of 64 streams over seconds 0 to 30."""
    lines = tuple(
        DecodeReport(
            seq=index,
            origin=Origin("server.log", index),
            time_s=time_s,
            running=running,
            queued=queued,
            tok_s=tok_s,
            instrument="interval",
        )
        for index, (time_s, running, queued) in enumerate(states, 1)
    )
    return Run(decodes=lines, levels=(msgspec.structs.replace(driven(9.0, tok_s=tok_s), end_s=30.0),))


def test_a_line_over_ten_seconds_has_the_batch_of_its_moment():
    """The first line's rate covers the opening, its batch does not; and its moment counts for the mean batch."""
    answer = check("H304", by_clock((10.0, 20, 0), (20.0, 62, 0), tok_s=5000))
    assert isinstance(answer, Fired)
    assert "36 %" in answer.headline
    # 41 on average at 5,000 tok/s take 8.2 ms a token, so that 64 could have 7,805
    assert answer.gain.high == pytest.approx(7805, abs=1)


def test_nearest_rival_an_engine_with_a_queue_has_all_the_work_it_can_take():
    assert isinstance(check("H304", by_clock((10.0, 24, 4), (20.0, 24, 4), tok_s=3000)), Fired)
    assert isinstance(check("H304", by_clock((10.0, 24, 20), (20.0, 24, 20), tok_s=3000)), Clear)


def scraped(running: float, queued: float | None, *, first: float | None = None) -> Run:
    """Four scrapes of which three lie in the later part of the level."""
    states = ((1.0, 64.0), (4.0, running if first is None else first), (6.0, running), (8.0, running))
    metrics = tuple(
        EngineMetrics(origin=Origin("metrics.txt"), time_s=time_s, running=here, queued=queued)
        for time_s, here in states
    )
    return Run(levels=(driven(8.0),), metrics=metrics)


def test_gauges_tell_which_requests_are_not_in_the_engine():
    answer = check("H304", scraped(30, 0))
    assert isinstance(answer, Fired)
    assert answer.gain is None
    assert [line.text[:10] for line in answer.evidence] == ["the client"]
    assert [ruled.rival for ruled in answer.ruled_out] == ["L101 client-bound"]
    assert isinstance(check("H304", scraped(30, 34)), Clear)
    assert isinstance(check("H304", scraped(30, None)), CannotTell)


def test_one_request_is_always_on_its_way():
    few = msgspec.structs.replace(scraped(3, 0), levels=(driven(8.0, concurrency=4),))
    assert isinstance(check("H304", few), Clear)
    two = msgspec.structs.replace(scraped(2, 0), levels=(driven(8.0, concurrency=4),))
    assert isinstance(check("H304", two), Fired)


def test_requests_whose_prompts_are_being_computed_are_no_gap_of_the_front_end():
    assert isinstance(check("H304", scraped(62, 0, first=1)), Clear)


def stated(gap_ms: float, *lighter: StepRow) -> Run:
    """Both sides as somebody wrote them down for a batch of 96."""
    here = Origin("ab.csv", 2)
    return Run(
        levels=(LoadLevel(origin=here, running=96, itl_ms=gap_ms),),
        step_rows=(*lighter, StepRow(origin=here, running=96, step_ms=60.0)),
    )


def test_a_table_with_both_sides_is_enough_for_a_suspicion():
    answer = check("H304", stated(110.0))
    assert isinstance(answer, Fired)
    assert answer.recoverable_tok_s is None
    assert [finding.code for finding in diagnosed(stated(110.0)).findings] == ["H304"]
    assert isinstance(check("H304", stated(63.0)), Clear)
    assert isinstance(
        check("H304", stated(63.0, StepRow(origin=Origin("ab.csv", 1), running=8, step_ms=20.0))), Clear
    )


def test_with_drafts_the_sides_do_not_count_alike():
    run = decoding(60, 8.0, driven(20.0))
    drafted = tuple(msgspec.structs.replace(line, accept_length=2.5) for line in run.decodes)
    assert isinstance(check("H304", msgspec.structs.replace(run, decodes=drafted)), CannotTell)
    assert isinstance(check("H304", decoding(60, 8.0, driven(20.0), speculative="EAGLE")), CannotTell)


def test_an_a_b_of_the_tokenizer_confirms():
    trial = LeverTrial(
        origin=Origin("ab.csv", 3),
        lever="tokenizer=skip-tokenizer-init",
        running=1024,
        before=180,
        after=39,
        measure="ms",
    )
    top = diagnosed(Run(levers=(trial,))).findings[0]
    assert (top.code, top.status) == ("H304", "confirmed")


def test_gaps_of_a_late_front_end_are_no_step_that_grows_with_the_batch():
    """Whoever reads a cost per request from the client's gaps takes the front end's time for the engine's."""
    gaps = ((1, 5.0), (8, 6.0), (24, 11.0), (64, 30.0))
    levels, lines = [], []
    for index, (streams, gap_ms) in enumerate(gaps):
        start_s = 20.0 * index
        client = driven(gap_ms, concurrency=streams, tok_s=950 * streams / gap_ms)
        levels.append(
            msgspec.structs.replace(
                client, start_s=start_s, end_s=start_s + 15.0, itl_ms=gap_ms, ttft_ms=None, output_tokens=512
            )
        )
        lines += [
            DecodeReport(
                seq=10 * index + n,
                origin=Origin("server.log", 10 * index + n),
                time_s=start_s + n,
                running=streams,
                queued=0,
                tok_s=1000 * streams / min(gap_ms, 8.0),
                instrument="interval",
                prefill_tok_s=900.0,
            )
            for n in (12, 14)
        ]
    late = msgspec.structs.replace(server([], levels=levels), decodes=tuple(lines))
    assert isinstance(check("K403", late, context_length=400), CannotTell)
    unseen = msgspec.structs.replace(late, decodes=())
    assert isinstance(check("K403", unseen, context_length=400), Fired)
