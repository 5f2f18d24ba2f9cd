import msgspec
import pytest

from stepline.evidence.run import ReadingDoubt, Run
from stepline.evidence.trace import TraceDoubt
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.exchange import Rank, exchanging
from tests.rules.server import Stage, check, diagnosed, server

WHOLE = Rank(own_ms=2.0, exposed_ms=0.1)


def _changed(run: Run, **fields: object) -> Run:
    """The run with other fields of its only rank."""
    trace = run.trace
    rank = msgspec.structs.replace(trace.ranks[0], **fields)
    return msgspec.structs.replace(run, trace=msgspec.structs.replace(trace, ranks=(rank,)))


def _steps(*kinds: str, set_aside: str | None = None):
    step = exchanging(WHOLE).trace.ranks[0].steps[0]
    return tuple(msgspec.structs.replace(step, kind=kind, set_aside=set_aside) for kind in kinds)


def test_clear_on_a_whole_trace():
    assert isinstance(check("L105", exchanging(WHOLE)), Clear)
    assert isinstance(check("L105", exchanging(WHOLE, step_ms=None)), Clear)


def test_confirmed_when_the_trace_contradicts_the_unprofiled_step():
    run = exchanging(WHOLE, step_ms=1.5)
    answer = check("L105", run)
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert "2.1 ms" in answer.headline
    assert isinstance(check("C501", run), CannotTell)  # no other rule uses such a trace


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"gpu_events": 0}, "no GPU work"),
        ({"steps": (), "groups": ()}, "nothing in it repeats"),
        ({"steps": _steps("prefill", "draft"), "groups": ()}, "only draft, prefill"),
        (
            {
                "steps": (
                    *_steps("decode"),
                    *_steps("decode", set_aside="under-recorded graph replay: 3 of 9"),
                )
            },
            "1 of 2 graph replays",
        ),
    ],
)
def test_confirmed_when_nothing_about_decode_follows(fields, says):
    answer = check("L105", _changed(exchanging(WHOLE), **fields))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert says in answer.headline
    assert answer.recoverable_tok_s is None


def test_confirmed_when_the_trace_could_not_be_read():
    doubt = ReadingDoubt(topic="trace", text="the trace was left out: no trace")
    run = msgspec.structs.replace(server([]), doubts=(doubt,))
    assert isinstance(check("L105", run), Fired)


@pytest.mark.parametrize("topic", ["truncated", "damaged", "times"])
def test_suspected_when_part_of_the_file_was_not_read(topic):
    answer = check("L105", _changed(exchanging(WHOLE), doubts=(TraceDoubt(topic=topic, text="half"),)))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.rivals


@pytest.mark.parametrize("topic", ["disturbed", "steps", "graph", "devices"])
def test_nearest_rival_a_stretched_or_paused_trace_is_sound(topic):
    run = _changed(exchanging(WHOLE), doubts=(TraceDoubt(topic=topic, text="stacks"),))
    assert isinstance(check("L105", run), Clear)


def test_a_single_replay_with_gaps_is_set_aside_and_no_fault():
    steps = (*_steps(*["decode"] * 19), *_steps("decode", set_aside="under-recorded graph replay: 3 of 9"))
    assert isinstance(check("L105", _changed(exchanging(WHOLE), steps=steps)), Clear)


@pytest.mark.parametrize("kind", ["verify", "mixed"])
def test_verifying_and_mixed_steps_decode(kind):
    assert isinstance(check("L105", _changed(exchanging(WHOLE), steps=_steps(kind))), Clear)


def test_cannot_tell_from_steps_that_nothing_names():
    run = _changed(exchanging(WHOLE), steps=_steps("step", "step"), groups=())
    assert isinstance(check("L105", run), CannotTell)


def test_clear_without_a_trace():
    assert isinstance(check("L105", server([Stage(running=8, step_ms=20.0)])), Clear)


def test_the_stretch_is_told():
    group = exchanging(WHOLE).trace.ranks[0].groups[0]
    run = _changed(exchanging(WHOLE), groups=(msgspec.structs.replace(group, traced_period_ms=4.8),))
    assert "2.0×" in check("L105", run).reason


def test_a_trace_at_fault_comes_after_causes_that_do_not_need_it():
    run = server([Stage(running=8, step_ms=5.0, queued=40)], max_running=8)
    trace = _changed(exchanging(WHOLE), steps=_steps("prefill"), groups=()).trace
    codes = [finding.code for finding in diagnosed(msgspec.structs.replace(run, trace=trace)).findings]
    assert codes == ["S201", "L105"]


def test_cannot_tell_without_gpu_work_where_nothing_names_a_gpu():
    run = _changed(exchanging(WHOLE), gpu_events=0, device=None)
    assert isinstance(check("L105", run, gpu=None), CannotTell)


@pytest.mark.parametrize(("lacking", "fires"), [(8, False), (12, True)])
def test_a_tenth_of_replays_without_their_kernels_is_the_recording_s_fault(lacking, fires):
    bad = _steps(*["decode"] * lacking, set_aside="under-recorded graph replay: 3 of 9")
    run = _changed(exchanging(WHOLE), steps=(*bad, *_steps(*["decode"] * (100 - lacking))))
    assert isinstance(check("L105", run), Fired) is fires
