import msgspec
import pytest

from stepline.facts.catalogue import find_model
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, level, server

COVERED = [Stage(running=4, step_ms=5.0), Stage(running=8, step_ms=5.1)]


def test_confirmed_when_only_the_batches_above_the_graphs_jump():
    run = server([*COVERED, Stage(running=32, step_ms=28.0, graph=False)], decode_graph_sizes=(1, 2, 4, 8))
    answer = check("H303", run)
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert any("K403" in ruled.rival for ruled in answer.ruled_out)


def test_clear_when_eager_batches_lie_on_the_covered_law():
    run = server([*COVERED, Stage(running=32, step_ms=5.8, graph=False)], decode_graph_sizes=(1, 2, 4, 8))
    assert isinstance(check("H303", run), Clear)


def test_batches_of_experts_foretell_larger_ones_by_the_floor_and_not_by_a_line():
    # from 16 to 48 sequences the floor of 128 experts grows by half; a line through 1 to 16 says 37 ms
    covered = [Stage(running=n, step_ms=t) for n, t in ((1, 4.7), (4, 7.7), (16, 15.3))]
    run = server(
        [*covered, Stage(running=48, step_ms=40.6, graph=False, gpu_busy=0.58)],
        model=find_model("Qwen/Qwen3-30B-A3B").config,
        decode_graph_sizes=(1, 8, 16, 24),
    )
    answer = check("H303", run)
    assert isinstance(answer, Fired)
    assert answer.gain.tok_s > 1.5 * 1000 * 48 / 40.6
    healthy = server(
        [*covered, Stage(running=48, step_ms=22.0, graph=False, gpu_busy=0.58)],
        model=find_model("Qwen/Qwen3-30B-A3B").config,
        decode_graph_sizes=(1, 8, 16, 24),
    )
    assert isinstance(check("H303", healthy), Clear)


def test_prompts_inside_the_measured_steps_are_not_promised_away():
    # beside steps of 28 ms the rate leaves 1.2 ms a request; a prompt of 256 tokens needs 4.1 ms
    stages = [*COVERED, Stage(running=32, step_ms=28.0, graph=False)]
    run = server(stages, levels=[level(32, 1140.0, 28.0, 60)], decode_graph_sizes=(1, 2, 4, 8))
    gain = check("H303", run).gain
    assert 1140 < gain.low < gain.tok_s < gain.high < 5600


def test_suspected_from_sizes_and_batch_alone():
    run = server([Stage(running=67, step_ms=20.0, graph=None)], decode_graph_sizes=(1, 8, 32))
    answer = check("H303", run)
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"


def test_clear_within_the_captured_sizes():
    assert isinstance(check("H303", server(COVERED, decode_graph_sizes=(1, 2, 4, 8))), Clear)


def test_nearest_rival_graphs_off_everywhere_is_not_a_ceiling():
    stages = [Stage(running=4, step_ms=25.0, graph=False), Stage(running=8, step_ms=26.0, graph=False)]
    assert not isinstance(check("H303", server(stages, decode_graph_sizes=(1, 2, 4, 8))), Fired)


def test_cannot_tell_without_sizes():
    assert isinstance(check("H303", server(COVERED)), CannotTell)


UNFLAGGED = [Stage(running=4, step_ms=5.0, graph=None), Stage(running=8, step_ms=5.1, graph=None)]
"""Of an engine whose lines do not say which steps used a graph."""


def _beyond(step_ms: float, busy: float):
    stages = [*UNFLAGGED, Stage(running=32, step_ms=step_ms, graph=None, gpu_busy=busy)]
    return check("H303", server(stages, decode_graph_sizes=(1, 2, 4, 8)))


def test_confirmed_by_sizes_and_steps_on_both_sides_while_the_gpu_idles():
    answer = _beyond(28.0, busy=0.25)
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert answer.gain is None or answer.gain.low <= answer.gain.tok_s
    assert any("K404" in ruled.rival for ruled in answer.ruled_out)


