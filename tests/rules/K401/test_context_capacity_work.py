import msgspec
import pytest

from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import LLAMA_8B, Stage, check, diagnosed, server
from tests.rules.traces import with_trace

LINEAR = [Stage(running=n, step_ms=2.1 + 0.72 * n) for n in (1, 8, 16, 32)]


def test_suspected_when_the_line_is_beyond_the_floor_and_the_configured_context_far_beyond_the_live():
    answer = check("K401", server(LINEAR, context_length=1_048_576))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"  # K403 and K404 fit the same line
    assert {rival.rival.split()[0] for rival in answer.rivals} == {"K403", "K404"}
    # 320 tokens of 131 kB each at 4.8 TB/s
    texts = [line.text for line in answer.evidence]
    assert "under uniform routing the floor grows by 8.74 µs a request" in texts


BEYOND_MEMORY = [Stage(running=n, step_ms=40 + 31 * n) for n in (1, 8, 16)]


def test_what_no_memory_could_hold_needs_no_floor_to_be_suspected():
    answer = check("K401", server(BEYOND_MEMORY, model=None, context_length=1_048_576), gpu=None)
    assert isinstance(answer, Fired)
    assert not any("uniform routing" in line.text for line in answer.evidence)


def test_cannot_tell_without_the_configured_context_or_the_live_one():
    nobody_says = check("K401", server(BEYOND_MEMORY, model=None), gpu=None)
    assert isinstance(nobody_says, CannotTell)
    assert nobody_says.needs == "the configured context"
    run = server(BEYOND_MEMORY, model=None, context_length=1_048_576)
    uncounted = tuple(msgspec.structs.replace(line, pool_tokens=None) for line in run.decodes)
    answer = check("K401", msgspec.structs.replace(run, decodes=uncounted), gpu=None)
    assert isinstance(answer, CannotTell)
    assert answer.needs == "the live context"


def test_it_takes_the_line_from_k403():
    diagnosis = diagnosed(server(LINEAR, context_length=1_048_576))
    assert [finding.code for finding in diagnosis.findings] == ["K401"]
    assert "K403" in {gap.code for gap in diagnosis.cannot_tell}


def test_clear_when_the_configured_context_is_near_the_live_one():
    assert isinstance(check("K401", server(LINEAR, context_length=1024)), Clear)


def test_clear_on_a_flat_step():
    flat = [Stage(running=n, step_ms=5.0 + 0.01 * n) for n in (1, 8, 32)]
    assert isinstance(check("K401", server(flat, context_length=1_048_576)), Clear)


def test_clear_when_kv_reads_explain_the_slope():
    # 60,000 live tokens of this model are 7.9 GB a request: 1.64 ms on an H200, so 1.9 ms is honest work.
    stages = [Stage(running=n, step_ms=5.0 + 1.9 * n, context=60_000) for n in (1, 4, 8)]
    assert isinstance(check("K401", server(stages, context_length=131_072)), Clear)


def test_cannot_tell_without_a_law():
    answer = check("K401", server(LINEAR[:1], context_length=1_048_576))
    assert isinstance(answer, CannotTell)


def test_cannot_tell_without_a_floor_while_bytes_could_explain_it():
    assert isinstance(
        check("K401", server(LINEAR, model=None, context_length=1_048_576), gpu=None), CannotTell
    )


def test_the_models_maximum_stands_in_for_a_setting_nobody_stated():
    assert isinstance(
        check("K401", server(LINEAR, model={**LLAMA_8B, "max_position_embeddings": 1_048_576})), Fired
    )


def test_confirmed_by_a_trace_whose_kernels_have_the_configured_extent():
    run = with_trace(server(LINEAR, context_length=1_048_576), batch=16, busy_ms=13.75, context_ms=11.8)
    answer = check("K401", run)
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert answer.gain is not None
    text = " ".join(line.text for line in answer.evidence)
    assert (
        "26 kernels of the configured extent, 0.369 ms a layer and request" in text
    )  # 11.8 ms of 2 layers at 16
    assert "4,097 = 1,048,576 / 256 + 1" in text
    assert "live context about 320 tokens" in text
    assert "configured for 8,192 tokens the step's GPU work would take 2." in text
    assert any("K403" in ruled.rival for ruled in answer.ruled_out)


def test_a_trace_confirms_it_even_without_a_law():
    run = with_trace(server(LINEAR[:1], context_length=1_048_576), batch=16, busy_ms=13.75, context_ms=11.8)
    answer = check("K401", run)
    assert isinstance(answer, Fired)
    assert answer.gain is None


@pytest.mark.parametrize("batch", [16, 64])
def test_little_of_it_in_a_trace_at_no_smaller_batch_than_the_load_s_is_clear(batch):
    """A trace alone, and one at 64 running beside a load of 32: nothing says that the load's step has more of it."""
    stages = [] if batch == 16 else LINEAR
    run = server(stages, context_length=1_048_576)
    traced = with_trace(run, batch=batch, busy_ms=13.75, context_ms=3.0, context_multiple=batch)
    assert isinstance(check("K401", traced), Clear)


def test_clear_by_a_well_attributed_trace_without_such_kernels():
    run = server(LINEAR, context_length=1_048_576)
    assert isinstance(check("K401", with_trace(run, batch=16, busy_ms=13.75)), Clear)
    small = with_trace(
        run, batch=16, busy_ms=13.75, context_ms=1.0
    )  # a share that would gain next to nothing
    assert isinstance(check("K401", small), Clear)


def test_a_trace_that_names_too_little_decides_nothing():
    run = with_trace(server(LINEAR, context_length=1_048_576), batch=16, busy_ms=13.75, unattributed_ms=6.0)
    answer = check("K401", run)
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"


def test_an_extent_that_only_looks_padded_is_not_called_the_configured_context():
    run = with_trace(
        server(LINEAR, context_length=1_048_576),
        batch=16,
        busy_ms=13.75,
        context_ms=11.8,
        context_tokens=None,
    )
    assert getattr(check("K401", run), "status", None) != "confirmed"


def test_clear_when_the_cost_follows_the_live_context():
    # One request at a growing context, then four of them: the cache is read slowly, whatever is configured.
    stages = [Stage(running=1, step_ms=3 + 0.4 * c / 1000, context=c) for c in (500, 8000, 24_000)]
    stages += [Stage(running=n, step_ms=3 + 9.6 * n, context=24_000) for n in (2, 4)]
    assert isinstance(check("K401", server(stages, context_length=1_048_576)), Clear)


def test_suspected_when_a_trace_at_a_smaller_batch_shows_what_comes_to_a_quarter_of_the_loads_step():
    steps = [Stage(running=n, step_ms=12.0 + 0.4 * n) for n in (16, 32, 64)]  # flat beside experts and cache
    run = server(steps, context_length=1_048_576)
    traced = with_trace(run, batch=16, busy_ms=18.0, context_ms=3.6, context_multiple=16)
    answer = check("K401", traced)
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert "38 %" in answer.headline  # 3.6 ms at 16 running are 14.4 of 37.6 ms at 64
    # 37.6 less 14.4 ms, and the gaps between those kernels at best
    assert answer.gain.tok_s == pytest.approx(1000 * 64 / 23.2, rel=0.01)
    assert answer.gain.low < answer.gain.tok_s < answer.gain.high
    shared = with_trace(run, batch=16, busy_ms=18.0, context_ms=3.6, context_multiple=3)
    assert isinstance(check("K401", shared), Clear)
    little = with_trace(run, batch=16, busy_ms=18.0, context_ms=2.2, context_multiple=16)
    assert isinstance(check("K401", little), Clear)
