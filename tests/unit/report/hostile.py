"""Evidence from a server that wants to harm whoever reads the report."""

import json
from pathlib import Path

from tests.unit.trace_writer import TraceWriter

SCRIPT = "\"'><script>alert(1)</script><img src=x onerror=alert(2)> @octocat #1 `x` | \x1b[2J\u202e"
MEGABYTES = 10


def write(folder: Path) -> Path:
    """A log, a server_info and a trace whose every name is an attack, one of them ten megabytes long."""
    long_name = SCRIPT + "<b>&" * (MEGABYTES * 1_000_000 // 4)
    (folder / "server_info.json").write_text(
        json.dumps(
            {
                "model_path": long_name,
                "version": SCRIPT,
                "attention_backend": SCRIPT,
                "tp_size": 1,
                "mem_fraction_static": 0.8,
            }
        )
    )
    line = (
        "[2026-01-01 00:00:{second:02d}] Decode batch, #running-req: {running}, #token: {tokens}, "
        "token usage: 0.00, cuda graph: True, gen throughput (token/s): {rate}, #queue-req: 0\n"
    )
    (folder / f"{SCRIPT.replace('/', '')[:60]}.log").write_text(
        "".join(
            line.format(second=second, running=8 if second < 6 else 16, tokens=900, rate=rate)
            for second, rate in enumerate([100, 101, 100, 100, 101, 100, 101, 100, 100, 101, 100])
        )
    )
    (folder / "levers.csv").write_text(
        'lever,running,before,after\n"' + SCRIPT.replace('"', '""') + '",8,100,100\n'
    )
    writer = TraceWriter()
    for step in range(4):
        at = 1000.0 + 1000.0 * step
        writer.span("user_annotation", "step[DECODE bs=8]", at, 300.0)
        kernels = [(long_name if step == 0 else SCRIPT, 200.0, (132, 1, 1)), (SCRIPT, 100.0, (8, 4, 1))]
        writer.graph(kernels, at + 50, at + 100, 1000 + step)
    writer.save(folder / "decode.trace.json.gz")
    return folder
