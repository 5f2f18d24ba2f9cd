# ruff: noqa: ISC004, E501  # lines of a log, one string each
"""Reads a log with every variant of line mixed, and reports seconds and peak memory on one core.

    python benchmarks/log_reading.py [megabytes ...]        default: 100 1000

A fixed loop of matching is timed beside it: on a machine that others use too, CPU seconds grow with its load, and
the loop says by how much. The log is made under the system's temporary folder, kept between runs and named in the table. Each size is
read in a fresh process bound to one core.
"""

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

HEADS = (
    "[{t} TP0] ",
    "[{t} DP{r} TP{r} EP{r}] ",
    "[{t}.250 DP{r} PP0 TP0] ",
    "(SchedulerActor pid=4242, ip=10.0.0.9) [{t} TP0] ",
    "2025-10-20 03:02:22 INFO 31223 [DP{r} TP{r} EP{r} scheduler_metrics_mixin.py:222] ",
)
USAGE = "#token: {k}, token usage: {u}, "
RATE = "gen throughput (token/s): {g}, #queue-req: {q}"
GRAPH = "cuda graph: True, "
DECODES = (
    "Decode batch. #running-req: {n}, " + USAGE + RATE,
    "Decode batch. #running-req: {n}, " + USAGE + GRAPH + RATE + ", ",
    "Decode batch, #running-req: {n}, " + USAGE + GRAPH + RATE + ", ",
    "Decode batch [{k}], #running-req: {n}, " + USAGE + GRAPH + RATE,
    "Decode batch. #running-req: {n}, " + USAGE + "accept len: 1.93, #retracted-req: 0, " + GRAPH + RATE,
    "Decode batch, #running-req: {n}, " + USAGE + "accept len: 2.50, accept rate: 0.62, " + GRAPH + RATE,
    "Decode batch, #running-req: {n}, #full token: {k}, full token usage: {u}, #swa token: 14592, "
    "swa token usage: 0.06, cuda graph: False, " + RATE,
    "Decode batch, #running-req: {n}, #full token: {k}, full token usage: {u}, mamba num: 12, "
    "mamba usage: 0.25, " + GRAPH + RATE,
    "Decode batch, #running-req: {n}, " + USAGE + GRAPH + RATE + ", fwd occupancy: 88.50%",
)
ADMITTED = "#new-seq: 1, #new-token: {k}, #cached-token: 1, "
PREFILLS = (
    "Prefill batch. "
    + ADMITTED
    + "cache hit rate: 12.50%, token usage: {u}, #running-req: {n}, #queue-req: {q}",
    "Prefill batch. " + ADMITTED + "token usage: {u}, #running-req: {n}, #queue-req: {q}, ",
    "Prefill batch, " + ADMITTED + "token usage: {u}, #running-req: {n}, #queue-req: {q}, "
    "#pending-token: 583214, cuda graph: False, input throughput (token/s): {g}",
)
VLLM = (
    "(APIServer pid=14) INFO 04-09 11:17:53 [loggers.py:259] Engine 000: Avg prompt throughput: {g} tokens/s, "
    "Avg generation throughput: {g} tokens/s, Running: {n} reqs, Waiting: {q} reqs, GPU KV cache usage: 9.2%",
    "(EngineCore_DP1 pid=9) INFO 04-09 11:17:53 [core.py:400] Iteration({k}): 0 context requests, "
    "0 context tokens, {n} generation requests, {n} generation tokens, iteration elapsed time: 20.{q}5 ms",
)
OTHERS = (
    '[{t}] INFO:     10.0.0.1:35262 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    "[{t} TP0] Memory pool end. avail mem=27.80 GB",
    "site-packages/torch/profiler/profiler.py:224: UserWarning: Profiler clears events at the end.",
)


def a_block(rng: random.Random, lines: int) -> str:
    """Lines of every kind: two in three decode, one in six prefill, one in fifty vLLM's, the rest other."""
    made = []
    running = 8
    for index in range(lines):
        if rng.random() < 0.05:
            running = rng.randint(1, 64)
        values = {
            "t": f"2025-11-29 {index // 3600 % 24:02d}:{index // 60 % 60:02d}:{index % 60:02d}",
            "r": rng.randint(0, 7),
            "n": running,
            "k": rng.randint(1, 10**6),
            "u": f"{rng.random():.2f}",
            "g": f"{rng.random() * 3000:.2f}",
            "q": 0 if rng.random() < 0.8 else 3,
        }
        dice = rng.random()
        if dice < 0.66:
            text = rng.choice(HEADS) + rng.choice(DECODES)
        elif dice < 0.83:
            text = rng.choice(HEADS[:4]) + rng.choice(PREFILLS)
        elif dice < 0.85:
            text = rng.choice(VLLM)
        else:
            text = rng.choice(OTHERS)
        made.append(text.format(**values))
    return "\n".join(made) + "\n"


def make(path: Path, megabytes: int) -> None:
    """Write the log: blocks of fresh random lines, repeated after the first 64 MB."""
    rng = random.Random(7)  # noqa: S311  # a benchmark must be the same each time
    blocks: list[bytes] = []
    written = 0
    with path.open("wb") as file:
        while written < megabytes * 10**6:
            if sum(map(len, blocks)) < 64 * 10**6:
                blocks.append(a_block(rng, 20_000).encode())
                block = blocks[-1]
            else:
                block = blocks[written // 4_000_000 % len(blocks)]
            written += file.write(block)


CHILD = """
import re, resource, sys, time
mark = time.process_time()
match = re.compile(r"(.*?)Decode batch, #running-req: ([^,]*), #token: ([^,]*)").match
for _ in range(200_000):
    match("[2026-11-29 16:31:54 DP3 TP3 EP3] Decode batch, #running-req: 32, #token: 157952, x")
loop = (time.process_time() - mark) * 5
start = time.perf_counter()
from stepline.sources.read import read
run = read([sys.argv[1]])
took = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
lines = sum(r.windows for r in run.decodes) + sum(r.batches for r in run.prefills)
print(f"{took:8.1f} s ({time.process_time():.1f} s CPU) {peak:8.0f} MB {lines:12,} batch lines {len(run.decodes) + len(run.prefills):10,} records")
print(f"         fixed loop {loop:.2f} µs a match;", run.files[0].note, "; damaged", run.files[0].damaged)
"""


def main() -> None:
    sizes = [int(argument) for argument in sys.argv[1:]] or [100, 1000]
    for megabytes in sizes:
        path = Path(tempfile.gettempdir()) / f"stepline_mixed_{megabytes}.log"
        if not path.exists():
            make(path, megabytes)
        environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
        command = ["taskset", "-c", "0", sys.executable, "-c", CHILD, str(path)]
        output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        print(f"{megabytes:6,} MB {output}", end="")


if __name__ == "__main__":
    main()
