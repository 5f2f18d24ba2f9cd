import msgspec
import pytest

from stepline.evidence.load import LeverTrial
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, diagnosed, level, server


def _with_spec(step_ms: float, accept: float, plain_ms: float | None):
    """Six windows that speculate and, if asked, six at the same batch that do not."""
    stages = [Stage(running=4, step_ms=step_ms / accept, lines=6)]
    stages += [] if plain_ms is None else [Stage(running=4, step_ms=plain_ms, lines=6)]
    run = server(stages)
    decodes = [msgspec.structs.replace(d, accept_length=accept) if d.seq <= 6 else d for d in run.decodes]
    return msgspec.structs.replace(run, decodes=tuple(decodes))


def test_confirmed_when_plain_decoding_is_faster_at_the_same_batch():
    answer = check("S205", _with_spec(15.4, 1.97, 2.9))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert any("poor draft" in ruled.rival for ruled in answer.ruled_out)
    assert "halves the step count" in answer.headline


def test_drafts_that_save_fewer_steps_are_not_said_to_halve_them():
    answer = check("S205", _with_spec(15.4, 1.5, 2.9))
    assert isinstance(answer, Fired)
    assert "halves" not in answer.headline
    assert "faster without speculation" in answer.headline


def test_clear_when_speculation_pays():
    assert isinstance(check("S205", _with_spec(6.0, 2.5, 4.0)), Clear)


def test_suspected_when_next_to_nothing_is_accepted():
    answer = check("S205", _with_spec(6.0, 1.05, None))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"


def _counted(accepted: float, *, busy: float | None = None, **setup: object):
    """A server that says a good accept length over the few steps that had drafts, and counts all tokens."""
    stages = [Stage(running=n, step_ms=8.0, gpu_busy=busy, lines=9) for n in (4, 16)]
    said = EngineMetrics(
        origin=Origin("metrics.txt"), accepted_drafts=accepted, draft_rounds=100.0, generated_tokens=30_000.0
    )
    return server(stages, metrics=said, levels=[level(16, 1900.0, 8.0, 60)], **setup)


def test_drafts_that_are_seldom_made_are_wasted_however_well_they_are_accepted():
    answer = check("S205", _counted(accepted=62.0))
    assert isinstance(answer, Fired)
    assert "1.00 tokens" in answer.headline
    assert isinstance(check("S205", _counted(accepted=15_000.0)), CannotTell)


def test_nearest_rival_the_host_that_makes_wasted_drafts_is_not_blamed_beside_them():
    run = _counted(accepted=62.0, busy=0.5)
    wasted = check("S205", run)
    assert isinstance(wasted, Fired)
    assert wasted.gain is not None
    assert wasted.gain.tok_s > 1900.0 * 1.2
    assert isinstance(check("H301", run), Clear)
    assert isinstance(check("H301", _counted(accepted=15_000.0, busy=0.5)), Fired)


def test_wasted_drafts_name_an_idle_gpu_and_no_busy_one():
    waits, works = (check("S205", _counted(accepted=62.0, busy=busy)).evidence for busy in (0.5, 0.95))
    assert any("idles 50 %" in line.text for line in waits)
    assert not any("idles" in line.text for line in works)


def test_wasted_drafts_promise_a_gain_where_the_model_is_not_known():
    answer = check("S205", _counted(accepted=62.0, model=None))
    assert isinstance(answer, Fired)
    assert answer.gain.low == 1900.0  # plain decoding may turn out as fast
    assert answer.gain.low < answer.gain.tok_s < answer.gain.high


def test_cannot_tell_with_good_drafts_and_no_comparison():
    assert isinstance(check("S205", _with_spec(6.0, 2.5, None)), CannotTell)


def test_cannot_tell_from_nothing():
    assert isinstance(check("S205", Run()), CannotTell)


def test_nearest_rival_a_server_that_does_not_speculate_is_clear():
    assert isinstance(check("S205", server([Stage(running=4, step_ms=15.0)])), Clear)


def test_an_ab_that_made_it_slower_confirms_it():
    lever = LeverTrial(
        origin=Origin("ab.csv", 3), lever="spec_tokens=2", concurrency=8, before=163.2, after=143.8
    )
    run = msgspec.structs.replace(server([]), levers=(lever,))
    assert [finding.code for finding in diagnosed(run).findings] == ["S205"]


@pytest.mark.parametrize(("accept", "said"), [(1.75, False), (1.85, True)])
def test_from_1_8_tokens_a_step_on_speculation_is_said_to_halve_the_steps(accept, said):
    answer = check("S205", _with_spec(15.4, accept, 2.9))
    assert ("halves the step count" in answer.headline) is said


@pytest.mark.parametrize(("plain_ms", "fires"), [(9.4, False), (8.8, True)])
def test_plain_decoding_a_tenth_faster_is_a_loss(plain_ms, fires):
    """A speculative step of 20 ms with two tokens makes one in 10 ms."""
    assert isinstance(check("S205", _with_spec(20.0, 2.0, plain_ms)), Fired) is fires
