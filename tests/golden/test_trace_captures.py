"""Steps of our own H200 captures, trimmed (tests/data/traces): what is true of them is known."""

from pathlib import Path

import pytest

from stepline.model.trace import span_at, summarise
from stepline.sources.readers import torch_trace

DATA = Path(__file__).parents[1] / "data" / "traces"
LLAMA_WEIGHT_BYTES = 2 * (32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 128256 * 4096)
"""bf16 matrices of Llama-3.1-8B that a decode step reads: 32 layers and the output head."""
H200_BYTE_S = 4.8e12
"""NVIDIA H200 datasheet."""


def group(name, **options):
    return summarise([torch_trace.read(DATA / f"{name}.json.gz")], **options).group()


@pytest.fixture(scope="module")
def million():
    return group("v4_torch_1m", context_tokens=1048576)


@pytest.fixture(scope="module")
def short():
    return group("v4_torch_8k", context_tokens=8192)


def test_the_indexer_is_most_of_the_million_token_graph(million):
    assert (million.kind, million.batch, million.steps) == ("decode", 16, 4)
    assert 0.84 <= million.component_ms("indexer") / million.graph_span_ms <= 0.88
    assert million.attributed >= 0.99


def test_its_cost_follows_the_configured_context(million):
    (work,) = million.context
    assert (work.factor, work.divisor, work.pad) == (4097, 256, 1)
    assert (work.chains, work.kernels) == (2, 26)
    assert work.busy_ms - work.enclosed_ms == pytest.approx(11.05, abs=0.05)
    assert work.per_chain_per_request_ms == pytest.approx(0.37, abs=0.01)


def test_the_graph_predicted_for_8k_is_the_one_measured(million, short):
    assert short.graph_span_ms == pytest.approx(2.02, abs=0.01)
    assert span_at(million, 8192) == pytest.approx(short.graph_span_ms, rel=0.1)
    assert million.host_busy_ms > span_at(million, 8192)


def test_at_8k_the_factor_is_33_and_a_grid_of_132_is_only_the_sm_count(short):
    (work,) = short.context
    assert work.factor == 33
    assert work.busy_ms < 0.05 * short.busy_ms


def test_names_alone_would_not_say_indexer(million):
    by_chain = sum(kernel.busy_ms for kernel in million.top if kernel.found_by == "chain")
    assert by_chain > 0.98 * million.component_ms("indexer")
    assert any(kernel.path == "tensor" for kernel in million.top if kernel.component == "indexer")


def test_a_healthy_server_reads_its_weights_near_the_bandwidth():
    healthy = group("healthy", context_tokens=131072)
    assert healthy.attributed >= 0.99
    assert healthy.context == ()
    assert healthy.graph_launches == 1
    assert 0.7 < 1e3 * LLAMA_WEIGHT_BYTES / healthy.component_ms("gemm") / H200_BYTE_S < 0.95


def test_without_graphs_the_host_binds():
    eager = group("nograph", unprofiled_step_ms=34.2)
    assert eager.graph_launches == 0
    assert eager.launches == eager.kernels
    assert 0.13 <= eager.busy_share <= 0.17
    assert eager.idle[0].cause == "launch-bound"
