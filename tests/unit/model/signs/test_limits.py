"""Where a sign of one cause turns: on both sides of each number."""

import msgspec
import pytest

from stepline.evidence.load import LeverTrial, LoadLevel
from stepline.evidence.origin import Origin
from stepline.model.measure.context_probes import probe_levels
from stepline.model.measure.law import LawPoint
from stepline.model.measure.levers import lever_verdicts
from stepline.model.measure.windows import OWN_TOOL
from stepline.model.picture.picture import LiveContext
from stepline.model.picture.step_points import point_at
from stepline.model.signs.batch_limit import enough_context, running_limit
from stepline.model.signs.context_law import CacheRead, ContextLaw, SlowCache, law_at_load
from stepline.model.signs.front_end import BothSides
from stepline.model.signs.host import GraphUse, beyond_graphs, traced_eager
from stepline.model.signs.per_request_excess import PerRequestCost, capacity_explains
from stepline.model.signs.speculation import wasted
from tests.rules.server import Stage, level, picture, server
from tests.rules.traces import with_trace

AT = Origin("log", 1)


def _load(running: int = 8, **facts: object):
    return picture(server([Stage(running=running, step_ms=5.0)], **facts))


@pytest.mark.parametrize(("share", "dominant"), [(0.45, False), (0.55, True)])
def test_a_step_is_linear_where_most_of_it_is_per_request_cost(share, dominant):
    cost = PerRequestCost(
        slope_ms=0.1,
        share=share,
        expected_slope_ms=None,
        granted_slope_ms=None,
        sweep_ms=29.0,
        sweep_gpu="H200",
        at_running=32,
    )
    assert cost.dominant is dominant


@pytest.mark.parametrize(("configured", "explains"), [(7_500, False), (8_500, True)])
def test_a_capacity_of_eight_live_contexts_is_suspect(configured, explains):
    seen = msgspec.structs.replace(_load(), context=LiveContext(tokens=1000, route="told"))
    target = msgspec.structs.replace(seen.target, configured_context=configured)
    assert capacity_explains(msgspec.structs.replace(seen, target=target)) is explains


@pytest.mark.parametrize(("tokens", "enough"), [(2040, 8192), (2060, 16384), (3500, 16384), (10, 8192)])
def test_a_lowered_context_leaves_four_times_the_live_one(tokens, enough):
    seen = msgspec.structs.replace(_load(), context=LiveContext(tokens=tokens, route="told"))
    assert enough_context(seen) == enough


@pytest.mark.parametrize(("usage", "kind"), [(0.45, "unknown"), (0.55, "kv")])
def test_a_pool_too_small_by_arithmetic_counts_where_it_reads_half_full(usage, kind):
    stage = Stage(running=8, step_ms=5.0, queued=24, pool_usage=usage)
    run = server([stage], levels=[level(32, 1500, 5.1, 900)], kv_capacity_tokens=8 * 384)
    assert running_limit(picture(run)).kind == kind


@pytest.mark.parametrize(("share", "off"), [(0.9, False), (0.97, True)])
def test_decode_is_eager_in_all_but_a_few_passes(share, off):
    use = GraphUse(
        graph_lines=0,
        eager_lines=0,
        graph_passes=100 * (1 - share),
        eager_passes=100 * share,
        setting=None,
        source="",
        origin=None,
    )
    assert use.off is off


@pytest.mark.parametrize(("running", "beyond"), [(105, False), (107, True)])
def test_a_batch_within_six_percent_of_the_largest_graph_is_its_own(running, beyond):
    stage = Stage(running=running, step_ms=9.0, graph=None)
    assert beyond_graphs(picture(server([stage], decode_graph_sizes=(1, 100)))) is beyond


@pytest.mark.parametrize(("launches", "eager"), [(85.0, False), (95.0, True)])
def test_an_eager_step_launches_nine_in_ten_of_its_kernels(launches, eager):
    run = with_trace(server([Stage(running=8, step_ms=9.0)]), batch=8, busy_ms=5.0, eager=True)
    (rank,) = run.trace.ranks
    group = msgspec.structs.replace(rank.groups[0], graph_launches=0.0, kernels=100.0, launches=launches)
    trace = msgspec.structs.replace(run.trace, ranks=(msgspec.structs.replace(rank, groups=(group,)),))
    assert traced_eager(picture(msgspec.structs.replace(run, trace=trace))) is eager


