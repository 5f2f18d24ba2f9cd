"""Counts, sums and busy unions equal a slow, independent reading of every real trace."""

import gzip
import json
from decimal import Decimal

import numpy as np
import pytest

from stepline.model.trace.ownership import shares
from stepline.sources.readers import torch_trace

GPU = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
CALLS = {"cuda_runtime", "cuda_driver", "runtime"}


def slow(path):
    """Plain json and loops: per category its count, and the union of GPU intervals in nanoseconds."""
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    events = json.loads(text, parse_float=Decimal, strict=False)["traceEvents"]
    gpu, calls, operators, frames = [], 0, 0, 0
    for event in events:
        cat = str(event.get("cat", "")).lower()
        if event.get("ph") != "X":
            continue
        if cat in GPU:
            start, length = int(Decimal(event["ts"]) * 1000), int(Decimal(event["dur"]) * 1000)
            gpu.append((start, start + length, event["name"]))
        calls += cat in CALLS
        operators += cat in {"cpu_op", "operator"}
        frames += cat == "python_function"
    union, reach = 0, None
    for start, end, _ in sorted(gpu):
        if reach is None or start > reach:
            union, reach = union + end - start, end
        elif end > reach:
            union, reach = union + end - reach, end
    return gpu, union, (calls, operators, frames)


def paths(shared):
    found = sorted((shared / "data").rglob("*.json.gz"))
    assert len(found) >= 19
    return found


@pytest.mark.shared
def test_every_real_trace_reads_as_the_slow_way_does(shared):
    for path in paths(shared):
        trace = torch_trace.read(path)
        rows, union, counts = slow(path)
        assert (len(trace.calls), len(trace.operators), len(trace.frames)) == counts, path
        mine = sorted(
            (int(s), int(e), trace.strings[n])
            for s, e, n in zip(trace.gpu.start_ns, trace.gpu.end_ns, trace.gpu.name, strict=True)
        )
        assert mine == sorted(rows), path
        owned = shares(trace.gpu.start_ns, trace.gpu.end_ns, np.zeros(len(mine), bool)).owned
        assert float(owned.sum()) == pytest.approx(union, rel=1e-9), path
        assert trace.doubts == (), path
