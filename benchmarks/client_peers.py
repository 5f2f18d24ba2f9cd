"""What it costs to read a streamed token, and how far off a client's own times are, beside other clients.

Run: python benchmarks/client_peers.py [--vllm PYTHON] [--sglang PYTHON] [--tokenizer DIR]

PYTHON is an interpreter that has vLLM or sglang, DIR a tokenizer for their random prompts. Needs gcc, Linux and two
cores: the mock server (`mock_stream.c`) has one to itself, the client the other. CPU is user and system time of the
whole client process, less that of the same command with one short request; tokens are those that the server wrote.
The server's own times are the truth for time to first token. Of up to four runs the one least disturbed by other
processes counts; its disturbance is shown. The bar: at most 10 µs a token and fewer than both
Python clients, at most 10 % error in time to first token at 256 streams, exact counts at any number of tokens an event.
"""

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import uvloop

from stepline.sources.engines.sglang.dialect import NativeGenerate
from stepline.sources.load.dialect import Dialect
from stepline.sources.load.drive import run_level
from stepline.sources.load.level import Address, LevelPlan
from stepline.sources.openai_dialect import Completions

GAP_MS, TTFT_MS, ANSWER, ROUNDS = 10.0, 50.0, 200, 4
QUIET = 0.05
"""Share of other processes up to which a run stands."""
CLIENT_CORE, SERVER_CORE = 0, 1


DIALECTS: dict[str, Dialect] = {
    "native": NativeGenerate(),
    "openai": Completions("mock", takes_ids=True, running_usage=True, extensions=True),
}


class Load(NamedTuple):
    """So many streams, each with so many answers of so many tokens."""

    streams: int
    rounds: int = ROUNDS
    answer: int = ANSWER


class Seen(NamedTuple):
    """What a client said of a run, what the run cost it, and what the server knew."""

    said: dict[str, Any]
    cpu_s: float
    true_ttft_ms: float
    tokens: int
    others: float
    """Share of both cores' time that went to other processes: times of a disturbed run say little."""


Command = Callable[[int, Load, Path], list[str]]
"""From port, load and result file to a command line."""


def drive(port: int, dialect: str, load: Load) -> None:
    """One level by stepline's client, in the time that the rounds take; prints what it says as JSON."""
    seconds = load.rounds * (TTFT_MS + load.answer * GAP_MS) / 1000
    plan = LevelPlan(
        concurrency=load.streams,
        input_tokens=128,
        output_tokens=load.answer,
        seconds=seconds,
        vocabulary=30_000,
    )
    got = uvloop.run(run_level(Address(host="127.0.0.1", port=port), DIALECTS[dialect], plan))
    assert got.failures.first is None, got.failures
    sys.stdout.write(msgspec.json.encode(got).decode())


def stepline(dialect: str) -> Command:
    def command(port: int, load: Load, _result: Path) -> list[str]:
        shape = [str(number) for number in load]
        return [sys.executable, __file__, "--drive", str(port), dialect, *shape]

    return command


def vllm_bench(python: str, tokenizer: str) -> Command:
    def command(port: int, load: Load, result: Path) -> list[str]:
        return [
            *(
                python,
                "-m",
                "vllm.entrypoints.cli.main",
                "bench",
                "serve",
                "--backend",
                "openai",
                "--model",
                "mock",
            ),
            *("--base-url", f"http://127.0.0.1:{port}", "--tokenizer", tokenizer, "--dataset-name", "random"),
            *(
                "--random-input-len",
                "128",
                "--random-output-len",
                str(load.answer),
                "--ignore-eos",
                "--disable-tqdm",
            ),
            *("--num-prompts", str(load.streams * load.rounds), "--max-concurrency", str(load.streams)),
            *("--save-result", "--result-dir", str(result.parent), "--result-filename", result.name),
            *("--ready-check-timeout-sec", "0"),
        ]

    return command