def _sides(offered: float, running: float, queued: float = 0.0) -> BothSides:
    return BothSides(
        offered=offered,
        running=running,
        queued=queued,
        client_ms=None,
        engine_ms=None,
        source="",
        innocent=True,
        origin=AT,
    )


@pytest.mark.parametrize(
    ("offered", "running", "queued", "missing"),
    [
        (100, 82, 0, False),
        (100, 77, 0, True),
        (7, 5.3, 0, False),
        (7, 4.8, 0, True),
        (100, 60, 9, True),
        (100, 60, 11, False),
    ],
    ids=["18 %", "23 %", "1.7 requests", "2.2 requests", "9 in the queue", "11 in the queue"],
)
def test_requests_are_missing_from_a_fifth_on_where_the_engine_has_no_other_work(
    offered, running, queued, missing
):
    assert _sides(offered, running, queued).requests_missing is missing


@pytest.mark.parametrize(
    ("tokens", "probe"), [(1900.0, False), (2100.0, True), (525.0, False), (475.0, True)]
)
def test_a_prompt_of_twice_or_half_the_length_is_a_probe(tokens, probe):
    levels = tuple(
        LoadLevel(origin=AT, tool=OWN_TOOL, concurrency=8, start_s=at, input_tokens=length)
        for at, length in ((0.0, 1000.0), (9.0, tokens))
    )
    run = msgspec.structs.replace(server([]), levels=levels)
    assert bool(probe_levels(run)) is probe


def _law(longest: float = 8000.0) -> ContextLaw:
    return ContextLaw(
        running=1.0,
        instrument="log",
        at_zero_ms=5.0,
        per_ktoken_ms=1.0,
        shortest=1000.0,
        longest=longest,
        points=3,
        first_ms=6.0,
        last_ms=10.0,
    )


@pytest.mark.parametrize(
    ("slower", "excess_ms", "matters"),
    [(1.8, 5.0, False), (2.2, 5.0, True), (2.2, 0.8, False), (2.2, 1.2, True)],
)
def test_a_cache_read_half_as_fast_matters_where_it_costs_a_tenth(slower, excess_ms, matters):
    read = CacheRead(cache_bytes_s=1e12 / slower, weight_bytes_s=1e12)
    assert SlowCache(law=_law(), read=read, excess_ms=excess_ms).matters is matters


@pytest.mark.parametrize(("longest", "told"), [(3600, False), (4400, True)])
def test_a_slope_needs_contexts_four_times_apart(longest, told):
    stages = [Stage(running=1, step_ms=7 + c / 4000, context=c, lines=9) for c in (1000, longest)]
    assert (law_at_load(picture(server(stages))) is not None) is told


@pytest.mark.parametrize(("tokens", "wasted_"), [(1.15, True), (1.3, False)])
def test_drafts_are_wasted_below_one_token_in_five(tokens, wasted_):
    run = server([Stage(running=4, step_ms=9.0)])
    lines = tuple(msgspec.structs.replace(line, accept_length=tokens) for line in run.decodes)
    assert wasted(picture(msgspec.structs.replace(run, decodes=lines))) is wasted_


@pytest.mark.parametrize(("after", "gains"), [(102.7, False), (103.3, True)])
def test_a_lever_that_gains_three_percent_changed_something(after, gains):
    trial = LeverTrial(origin=AT, lever="max_num_seqs=64", before=100.0, after=after)
    assert bool(lever_verdicts(msgspec.structs.replace(server([]), levers=(trial,)))) is not gains


@pytest.mark.parametrize(("running", "near"), [(105.5, True), (107.5, False), (95.0, True), (93.5, False)])
def test_a_batch_within_six_percent_is_the_same(running, near):
    points = (LawPoint(running=100, step_ms=5.0, windows=4),)
    assert (point_at(points, running) is not None) is near


@pytest.mark.parametrize(("share", "told"), [(0.22, False), (0.28, True)])
def test_work_over_the_capacity_costs_from_a_quarter_of_the_gpu_s_time_on(share, told):
    run = with_trace(server([Stage(running=8, step_ms=11.0)]), batch=8, busy_ms=10.0, context_ms=10 * share)
    assert (picture(run).traced.capacity_work is not None) is told
