"""Time and memory of full step accounting on traces of growing size, beside HolisticTraceAnalysis.

Repeats one real trace (times, correlations and ids shifted per copy) to the sizes asked for, then runs each
tool in fresh processes and reports the best of the runs, with the peak memory summed over its processes. `--ranks`
asks for the same number of files of that size at once.

    python benchmarks/trace_speed.py SOURCE.json.gz --megabytes 50 500 2000 --hta /tmp/hta/bin/python
    python benchmarks/trace_speed.py SOURCE.json.gz --megabytes 500 --ranks 2
"""

import argparse
import gzip
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from isal import igzip

STEPLINE = """
import sys
from pathlib import Path
from stepline.tasks.traces import TraceRequest, summarise
if __name__ == "__main__":
    summary = summarise(TraceRequest(paths=tuple(Path(name) for name in sys.argv[1:])))
    print(summary.ranks[0].gpu_events, len(summary.ranks[0].steps))
"""
HTA = """
import sys, tempfile, pathlib, warnings
warnings.filterwarnings("ignore")
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=str(pathlib.Path(sys.argv[1]).parent))
analysis.get_gpu_kernel_breakdown(visualize=False)
analysis.get_temporal_breakdown(visualize=False)
analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
"""
_NUMBERS = re.compile(rb'"(?P<key>ts|correlation|External id|external id|id)"\s*:\s*(?P<number>\d+)')


def repeat(source: Path, target: Path, megabytes: float) -> int:
    """Write `source` as often as it takes; returns the number of events."""
    text = gzip.decompress(source.read_bytes())
    begin = text.index(b"[", text.index(b'"traceEvents"')) + 1
    end = text.rindex(b"]", 0, text.rindex(b'"traceName"') if b'"traceName"' in text[-2000:] else len(text))
    body = text[begin:end].strip()
    found = list(_NUMBERS.finditer(body))
    numbers = np.array([int(match["number"]) for match in found])
    time = np.array([match["key"] == b"ts" for match in found])
    span = numbers[time].max() - np.sort(numbers[time])[time.sum() // 1000] + 1000
    step = np.where(time, span, numbers[~time].max() + 1)
    edges = [0, *(at for match in found for at in match.span("number")), len(body)]
    between = [body[left:right] for left, right in zip(edges[::2], edges[1::2], strict=True)]
    copies = max(1, round(megabytes * 1e6 / len(body)))
    with igzip.open(target, "wb") as out:
        out.write(text[:begin])
        for copy in range(copies):
            shifted = [b"%d" % number for number in (numbers + copy * step).tolist()]
            out.write(b",\n  " if copy else b"\n  ")
            out.write(b"".join(chain.from_iterable(zip(between, [*shifted, b""], strict=True))))
        out.write(text[end:])
    return copies * int(time.sum())


class Measured(NamedTuple):
    """One run: wall and CPU seconds over all its processes, and their peak memory together."""

    wall_s: float
    cpu_s: float
    megabytes: float


def measure(command: list[str]) -> Measured:
    """Run a command to its end; CPU seconds are what a busy machine does not distort."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    peak = [0.0]

    def watch() -> None:
        while process.poll() is None:
            peak[0] = max(peak[0], tree_megabytes(process.pid))
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    error = process.stderr.read() if process.stderr else ""
    watcher.join()
    wall = time.perf_counter() - begin
    if process.returncode:
        raise SystemExit(f"{command[0]} failed:\n{error[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Measured(wall, cpu, peak[0])


def tree_megabytes(pid: int) -> float:
    """Proportional set size of a process and its children (pages shared between them count once)."""
    total = 0.0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) / 1e3
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                total += tree_megabytes(int(child))
    except (OSError, ValueError):
        pass
    return total


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[50, 500])
    parser.add_argument("--hta", help="python of an environment with HolisticTraceAnalysis and pandas < 3")
    parser.add_argument("--hta-most", type=float, default=600, help="largest size HTA is asked to read")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=1)
    args = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {args.source.name}")
    print(
        "    MB     events | stepline s (spread)   CPU s     MB |    HTA s   CPU s      MB | times faster, CPU"
    )
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in args.megabytes:
            files = [Path(folder) / f"rank{rank}_trace_{megabytes:.0f}.json.gz" for rank in range(args.ranks)]
            events = repeat(args.source, files[0], megabytes) * args.ranks
            for file in files[1:]:
                file.hardlink_to(files[0])
            runs = [measure([sys.executable, "-c", STEPLINE, *map(str, files)]) for _ in range(args.runs)]
            walls = sorted(run.wall_s for run in runs)
            own = min(run.cpu_s for run in runs), max(run.megabytes for run in runs)
            line = f"{megabytes:6.0f} {events:10,} | {walls[0]:8.2f} (+{walls[-1] - walls[0]:.2f}) "
            line += f"{own[0]:10.2f} {own[1]:6.0f} |"
            if args.hta and megabytes <= args.hta_most:
                hta = measure([args.hta, "-c", HTA, str(files[0])])
                line += f" {hta.wall_s:8.1f} {hta.cpu_s:7.1f} {hta.megabytes:7.0f} |"
                line += f" {hta.wall_s / walls[0]:6.1f} {hta.cpu_s / own[0]:7.1f}"
            print(line, flush=True)
            for file in files:
                file.unlink()


if __name__ == "__main__":
    main()
