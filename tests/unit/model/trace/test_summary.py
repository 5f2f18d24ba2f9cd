import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepline.evidence.trace import TraceDevice, TraceSummary
from stepline.model.trace import span_at, summarise
from stepline.model.trace.occupancy import occupancy
from stepline.model.trace.ownership import covered, shares
from stepline.sources.readers import torch_trace
from tests.unit.trace_writer import TraceWriter, decode_trace

H100 = TraceDevice(
    capability=(9, 0), sms=132, warp_threads=32, threads_per_sm=2048, registers_per_sm=65536,
    shared_bytes_per_sm=233472,
)  # fmt: skip
SPANS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 80)), min_size=1, max_size=25)


def condensed(tmp_path, *writers, **options):
    raws = [torch_trace.read(writer.save(tmp_path / f"t{i}.json.gz")) for i, writer in enumerate(writers)]
    return summarise(raws, **options)


@settings(max_examples=100, deadline=None)
@given(SPANS, st.data())
def test_shares_add_up_to_the_union_and_exposed_is_the_time_alone(spans, data):
    start = np.array([s for s, _ in spans])
    end = start + np.array([length for _, length in spans])
    marked = np.array(data.draw(st.lists(st.booleans(), min_size=len(spans), max_size=len(spans))))
    ticks = np.zeros((400, 2), int)
    for s, e, m in zip(start, end, marked, strict=True):
        ticks[s:e, int(m)] += 1
    found = shares(start, end, marked)
    assert found.owned.sum() == pytest.approx((ticks.sum(axis=1) > 0).sum())
    assert found.exposed.sum() == pytest.approx(((ticks[:, 1] > 0) & (ticks[:, 0] == 0)).sum())
    assert (found.owned <= end - start + 1e-9).all()


@settings(max_examples=100, deadline=None)
@given(SPANS, st.integers(0, 300), st.integers(0, 100))
def test_covered_counts_ticks(spans, begin, length):
    ticks = np.zeros(500, bool)
    for s, n in spans:
        ticks[s : s + n] = True
    start = np.array([s for s, _ in spans])
    end = start + np.array([n for _, n in spans])
    found = covered(start, end, np.array([begin]), np.array([begin + length]))
    assert found.tolist() == [int(ticks[begin : begin + length].sum())]


def test_occupancy_above_48_kb_where_the_recorded_field_is_zero():
    filled = occupancy(H100, grid=132, threads=384, registers=168, shared_bytes=231424)
    assert filled.blocks_per_sm == 1
    assert filled.occupancy == pytest.approx(0.1875)
    assert (filled.waves, filled.tail) == (1.0, 0.0)


def test_occupancy_of_a_small_grid_is_bound_by_the_grid():
    filled = occupancy(H100, grid=66, threads=256, registers=32, shared_bytes=0)
    assert filled.limited_by == "grid"
    assert filled.occupancy == pytest.approx(66 / 132 * 8 / 64)


def test_occupancy_is_unknown_without_a_device_description():
    assert (
        occupancy(TraceDevice(sms=304, warp_threads=64), grid=1, threads=64, registers=8, shared_bytes=0)
        is None
    )


@pytest.mark.parametrize(("annotated", "found_by"), [(True, "annotation"), (False, "graph launch")])
def test_decode_steps_with_and_without_annotations(tmp_path, annotated, found_by):
    group = condensed(tmp_path, decode_trace(annotated=annotated)).group()
    assert (group.kind, group.found_by, group.steps, group.kernels) == ("decode", found_by, 5, 6)
    assert group.batch == (8 if annotated else None)
    assert group.busy_ms == pytest.approx(0.770)
    assert group.exposed_communication_ms == pytest.approx(0.050)
    named = {part.component: part.busy_ms for part in group.components}
    assert named == pytest.approx(
        {"gemm": 0.6, "attention": 0.1, "communication": 0.05, "norm": 0.01, "elementwise": 0.01}
    )


def eager_trace(steps=8):
    writer = TraceWriter()
    for step in range(steps):
        at = 1000.0 + 500.0 * step
        for layer in range(4):
            for index, name in enumerate(("nvjet_a", "RMSNormKernel", "act_and_mul_kernel")):
                launch = at + 30 * layer + 10 * index
                writer.kernel(name, launch + 6, 2.0, launched=launch)
        writer.kernel("argmax_kernel", at + 130, 2.0, launched=at + 124)
    return writer


def test_eager_steps_by_repetition_are_launch_bound(tmp_path):
    group = condensed(tmp_path, eager_trace()).ranks[0].groups[0]
    assert group.found_by == "repetition"
    assert group.kernels == 13
    assert group.launches == 13
    causes = {cause.cause: cause.traced_ms for cause in group.idle}
    assert max(causes, key=causes.get) in {"launch-bound", "nothing queued"}


def test_an_under_recorded_replay_is_set_aside_not_called_idle(tmp_path):
    writer = decode_trace()
    lost = [e for e in writer.events if e["cat"] == "kernel" and e["args"]["correlation"] == 1002][1:]
    writer.events = [event for event in writer.events if event not in lost]
    rank = condensed(tmp_path, writer).ranks[0]
    assert rank.groups[0].steps == 4
    assert rank.groups[0].busy_ms == pytest.approx(0.770)
    assert rank.steps[2].set_aside == "under-recorded graph replay: 1 of 5 kernels"
    assert "graph" in {doubt.topic for doubt in rank.doubts}