def sglang_bench(python: str, tokenizer: str) -> Command:
    def command(port: int, load: Load, result: Path) -> list[str]:
        return [
            *(
                python,
                "-m",
                "sglang.bench_serving",
                "--backend",
                "sglang",
                "--model",
                "mock",
                "--disable-tqdm",
            ),
            *(
                "--base-url",
                f"http://127.0.0.1:{port}",
                "--tokenizer",
                tokenizer,
                "--dataset-name",
                "random-ids",
            ),
            *(
                "--random-input-len",
                "128",
                "--random-output-len",
                str(load.answer),
                "--random-range-ratio",
                "1.0",
            ),
            *("--num-prompts", str(load.streams * load.rounds), "--max-concurrency", str(load.streams)),
            *("--output-file", str(result), "--warmup-requests", "0"),
        ]

    return command


@contextmanager
def mock_server(binary: Path, per_event: int = 1, *, own_phase: bool = False) -> Iterator[int]:
    """The mock on a free port and its own core."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    shape = [str(port), str(round(GAP_MS * 1000)), str(per_event), str(round(TTFT_MS * 1000)), "8192"]
    shape.append("0" if own_phase else "1")
    server = subprocess.Popen([str(binary), *shape])
    os.sched_setaffinity(server.pid, {SERVER_CORE})
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield port
    finally:
        server.kill()
        server.wait()


def run(command: Command, port: int, load: Load, folder: Path, tries: int = 4) -> Seen:
    """The least disturbed of several runs, the first that is hardly disturbed ending them."""
    runs: list[Seen] = []
    while len(runs) < tries and not any(seen.others < QUIET for seen in runs):
        runs.append(_run(command, port, load, folder))
    return min(runs, key=lambda seen: seen.others)


def _run(command: Command, port: int, load: Load, folder: Path) -> Seen:
    """One run on the client's core."""
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    _server_view(port)
    before_s, start = _others_busy_s(), time.monotonic()
    with (folder / "out").open("w+") as out, (folder / "err").open("w+") as err:
        client = subprocess.Popen(command(port, load, result), stdout=out, stderr=err, cwd=folder)
        os.sched_setaffinity(client.pid, {CLIENT_CORE})
        _, status, usage = os.wait4(client.pid, 0)
        client.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        assert client.returncode == 0, err.read()[-2000:]
        out.seek(0)
        said = json.loads(result.read_text() if result.exists() else out.read())
    others = (_others_busy_s() - before_s - usage.ru_utime - usage.ru_stime) / (time.monotonic() - start) / 2
    first_us, tokens = _server_view(port)
    return Seen(said, usage.ru_utime + usage.ru_stime, statistics.fmean(first_us) / 1000, tokens, others)


def _others_busy_s() -> float:
    """Busy time of both cores but for the mock's: with the client's taken off, that of everybody else."""
    ticks = os.sysconf("SC_CLK_TCK")
    cores = [
        line.split() for line in Path("/proc/stat").read_text().splitlines() if line[:4] in ("cpu0", "cpu1")
    ]
    busy = sum(int(field) for core in cores for field in (*core[1:4], *core[6:9]))
    mocks = [
        (stat / "stat").read_text().rsplit(")", 1)[1].split()
        for stat in Path("/proc").glob("[0-9]*")
        if (stat / "comm").exists() and (stat / "comm").read_text().strip() == "mock_stream"
    ]
    return (busy - sum(int(mock[11]) + int(mock[12]) for mock in mocks)) / ticks


