import msgspec

from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport, PrefillReport, SchedulerEvent
from stepline.model.measure.windows import decode_windows


def decode(seq, running=8, tok_s=1600.0, **more):
    return DecodeReport(seq=seq, origin=Origin("server.log", seq), running=running, tok_s=tok_s, **more)


def prefill(seq, **more):
    return PrefillReport(seq=seq, origin=Origin("server.log", seq), new_sequences=1, new_tokens=256, **more)


def event(seq, kind):
    return SchedulerEvent(seq=seq, origin=Origin("server.log", seq), kind=kind, text=kind)


def _windows(*records):
    kinds = {DecodeReport: [], PrefillReport: [], SchedulerEvent: []}
    for record in records:
        kinds[type(record)].append(record)
    return decode_windows(
        Run(
            decodes=tuple(kinds[DecodeReport]),
            prefills=tuple(kinds[PrefillReport]),
            events=tuple(kinds[SchedulerEvent]),
        )
    )


def test_two_equal_neighbours_give_a_step():
    windows = _windows(decode(1), decode(2))
    assert [w.step_ms for w in windows.valid] == [5.0]
    assert len(windows.unverified) == 1


def test_what_lies_between_two_lines_spoils_the_second():
    assert _windows(decode(1), prefill(2), decode(3)).discarded["prefill inside"] == 1
    assert _windows(decode(1), event(2, "retraction"), decode(3)).discarded["requests retracted"] == 1
    assert _windows(decode(1, running=7), decode(2)).discarded["batch changed"] == 1
    assert _windows(decode(1), decode(2, tok_s=0.0)).discarded["no rate"] == 1


def test_every_line_until_the_profiler_ends_and_the_one_after_are_left_out():
    windows = _windows(
        decode(1),
        decode(2),
        event(3, "profile-start"),
        decode(4),
        decode(5),
        event(6, "profile-end"),
        decode(7),
        decode(8),
    )
    assert [w.seq for w in windows.valid] == [2, 8]


def test_accepted_drafts_lengthen_the_step():
    assert _windows(decode(1, accept_length=2.0), decode(2, accept_length=2.0)).valid[0].step_ms == 10.0


def test_ranks_are_judged_apart_and_one_pipeline_stage_is_taken():
    windows = _windows(
        decode(1, dp=0, pp=0),
        decode(2, dp=1, pp=0),
        decode(3, dp=0, pp=1),
        decode(4, dp=0, pp=0),
        decode(5, dp=1, pp=0),
    )
    assert [(w.seq, w.dp) for w in windows.valid] == [(4, 0), (5, 1)]


def test_a_prefill_on_any_rank_stalls_all():
    windows = _windows(decode(1, dp=0), decode(2, dp=1), prefill(3, dp=1), decode(4, dp=0), decode(5, dp=1))
    assert windows.valid == ()


def test_a_hole_in_an_excerpt_leaves_the_next_line_unverified():
    windows = _windows(decode(1, time_s=0.0), decode(2, time_s=60.0), decode(3, time_s=60.0))
    assert [w.seq for w in windows.valid] == [3]


def test_lines_of_two_files_are_never_paired():
    first = decode(1)
    second = msgspec.structs.replace(decode(2), origin=Origin("server.log.1", 1))
    assert _windows(first, second).valid == ()
