"""The sampler's counters against work whose nature is known."""

import statistics
import subprocess
import sys

import pytest

import stepline
from stepline.sources.live.gpu import GpuSampler

WORK = """
import time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
b = torch.empty_like(a)
work = {"product": lambda: torch.mm(a, a, out=b), "copy": lambda: b.copy_(a), "nothing": lambda: time.sleep(0.02)}
work = work[WHICH]
work()
torch.cuda.synchronize()
print("on", flush=True)
while True:
    for _ in range(16):
        work()
    torch.cuda.synchronize()
"""


def sampled(which, tmp_path):
    """Medians of the counters over four seconds of one kind of work."""
    code = WORK.replace("WHICH", repr(which))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            with GpuSampler(tmp_path / "gpm.csv"), pytest.raises(subprocess.TimeoutExpired):
                process.wait(4.0)
        finally:
            process.kill()
    samples = stepline.read(tmp_path / "gpm.csv").runs[0].gpu_samples
    assert len(samples) >= 5

    def middle(name):
        return statistics.median(getattr(sample, name) for sample in samples)

    return middle


def test_a_product_fills_the_tensor_pipe_and_not_the_memory(tmp_path):
    middle = sampled("product", tmp_path)
    assert middle("tensor_busy") > 0.5
    assert middle("dram_busy") < 0.4
    assert middle("graphics_busy") > 0.95


def test_a_copy_fills_the_memory_and_not_the_tensor_pipe(tmp_path):
    middle = sampled("copy", tmp_path)
    assert middle("tensor_busy") < 0.01
    assert middle("dram_busy") > 0.5


def test_no_work_reads_as_none(tmp_path):
    middle = sampled("nothing", tmp_path)
    assert middle("graphics_busy") < 0.02
    assert middle("power_w") > 0
