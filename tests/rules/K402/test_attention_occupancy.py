import msgspec
import pytest

from stepline.evidence.load import LoadLevel, StepRow
from stepline.evidence.origin import Origin
from stepline.evidence.trace import TraceKernel
from stepline.findings.outcome import CannotTell, Clear, Fired
from stepline.model.signs.context_law import cache_at_most
from tests.rules.server import Stage, check, level, picture, server
from tests.rules.traces import with_trace


def _contexts(slope_us_per_token: float):
    """Batch 1 at four contexts on a step of 7 ms, growing by so many microseconds a token."""
    return [
        Stage(running=1, step_ms=7 + slope_us_per_token * c / 1000, context=c)
        for c in (1000, 4000, 16000, 32000)
    ]


def test_fires_when_the_cache_is_read_several_times_more_slowly_than_the_weights():
    answer = check("K402", server(_contexts(0.44)))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert any("K404" in rival.rival for rival in answer.rivals)
    assert answer.gain is not None


def test_it_needs_no_gpu():
    assert isinstance(check("K402", server(_contexts(0.44)), gpu=None), Fired)


def test_nearest_rival_honest_cache_reads_are_clear():
    assert isinstance(check("K402", server(_contexts(0.059))), Clear)


def test_clear_on_a_flat_step():
    assert isinstance(check("K402", server(_contexts(0.0))), Clear)


def test_clear_when_the_slow_read_costs_little():
    stages = [Stage(running=1, step_ms=7 + 0.44 * c / 1000, context=c) for c in (100, 600)]
    assert isinstance(check("K402", server(stages)), Clear)


def test_cannot_tell_from_one_context():
    assert isinstance(check("K402", server([Stage(running=1, step_ms=7.0)])), CannotTell)


def test_cannot_tell_without_the_model():
    assert isinstance(check("K402", server(_contexts(0.44), model=None)), CannotTell)


@pytest.mark.parametrize(("rates", "kind"), [((147.64, 126.41), Fired), ((144.17, 143.35), Clear)])
def test_two_stated_rates_are_enough(rates, kind):
    rows = tuple(
        StepRow(origin=Origin("rates.csv", line), running=1, tok_s=rate, context_tokens=context)
        for line, (rate, context) in enumerate(zip(rates, (234, 2154), strict=True), start=2)
    )
    assert isinstance(check("K402", msgspec.structs.replace(server([]), step_rows=rows), gpu=None), kind)


@pytest.mark.parametrize(("page", "kind"), [(1, Fired), (256, CannotTell)])
def test_a_pool_that_counts_whole_pages_does_not_tell_contexts_apart(page, kind):
    assert isinstance(check("K402", server(_contexts(0.44), page_tokens=page)), kind)


def test_rows_without_a_rate_or_a_context_are_passed_over():
    rows = tuple(
        StepRow(origin=Origin("rates.csv", line), running=1, tok_s=tok_s, context_tokens=context)
        for line, (tok_s, context) in enumerate(
            ((147.64, 234), (None, 1000), (100.0, None), (126.41, 2154)), start=2
        )
    )
    whole = check("K402", msgspec.structs.replace(server([]), step_rows=(rows[0], rows[3])), gpu=None)
    assert (
        check("K402", msgspec.structs.replace(server([]), step_rows=rows), gpu=None).headline
        == whole.headline
    )


def test_what_single_streams_show_promises_nothing_for_a_batch_of_unknown_contexts():
    """Rates of one stream at two prompt lengths, and a log of 64 running whose lines do not count tokens."""
    levels = tuple(
        LoadLevel(origin=Origin("rates.csv", line), concurrency=1, tok_s=tok_s, input_tokens=tokens)
        for line, (tok_s, tokens) in enumerate(((135.0, 1000), (47.4, 32_000)), start=2)
    )
    load = server([Stage(running=64, step_ms=30.0)])
    uncounted = tuple(msgspec.structs.replace(line, pool_tokens=None) for line in load.decodes)
    answer = check("K402", msgspec.structs.replace(load, levels=levels, decodes=uncounted))
    assert isinstance(answer, Fired)
    assert answer.gain is None


