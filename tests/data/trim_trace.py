"""Trims a profiler trace to whole steps without Python frames: `trim_trace.py IN OUT FROM_MS TO_MS`.

Keeps GPU work, calls, operators and annotations that start in the window (milliseconds after the first GPU
work) and the GPU work launched by the calls kept.
"""

import gzip
import json
import sys
from pathlib import Path

source, target, begin, end = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
trace = json.loads(gzip.decompress(source.read_bytes()), parse_float=str)
GPU = {"kernel", "gpu_memcpy", "gpu_memset"}
HOST = {"cuda_runtime", "cuda_driver", "cpu_op", "user_annotation"}
spans = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
first = min(float(event["ts"]) for event in spans if event["cat"] in GPU)
kept, correlations = [], set()
for event in spans:
    if event["cat"] in HOST and begin <= (float(event["ts"]) - first) / 1e3 < end:
        kept.append(event)
        correlations.add(event["args"].get("correlation"))
kept += [event for event in spans if event["cat"] in GPU and event["args"].get("correlation") in correlations]
for event in kept:
    args = event["args"]
    for noise in (
        "Concrete Inputs",
        "Input Strides",
        "Record function id",
        "Ev Idx",
        "queued",
        "context",
        "cbid",
    ):
        args.pop(noise, None)
trace["traceEvents"] = kept
trace.pop("trace_id", None)
text = json.dumps(trace, separators=(",", ":"))
target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
print(f"{target}: {len(kept)} events, {target.stat().st_size / 1e3:.0f} KB")