def test_a_busy_gpu_or_a_step_on_the_law_leaves_it_suspected():
    for answer in (_beyond(28.0, busy=0.97), _beyond(5.8, busy=0.25)):
        assert isinstance(answer, Fired)
        assert answer.status == "suspected"


def _mixed(*, largest: int, busy: float, rate: float = 4000.0, mode: str | None = "full_and_piecewise"):
    """32 streams of 256 prompt and 128 output tokens; at 3.2 ms a step they could make 10,000 tokens a second."""
    stages = [
        Stage(running=n, step_ms=t, graph=None, gpu_busy=busy, lines=9)
        for n, t in ((8, 3.0), (16, 3.1), (32, 3.2))
    ]
    facts = {"decode_graph_sizes": (1, 8, 64, largest)} | ({} if mode is None else {"graph_mode": mode})
    return server(stages, levels=[level(32, rate, 4.0, 60)], **facts)


def test_prompts_beside_answers_may_pass_the_graphs_that_answers_alone_fit():
    answer = check("H303", _mixed(largest=128, busy=0.6))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert "288 tokens" in answer.headline
    assert answer.gain is not None
    assert answer.gain.tok_s > 4000
    assert isinstance(check("H301", _mixed(largest=128, busy=0.6)), Clear)


def test_prompts_beside_answers_cost_nothing_within_the_graphs_or_where_engines_keep_them_apart_or_the_gpu_is_busy():
    for run in (
        _mixed(largest=512, busy=0.6),
        _mixed(largest=128, busy=0.6, mode=None),
        _mixed(largest=128, busy=0.97),
        _mixed(largest=128, busy=0.6, rate=9500.0),
    ):
        assert isinstance(check("H303", run), Clear)


def test_one_rule_or_the_other_accounts_for_the_idle_time_at_every_share_and_without_the_model():
    for busy in (0.3, 0.45, 0.55, 0.7, 0.8):
        for rate in (4000.0, 7000.0, 8500.0):
            run = _mixed(largest=128, busy=busy, rate=rate)
            named = [code for code in ("H301", "H303") if isinstance(check(code, run), Fired)]
            assert len(named) == 1, (busy, rate, named)
    bare = check("H303", msgspec.structs.replace(_mixed(largest=128, busy=0.6), model_config=None))
    assert isinstance(bare, Fired)
    assert bare.gain is None


def test_prompts_that_take_no_longer_than_they_need_leave_the_idle_time_to_the_host():
    """At 8,500 tok/s a request has 2.3 ms beside its steps, and its prompt needs 3.7."""
    run = _mixed(largest=128, busy=0.8, rate=8500.0)
    assert isinstance(check("H303", run), Clear)
    assert isinstance(check("H301", run), Fired)


def test_idle_time_that_does_not_fit_beside_decode_steps_is_the_hosts():
    run = _mixed(largest=128, busy=0.3, rate=7000.0)
    assert isinstance(check("H303", run), Clear)
    host = check("H301", run)
    assert isinstance(host, Fired)
    assert host.status == "confirmed"


def test_a_covered_step_may_be_a_tenth_shorter_or_a_third_longer_than_the_law_says():
    run = server([*COVERED, Stage(running=32, step_ms=28.0, graph=False)], decode_graph_sizes=(1, 2, 4, 8))
    gain = check("H303", run).gain
    assert gain.high / gain.tok_s == pytest.approx(1 / 0.9)
    assert gain.tok_s / gain.low == pytest.approx(1.3)


@pytest.mark.parametrize(("over", "fires"), [(1.07, False), (1.15, True)])
def test_a_jump_is_a_tenth_above_the_covered_law(over, fires):
    covered_ms = 5.1 + 24 * 0.025  # the line through 5.0 ms at 4 and 5.1 ms at 8
    run = server(
        [*COVERED, Stage(running=32, step_ms=over * covered_ms, graph=False)], decode_graph_sizes=(1, 2, 4, 8)
    )
    assert isinstance(check("H303", run), Fired) is fires
