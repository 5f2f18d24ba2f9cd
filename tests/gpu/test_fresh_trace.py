"""A trace taken here and now, against the same steps timed without a profiler."""

import json

import pytest

from stepline.model.trace import summarise
from stepline.sources.readers import torch_trace
from tests.gpu.conftest import run

STEPS, LAYERS = 24, 32
CODE = """
import json, sys, torch
layers = [torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(LAYERS)]
x = torch.randn(8, 4096, device="cuda", dtype=torch.bfloat16)
def step():
    y = x
    for w in layers:
        y = torch.nn.functional.silu(y @ w)
    return y
with torch.inference_mode():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3): step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): step()
    for _ in range(8): graph.replay()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(STEPS): graph.replay()
    end.record(); torch.cuda.synchronize()
    plain_ms = start.elapsed_time(end) / STEPS
    with torch.profiler.profile(activities=list(torch.profiler.supported_activities())) as profile:
        for _ in range(STEPS):
            graph.replay()
            torch.cuda.synchronize()
    profile.export_chrome_trace(sys.argv[1])
print(json.dumps(plain_ms))
"""


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "fresh.json.gz"
    plain_ms = json.loads(run(CODE.replace("LAYERS", str(LAYERS)).replace("STEPS", str(STEPS)), str(path)))
    return summarise([torch_trace.read(path)]).group("step"), plain_ms


def test_every_replay_is_a_step_with_every_kernel(steps):
    group, _ = steps
    assert group.steps >= STEPS - 2  # the first may be set aside as warm-up
    assert group.attributed > 0.99
    assert group.component_ms("gemm") / group.busy_ms > 0.7


def test_a_step_in_the_trace_takes_what_it_takes_without_a_profiler(steps):
    group, plain_ms = steps
    assert group.graph_span_ms == pytest.approx(plain_ms, rel=0.1)


def test_products_of_small_batches_read_weights_at_a_rate_that_memory_has(steps):
    group, _ = steps
    weights = 2 * 4096 * 4096 * LAYERS
    rate = weights / (group.component_ms("gemm") * 1e-3)
    assert 0.5e12 < rate < 12e12  # a GPU's L2 cache may hold some of them from step to step
