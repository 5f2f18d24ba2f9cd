"""Whole real traces: our captures and public ones, with what others read wrong."""

import pytest

from stepline.model.trace import summarise
from stepline.sources.readers import torch_trace, traces

pytestmark = pytest.mark.shared


@pytest.fixture
def rank(shared):
    def condense(path, **options):
        (found,) = (shared / "data").glob(path)
        return summarise([torch_trace.read(found)], **options).ranks[0]

    return condense


def test_cap8_is_busy_in_truth_though_its_trace_looks_idle(rank):
    found = rank("h200-sglang/cap8/*.gz", unprofiled_step_ms=5.09)
    assert found.busy_ms / found.span_ms < 0.6
    assert found.groups[0].busy_share == pytest.approx(0.96, abs=0.01)


def test_healthy_is_97_percent_busy(rank):
    found = rank("h200-sglang/healthy/*.gz", unprofiled_step_ms=5.71)
    assert found.groups[0].busy_share == pytest.approx(0.97, abs=0.01)
    assert found.groups[0].attributed >= 0.99


def test_nograph_is_mostly_idle(rank):
    assert 0.13 <= rank("h200-sglang/nograph/*.gz", unprofiled_step_ms=34.2).groups[0].busy_share <= 0.17


def test_sglang_decode_is_not_98_percent_idle(rank):
    (group,) = rank("public-traces/tracelens/sglang_decode/sglang*.gz").groups
    assert (group.kind, group.batch) == ("decode", 32)
    assert group.busy_in_span == pytest.approx(0.93, abs=0.02)


def test_v100_graphs_count_their_copies(rank):
    found = rank("public-traces/hta/trace_diff/test/*.gz")
    assert found.busy_ms / found.span_ms == pytest.approx(0.963, abs=0.005)
    assert sum(step.graph_launches for step in found.steps) == 12


def test_piecewise_graphs_are_one_mixed_step(rank):
    (group,) = rank("public-traces/tracelens/vllm_prefilldecode_piecewise/*.gz").groups
    assert (group.kind, group.graph_launches) == ("mixed", 25)
    assert group.busy_in_span > 0.99


def test_the_2021_layout_repeats_without_annotations(rank):
    found = rank("public-traces/kineto-tb-2021/*.gz")
    assert found.groups[0].found_by == "repetition"
    assert found.gpu_events == 9096


def test_no_graph_trace_is_falsely_idle(shared):
    for path in sorted((shared / "data").rglob("*.gz")):
        found = summarise([torch_trace.read(path)]).ranks[0]
        for group in found.groups:
            if group.kind == "decode" and group.graph_launches and group.graph_span_ms:
                graph = sum(step.busy_ms for step in found.steps) / len(found.steps)
                assert graph > 0.7 * group.graph_span_ms, path


def test_nsight_exports_read_through_the_same_records(shared):
    summary = summarise(traces.read(shared / "data/public-traces/nsys-ai/mfu_2gpu_before.sqlite"))
    assert [rank.rank for rank in summary.ranks] == [0, 1]
    assert [rank.groups[0].found_by for rank in summary.ranks] == ["repetition", "repetition"]
    assert {wait.collectives for wait in summary.waits} == {33}


def test_indexer_work_in_eager_steps_is_found_by_stack(rank):
    found = rank("h200-sglang/v4_torch_1m/*.gz", context_tokens=1048576)
    prefill = next(group for group in found.groups if group.kind == "prefill")
    by_stack = [
        kernel for kernel in prefill.top if kernel.found_by == "stack" and kernel.component == "indexer"
    ]
    assert by_stack
    assert all(kernel.site for kernel in by_stack)