def _server_view(port: int) -> tuple[list[int], int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/times") as answer:
        *first_us, tokens = map(int, answer.read().split())
    return first_us, tokens


def told(said: dict[str, Any]) -> dict[str, float]:
    """Time to first token, time per token, gap and tokens an answer, by whichever client."""
    if "level" in said:
        level = said["level"]
        return {name: level[name] for name in ("ttft_ms", "tpot_ms", "itl_ms", "output_tokens")}
    return {
        "ttft_ms": said["mean_ttft_ms"],
        "tpot_ms": said["mean_tpot_ms"],
        "itl_ms": said["mean_itl_ms"],
        "output_tokens": said["total_output_tokens"] / said["completed"],
    }


def cost_table(
    clients: dict[str, Command], binary: Path, folder: Path, streams: list[int], *, own_phase: bool
) -> None:
    print(
        f"\n{'client':24} {'streams':>7} {'CPU µs/token':>12} {'TTFT ms':>8} {'true':>6} {'error':>7}", end=""
    )
    print(f" {'TPOT ms':>8} {'others':>6}")
    with mock_server(binary, own_phase=own_phase) as port:
        for name, command in clients.items():
            idle = run(command, port, Load(1, 1, 2), folder)
            for count in streams:
                seen = run(command, port, Load(count), folder)
                cost_us = 1e6 * (seen.cpu_s - idle.cpu_s) / (seen.tokens - idle.tokens)
                said = told(seen.said)
                off = said["ttft_ms"] / seen.true_ttft_ms - 1
                print(
                    f"{name:24} {count:7} {cost_us:12.1f} {said['ttft_ms']:8.1f} {seen.true_ttft_ms:6.1f} {off:+7.1%} "
                    f"{said['tpot_ms']:8.2f} {seen.others:6.0%}",
                    flush=True,
                )


def count_table(clients: dict[str, Command], binary: Path, folder: Path) -> None:
    print(f"\n{'client':24} {'tokens an event':>15} {'tokens an answer':>16} {'ITL ms (true 10)':>16}")
    for per_event in (1, 3, 8):
        with mock_server(binary, per_event) as port:
            for name, command in clients.items():
                said = told(run(command, port, Load(1, 2), folder, tries=1).said)
                print(
                    f"{name:24} {per_event:15} {said['output_tokens']:16.1f} {said['itl_ms']:16.2f}",
                    flush=True,
                )


def health_table(binary: Path, folder: Path, streams: list[int]) -> None:
    print(
        f"\n{'streams':>8} {'CPU share':>9} {'lag p50':>8} {'lag p99':>8} {'TTFT off ms':>11} of ideal tok/s"
    )
    with mock_server(binary) as port:
        for count in streams:
            seen = run(stepline("native"), port, Load(count, 2), folder)
            health, level = seen.said["health"], seen.said["level"]
            ideal = 1000 / GAP_MS * (level["decoding"] or 0)
            print(
                f"{count:8} {health['cpu_share']:9.2f} {health['lag_p50_ms']:8.1f} {health['lag_p99_ms']:8.1f} "
                f"{level['ttft_ms'] - seen.true_ttft_ms:11.1f} {(level['tok_s'] or 0) / ideal:.1%}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vllm", metavar="PYTHON")
    parser.add_argument("--sglang", metavar="PYTHON")
    parser.add_argument("--tokenizer", metavar="DIR")
    parser.add_argument("--streams", type=int, nargs="+", default=[256, 512])
    parser.add_argument(
        "--own-phase", action="store_true", help="streams answer at times of their own, not together in steps"
    )
    parser.add_argument(
        "--only-cost", action="store_true", help="leave out the tables of counts and of health"
    )
    parser.add_argument("--drive", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.drive:
        port, dialect, *shape = arguments.drive
        drive(int(port), dialect, Load(*map(int, shape)))
        return
    clients = {"stepline, native": stepline("native"), "stepline, OpenAI": stepline("openai")}
    if arguments.vllm:
        clients["vllm bench serve"] = vllm_bench(arguments.vllm, arguments.tokenizer)
    if arguments.sglang:
        clients["sglang bench_serving"] = sglang_bench(arguments.sglang, arguments.tokenizer)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        binary = folder / "mock_stream"
        subprocess.run(["gcc", "-O2", "-o", binary, Path(__file__).parent / "mock_stream.c"], check=True)
        print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
        cost_table(clients, binary, folder, arguments.streams, own_phase=arguments.own_phase)
        if arguments.only_cost:
            return
        count_table(clients, binary, folder)
        health_table(binary, folder, [64, 256, 512, 1024, 2048, 4096])


if __name__ == "__main__":
    main()