def test_no_cost_at_the_load_is_made_of_contexts_where_no_step_of_the_load_is_known():
    levels = tuple(
        LoadLevel(origin=Origin("rates.csv", line), concurrency=1, tok_s=tok_s, input_tokens=tokens)
        for line, (tok_s, tokens) in enumerate(((135.0, 1000), (47.4, 32_000)), start=2)
    )
    run = msgspec.structs.replace(server([], model=None), levels=levels)
    assert cache_at_most(picture(run, gpu=None, context_length=4000)) is None


def _traced(waves: float, attention_ms: float, traced_batch: int = 8, **facts: object):
    """Eight sequences of 24,000 tokens: a step of 37 ms, so much of it in an attention kernel of so many waves."""
    kernel = TraceKernel(
        name="_fwd_grouped_kernel_stage1",
        component="attention",
        found_by="name",
        per_step=32.0,
        busy_ms=attention_ms,
        count=256,
        total_ms=8 * attention_ms,
        mean_us=1000.0,
        grid=(8, 8, 1),
        waves=waves,
    )
    loaded = msgspec.structs.replace(level(8, 100.0, 45.0, 4000.0), input_tokens=24_000, output_tokens=128)
    run = server([Stage(running=8, step_ms=37.0, context=24_000)], levels=[loaded] if facts else (), **facts)
    return with_trace(run, batch=traced_batch, busy_ms=36.5, attention=kernel)


def test_a_trace_confirms_a_grid_that_leaves_sms_idle():
    answer = check("K402", _traced(waves=0.24, attention_ms=31.0))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert "24 %" in answer.headline
    assert any("runs 8×8 blocks" in line.text for line in answer.evidence)
    assert answer.gain is not None


@pytest.mark.parametrize(("traced_batch", "fires"), [(1, False), (2, True), (8, True)])
def test_a_grid_that_the_loads_batch_would_fill_is_not_the_loads(traced_batch, fires):
    answer = check(
        "K402", _traced(waves=0.2, attention_ms=31.0, traced_batch=traced_batch)
    )  # 1.6 and 0.8 waves at 8
    assert isinstance(answer, Fired) is fires


def test_a_trace_without_attention_kernels_leaves_it_to_the_contexts():
    run = server(_contexts(0.44))
    assert check("K402", with_trace(run, batch=8, busy_ms=5.0)) == check("K402", run)


def test_where_prompts_share_forwards_with_answers_their_pieces_get_quicker_too():
    mixed = check(
        "K402", _traced(waves=0.24, attention_ms=31.0, graph_mode="full", chunked_prefill_tokens=8192)
    ).gain
    alone = check("K402", _traced(waves=0.24, attention_ms=31.0, chunked_prefill_tokens=8192)).gain
    assert (mixed.low, mixed.tok_s) == (alone.low, alone.tok_s)
    assert mixed.high > alone.high


@pytest.mark.parametrize(("waves", "attention_ms"), [(3.0, 31.0), (0.24, 3.0)])
def test_a_full_grid_or_a_fast_read_is_not_confirmed(waves, attention_ms):
    assert not isinstance(check("K402", _traced(waves, attention_ms)), Fired)


def _probed(slope_us_per_token: float):
    """A load of 64 at one context, and a batch of 8 at that and at a longer one."""
    step = [(8, 600), (8, 3600), (64, 600)]
    return [
        Stage(running=n, step_ms=7 + slope_us_per_token * n * c / 1000, context=c, pool_usage=0.1)
        for n, c in step
    ]


def test_another_context_at_a_smaller_batch_clears_the_load():
    answer = check("K402", server(_probed(0.008)))
    assert isinstance(answer, Clear)
    assert "at 8 running a step grows by 64.0 µs for each thousand tokens" in answer.reason
    assert "at 64 the cache costs 0.307 ms of 7.31 ms at most" in answer.reason


def test_another_context_at_a_smaller_batch_says_which_batch_is_missing():
    answer = check("K402", server(_probed(0.06)))
    assert isinstance(answer, CannotTell)
    assert "steps at 64 running over contexts" in answer.needs


def test_without_a_trace_a_sound_backend_may_take_a_fifth_less_or_twice_as_long():
    gain = check("K402", server(_contexts(0.12))).gain
    steps = [1000 / rate for rate in (gain.tok_s, gain.high, gain.low)]
    assert steps[1] / steps[0] == pytest.approx(0.8)
    far = check("K402", server(_contexts(1.2))).gain
    assert far.tok_s / far.low == pytest.approx(2.0)
