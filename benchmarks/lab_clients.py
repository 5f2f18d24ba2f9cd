"""Whether clients of other projects believe the simulated server, and whether its log reads as an engine's own.

Run: python benchmarks/lab_clients.py [--vllm PATH] [--sglang PYTHON] [--speed 4]

`vllm bench serve` (PATH of `vllm`) and SGLang's `bench_serving` (a PYTHON that has sglang) drive `stepline lab serve`
of both engines, as `importers.py` drives its mock. Each must end with every request done. Then the project's own reader
reads the server's log: a known kind, nothing damaged, decode lines in it. A tool that is not given is named.
"""

import argparse
import asyncio
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from importers import MODEL, REQUESTS, STREAMS, sglang, vllm

from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.lab.sim.faults import find_fault
from stepline.lab.sim.serve import serve
from stepline.lab.sim.start import start
from stepline.sources.read import read


class Server:
    """A simulated engine on a free port, in a thread; its log goes to `log`."""

    def __init__(self, engine: str, log: Path, speed: float) -> None:
        fault, strength = find_fault("healthy")
        config = find_model("llama-3.1-8b").config
        self._started = start(engine, MODEL, config, find_gpu("h200"), fault=fault, strength=strength, seed=1)
        self._log, self._speed = log, speed
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self.port = 0

    def __enter__(self) -> int:
        threading.Thread(target=self._run, daemon=True).start()
        self._ready.wait()
        return self.port

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with self._log.open("w") as file:
            self._task = self._loop.create_task(
                serve(self._started, 0, file.write, speed=self._speed, ready=self._bound)
            )
            self._loop.run_until_complete(asyncio.wait([self._task]))

    def _bound(self, port: int) -> None:
        self.port = port
        self._ready.set()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tools: dict[str, Callable[[str, int, Path], None]] = {"vllm": vllm, "sglang": sglang}
    for name in tools:
        parser.add_argument(f"--{name}")
    parser.add_argument("--speed", type=float, default=1.0, help="times real time (1)")
    args = vars(parser.parse_args())
    for name, drive in tools.items():
        if not args[name]:
            print(f"{name:7} skipped: no command given")
            continue
        for engine in ("sglang", "vllm"):
            print(
                f"{name:7} against the simulated {engine}: {_driven(drive, args[name], engine, args['speed'])}"
            )


def _driven(drive: Callable[[str, int, Path], None], command: str, engine: str, speed: float) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        folder, log = Path(scratch), Path(scratch) / "server.log"
        with Server(engine, log, speed) as port:
            drive(command, port, folder)
        (level,) = read([folder / "out"]).levels
        run = read([log])
        (file,) = run.files
        known = f"{file.kind}, {file.damaged} damaged lines, {len(run.decodes)} decode lines"
        done = "all" if level.requests == REQUESTS and not level.failed else "NOT ALL"
        return f"{done} of {REQUESTS} requests over {STREAMS} streams done, {level.tok_s:.0f} tok/s; log: {known}"


if __name__ == "__main__":
    main()
