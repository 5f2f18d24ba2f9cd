"""A fixed sweep as people run it, and `stepline diagnose URL`, on one server: who knows the step better, and when.

Run: python benchmarks/founding_sweep.py [--seed 0] [--keep DIR]

The server is the lab's, with the founding case's step of about 40 + 31 N ms: 32 billion parameters on one
RTX PRO 6000, and a cost for each request that follows the configured context. The rival is what an engineer ran for
days: 1, 16 and 64 streams; 8, 48 and 128 prompts of 512 tokens; answers of 128 tokens; 13.5 minutes of a real server.
It runs on a virtual clock, as nothing in it depends on what comes out. `stepline diagnose` runs in real time against
the same server on a port, with its default budget, and its time is that of the whole command. Both recordings (log,
metrics, client) are read by the same diagnosis. The bar: the same or a tighter interval in a quarter of the time.
"""

import argparse
import json
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.findings.diagnosis import RunDiagnosis
from stepline.lab.sim.captures.sweep import Level, Seen, Sent, row
from stepline.lab.sim.engine import Engine
from stepline.lab.sim.faults import Fault, Start
from stepline.lab.sim.prompt import BLOCK, Prompt, Request
from stepline.lab.sim.serve import serve_until_stopped
from stepline.lab.sim.start import Started, start
from stepline.lab.sim.surfaces import surface
from stepline.lab.sim.virtual import Virtual
from stepline.lab.sim.world import Work
from stepline.tasks.diagnose import diagnose
from stepline.tasks.setup import SetupRequest

MODEL, GPU = "qwen3-32b", "rtx-pro-6000"
PER_REQUEST_MS = 31.0
SWEEP = ((1, 8), (16, 48), (64, 128))
PROMPT, ANSWER = 512, 128
EPOCH_S = 1_767_225_600.0


class Known(NamedTuple):
    """What one way to measure knows, and the seconds of server time that it took."""

    name: str
    seconds: float
    answer: RunDiagnosis


def planted() -> Fault:
    """The founding case's cost: each request works over the configured context."""

    def plant(begun: Start, _strength: int) -> Start:
        return begun.slow(context_us_per_ktoken=1e6 * PER_REQUEST_MS / begun.settings.context_length)

    return Fault(
        name="founding", expected="K401", finding="context-capacity-work", what="31 ms a request", plant=plant
    )


def server(seed: int) -> Started:
    known = find_model(MODEL)
    gpu = find_gpu(GPU)
    return start("sglang", known.hub_id, known.config, gpu, fault=planted(), strength=1, seed=seed)