def test_a_step_without_gpu_work_is_not_idle(tmp_path):
    writer = decode_trace()
    gone = {1003, 104}
    writer.events = [e for e in writer.events if e["args"].get("correlation") not in gone]
    rank = condensed(tmp_path, writer).ranks[0]
    assert rank.steps[3].set_aside == "no GPU work was recorded for it"
    assert rank.groups[0].busy_ms == pytest.approx(0.770)


def test_a_stray_kernel_does_not_stretch_a_step(tmp_path):
    writer = decode_trace(steps=1)
    for event in writer.events:
        event["ts"] += 500_000.0
    writer.span("user_annotation", "step[DECODE bs=8]", 900.0, 600_000.0)
    writer.kernel("elementwise_kernel", 1000.0, 4.0, launched=950.0)
    rank = condensed(tmp_path, writer).ranks[0]
    assert rank.groups[0].busy_in_span > 0.95
    assert any("pauses for" in doubt.text for doubt in rank.doubts)


def indexer_trace(factor, sms_grid=False):
    """A graph whose middle is sized by the context: a chain of generic kernels up to a top-k."""
    writer = TraceWriter()
    chain = [
        ("gather_kernel", 48),
        ("direct_copy_kernel", 256),
        ("clamp elementwise_kernel", 64),
        ("mul elementwise_kernel", 128),
        ("reduce_kernel", 64),
        ("masked_fill elementwise_kernel", 1),
    ]
    for step in range(4):
        at = 1000.0 + 2000.0 * step
        writer.span("user_annotation", "step[DECODE bs=16]", at, 100.0)
        kernels = [
            ("nvjet_qkv", 20.0, (132, 1, 1)),
            ("fused_q_indexer_rope_hadamard_quant", 2.0, (256, 1, 1)),
        ]
        kernels += [(name, 100.0, (132 if sms_grid else factor * times, 1, 1)) for name, times in chain]
        kernels.insert(5, ("nvjet_logits", 50.0, (132, 1, 1)))
        kernels += [
            ("topk_small_batch_kernel", 5.0, (16, 8, 1)),
            ("flash_fwd_splitkv_mla", 30.0, (132, 1, 1)),
        ]
        writer.graph(kernels, at + 5, at + 20, 1000 + step)
    return writer


def test_context_shaped_work_is_found_along_its_chain(tmp_path):
    group = condensed(tmp_path, indexer_trace(4097), context_tokens=1048576).group()
    (work,) = group.context
    assert (work.factor, work.divisor, work.pad, work.seen_in) == (4097, 256, 1, "grids")
    assert (work.chains, work.kernels) == (1, 6)
    assert work.busy_ms == pytest.approx(0.650)
    assert work.enclosed_ms == pytest.approx(0.050)
    assert work.per_chain_per_request_ms == pytest.approx(0.650 / 16)
    assert group.component_ms("indexer") == pytest.approx(0.657)
    assert span_at(group, 8192) == pytest.approx(group.graph_span_ms - 0.650 + 0.006, abs=0.002)


def test_grids_that_follow_the_batch_are_not_the_context(tmp_path):
    """48 blocks are three rows for each of 16 sequences as well as 49,152 tokens in blocks of 1,024."""
    assert condensed(tmp_path, indexer_trace(48), context_tokens=49152).group().context == ()
    (work,) = condensed(tmp_path, indexer_trace(47), context_tokens=47 * 1024).group().context
    assert work.factor == 47


def test_context_shape_without_being_told_is_not_guessed(tmp_path):
    (work,) = condensed(tmp_path, indexer_trace(4097)).group().context
    assert (work.context_tokens, work.divisor, work.factor) == (None, None, 4097)


@pytest.mark.parametrize(
    "make", [lambda: indexer_trace(4096), lambda: indexer_trace(1, sms_grid=True), decode_trace]
)
@pytest.mark.parametrize("context", [8192, 1048576, None])
def test_ordinary_grids_are_not_context_shaped(tmp_path, make, context):
    assert condensed(tmp_path, make(), context_tokens=context).group().context == ()


def test_ranks_that_wait_for_a_straggler(tmp_path):
    summary = condensed(tmp_path, decode_trace(rank=1, late_us=30.0), decode_trace(rank=0))
    assert [rank.rank for rank in summary.ranks] == [0, 1]
    early, late = summary.waits
    assert early.wait_ms == pytest.approx(5 * 0.030)
    assert (early.waited_for, late.last, late.wait_ms) == (1, 5, 0)
    assert early.transfer_ms == pytest.approx(5 * 0.020)


def test_ranks_of_different_programs_are_not_compared(tmp_path):
    summary = condensed(tmp_path, decode_trace(rank=0), decode_trace(rank=1, steps=4))
    assert summary.waits == ()
    assert [doubt.topic for doubt in summary.doubts] == ["clocks"]


def test_a_summary_survives_json(tmp_path):
    summary = condensed(tmp_path, indexer_trace(4097), context_tokens=1048576, unprofiled_step_ms=1.0)
    data = msgspec.json.encode(summary)
    assert msgspec.json.decode(data, type=TraceSummary) == summary


def test_busy_share_needs_an_unprofiled_step(tmp_path):
    assert condensed(tmp_path, decode_trace()).group().busy_share is None
    group = condensed(tmp_path, decode_trace(), unprofiled_step_ms=1.0).group()
    assert group.busy_share == pytest.approx(0.77)
