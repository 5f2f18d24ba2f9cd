"""Writes small traces as the profiler does, for tests that need to know the answer."""

import gzip
import json
from pathlib import Path

H200 = {
    "id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320, "computeMajor": 9, "computeMinor": 0,
    "maxThreadsPerMultiprocessor": 2048, "warpSize": 32, "numSms": 132, "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 233472,
}  # fmt: skip


class TraceWriter:
    """Collects events; `text()` lays them out as Kineto does."""

    def __init__(self, rank=0, base_ns=1790857026000000000):
        self.events, self.correlation = [], 100
        self.header = {
            "schemaVersion": 1,
            "deviceProperties": [H200],
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": base_ns,
        }

    def span(self, cat, name, ts, dur, tid=1, **args):
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": tid, "ts": ts, "dur": dur, "args": args}
        )

    def kernel(
        self, name, ts, dur, launched=None, *, grid=(64, 1, 1), stream=7, correlation=None, device=0, **args
    ):
        if correlation is None:
            self.correlation += 1
            correlation = self.correlation
            if launched is not None:
                self.span("cuda_runtime", "cudaLaunchKernel", launched, 3.0, correlation=correlation)
        self.span(
            "kernel", name, ts, dur, tid=stream, device=device, stream=stream, correlation=correlation,
            grid=list(grid), block=[128, 1, 1],
            **{"registers per thread": 32, "shared memory": 0, "est. achieved occupancy %": 0, **args},
        )  # fmt: skip

    def graph(self, kernels, launched, begin, correlation):
        """One replay: kernels as (name, dur, grid) back to back."""
        self.span("cuda_runtime", "cudaGraphLaunch", launched, 5.0, correlation=correlation)
        for name, dur, grid in kernels:
            self.kernel(name, round(begin, 3), dur, grid=grid, correlation=correlation)
            begin += dur + 0.1
        return begin

    def text(self):
        head = json.dumps(self.header)[:-1]
        events = ",\n  ".join(json.dumps(event) for event in self.events)
        return head + ', "traceEvents": [\n  ' + events + '\n  ],\n  "traceName": "t.json"\n}\n'

    def save(self, path: Path):
        data = self.text().encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path


def decode_trace(steps=5, rank=0, late_us=0.0, annotated=True):
    """Annotated decode steps of batch 8: a graph replay of six kernels each, 1 ms apart."""
    writer = TraceWriter(rank)
    for step in range(steps):
        at = 1000.0 + 1000.0 * step
        if annotated:
            writer.span("user_annotation", "step[DECODE bs=8]", at, 300.0)
        kernels = [
            ("nvjet_sm90_tst_64x16", 200.0, (132, 1, 1)),
            ("flash_fwd_splitkv_kernel", 100.0, (8, 4, 1)),
            ("RMSNormKernel", 10.0, (8, 1, 1)),
            ("silu_and_mul act_and_mul_kernel", 10.0, (64, 1, 1)),
            ("nvjet_sm90_tst_256x16", 400.0, (132, 1, 1)),
        ]
        end = writer.graph(kernels, at + 50, at + 100, 1000 + step)
        writer.kernel("ncclDevKernel_AllReduce_Sum_bf16", round(end + late_us, 3), 50.0 - late_us, at + 60)
    return writer
