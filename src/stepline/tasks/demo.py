"""The main job on what comes with stepline: a simulated server with a planted fault, or a recording of a real one."""

import contextlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

from stepline.errors import UsageError
from stepline.findings.diagnosis import Diagnosis
from stepline.tasks.diagnose import diagnose
from stepline.tasks.live import LiveRequest
from stepline.tasks.progress import SILENT, Progress
from stepline.tasks.setup import SetupRequest

LIVE = "live"
RECORDED = {
    "founding-case": "DeepSeek-V4-Flash cut to 6 layers on an H200, configured for a million tokens",
    "batch-cap": "Llama-3.1-8B on an H200 with a cap of 8 running requests and 64 clients",
}
PLANTED = {
    "S201:2": "no more than 8 requests may run",
    "S202:3": "the KV pool holds less than a third of what the load needs",
    "H303:3": "decode graphs end at a batch of 8",
    "healthy": "nothing",
}
"""Faults whose steps are short, so that the whole takes half a minute in real time."""
MODEL, GPU = "meta-llama/Llama-3.1-8B", "h200"


def recorded(case: str, progress: Progress = SILENT) -> Diagnosis:
    """The diagnosis of a recording of `RECORDED`."""
    folder = Path(str(resources.files("stepline.lab").joinpath("recorded", case)))
    return diagnose(folder, SetupRequest(gpu=GPU), progress)


def live(
    seed: int | None, progress: Progress = SILENT, on_start: Callable[[str], None] = lambda _url: None
) -> tuple[str, Diagnosis]:
    """The fault of `PLANTED` that `seed` draws (None: any), and the diagnosis of a server that has it.

    Raises:
        UsageError: the simulated server did not start.
    """
    from stepline.tasks.diagnose_live import diagnose_server  # noqa: PLC0415  # load and HTTP

    fault = random.Random(seed).choice(sorted(PLANTED))  # noqa: S311 - a draw, not a secret
    with tempfile.TemporaryDirectory(prefix="stepline-demo-") as scratch:
        log = Path(scratch) / "server.log"
        with _server(fault, log) as url:
            on_start(url)
            request = LiveRequest(log=log, setup=SetupRequest(gpu=GPU, model=MODEL))
            return fault, diagnose_server(url, request, progress).diagnosis


@contextlib.contextmanager
def _server(fault: str, log: Path) -> Iterator[str]:
    """A simulated server in a process of its own, so that it and the client do not share a core's time."""
    command = [sys.executable, "-m", "stepline", "lab", "serve", "--engine", "sglang", "--model", MODEL]
    command += ["--gpu", GPU, "--fault", fault, "--port", "0", "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own command
        try:
            url = process.stdout.readline().strip() if process.stdout else ""
            if not url:
                raise UsageError("the simulated server did not start; `stepline lab serve` shows why")
            yield url
        finally:
            process.terminate()