def planted_step_ms(seed: int, running: int) -> float:
    """GPU time of a step by the server's own formula, without its noise and host time."""
    work = Work(decoding=running, live_tokens=running * (PROMPT + ANSWER // 2))
    return 1e3 * server(seed).scheduler.world.price(work).gpu_s


def fixed_sweep(seed: int, folder: Path) -> float:
    """Record the rival's sweep; returns its seconds."""
    started, log = server(seed), list[str]()
    virtual = Virtual(Engine(started.scheduler, started.front))
    virtual.now_s = start_s = 60.0  # start-up lines count back from it
    face = surface(started, virtual, log.append, epoch_s=EPOCH_S, address=("127.0.0.1", 30000))
    face.startup()
    draw = random.Random(seed)  # noqa: S311 - load, not cryptography
    rows = [counted_level(virtual, draw, streams, prompts) for streams, prompts in SWEEP]
    seconds = virtual.now_s - start_s
    folder.mkdir()
    for name, text in (
        ("server.log", "".join(log)),
        ("metrics.txt", face.page()),
        ("server_info.json", json.dumps(face.info())),
        ("sweep.json", json.dumps(rows)),
        ("config.json", json.dumps(find_model(MODEL).config)),
    ):
        (folder / name).write_text(text)
    return seconds


def counted_level(virtual: Virtual, draw: random.Random, streams: int, prompts: int) -> dict[str, Any]:
    """All streams start together, and each sends its next request when the last is done, until none is left."""
    level = Level(concurrency=streams, input_tokens=PROMPT, output_tokens=ANSWER, requests=prompts)
    seen, start_s, open_count = Seen(), virtual.now_s, 0

    def send(at_s: float, *, first_round: bool) -> None:
        nonlocal open_count
        if len(seen.requests) == prompts:
            return
        open_count += 1
        prompt = Prompt(PROMPT, tuple(draw.getrandbits(60) for _ in range(PROMPT // BLOCK)))
        request = Request(f"{draw.getrandbits(128):032x}", prompt, ANSWER, at_s)
        sent = Sent(first_round=first_round, sent_s=EPOCH_S + at_s)
        seen.requests.append(sent)
        request.owner = taker(sent)
        virtual.submit(request)

    def taker(sent: Sent) -> Callable[[Request, int, float, int, bool], None]:
        def take(request: Request, new: int, out_s: float, made: int, last: bool) -> None:  # noqa: FBT001
            nonlocal open_count
            now = EPOCH_S + out_s
            if sent.first_s is None:
                sent.first_s, sent.first_tokens, sent.cached = now, made, request.cached
            seen.chunks.append((now, new, None if sent.last_s is None else now - sent.last_s))
            sent.last_s, sent.tokens = now, made
            if last:
                sent.done = True
                open_count -= 1
                send(out_s, first_round=False)

        return take

    for _ in range(streams):
        send(start_s, first_round=True)
    while open_count:
        virtual.run(virtual.now_s + 0.1)
    return row(level, seen, EPOCH_S + start_s, EPOCH_S + virtual.now_s)


def live(seed: int, folder: Path) -> float:
    """Record with `stepline diagnose` and its defaults; returns the command's seconds."""
    log = folder.with_suffix(".log")
    serve = [sys.executable, __file__, "--seed", str(seed), "--serve", str(log)]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        began = time.monotonic()
        command = [sys.executable, "-m", "stepline", "diagnose", url, "--save", str(folder)]
        command += ["--log", str(log), "--gpu", GPU, "--model", MODEL]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        seconds = time.monotonic() - began
        process.send_signal(signal.SIGTERM)
    assert done.returncode in (0, 3), done.returncode
    return seconds


def known(name: str, seconds: float, folder: Path) -> Known:
    return Known(name, seconds, diagnose(folder, SetupRequest(gpu=GPU, model=MODEL)).chosen)


def report(ways: list[Known], seed: int) -> None:
    planned = [planted_step_ms(seed, running) for running in (1, 64)]
    slope = (planned[1] - planned[0]) / 63
    print(f"{platform.machine()}, Python {platform.python_version()}, seed {seed}")
    print(f"planted: {planned[0]:.1f} ms at 1, {planned[1]:.0f} at 64, {slope:.2f} ms a request\n")
    print(
        f"{'':20} {'seconds':>8} {'ms a request':>13} {'95 %':>16} {'half':>7} {'step at load':>14} {'half':>7}"
    )
    for way in ways:
        step, law = way.answer.step, None if way.answer.step is None else way.answer.step.law
        slope_told = span = half = "-"
        if law is not None and law.per_request_ms is not None and law.interval is not None:
            slope_told = f"{law.per_request_ms:.2f}"
            span = f"{law.interval.low:.2f} to {law.interval.high:.2f}"
            half = f"{(law.interval.high - law.interval.low) / 2 / law.per_request_ms:.2%}"
        at = step_half = "-"
        if step is not None:
            at = f"{step.measured_ms:.0f} at {step.running:g}"
            if step.interval is not None:
                step_half = f"{(step.interval.high - step.interval.low) / 2 / step.measured_ms:.2%}"
        print(
            f"{way.name:20} {way.seconds:8.0f} {slope_told:>13} {span:>16} {half:>7} {at:>14} {step_half:>7}"
        )
    for way in ways:
        codes = ", ".join(f"{one.code} {one.status}" for one in way.answer.findings) or "none"
        print(f"{way.name}: {codes}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep both recordings there")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve is not None:
        with args.serve.open("w", buffering=1) as log:
            serve_until_stopped(
                server(args.seed),
                0,
                log.write,
                speed=1.0,
                ready=lambda port: print(f"http://127.0.0.1:{port}", flush=True),
            )
        return
    with tempfile.TemporaryDirectory() as scratch:
        home = args.keep or Path(scratch)
        home.mkdir(parents=True, exist_ok=True)
        sweep = known("fixed sweep", fixed_sweep(args.seed, home / "sweep"), home / "sweep")
        diagnosed = known("stepline diagnose", live(args.seed, home / "live"), home / "live")
    report([sweep, diagnosed], args.seed)


if __name__ == "__main__":
    main()
