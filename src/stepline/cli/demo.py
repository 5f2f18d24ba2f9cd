"""`stepline demo`: the main job, live on a simulated server with a planted fault, or on a recorded real one."""

import argparse
import contextlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from stepline.cli.live import diagnose_server
from stepline.cli.live_arguments import defaults
from stepline.cli.output import add_output_arguments, deliver
from stepline.cli.progress import Progress
from stepline.errors import UsageError
from stepline.tasks.diagnose import diagnose
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `demo`."""
    parser.add_argument(
        "case",
        nargs="?",
        default=LIVE,
        choices=(LIVE, *RECORDED),
        help="a simulated server with a fault drawn at random, diagnosed live (default), or a recording of a real one",
    )
    parser.add_argument("--seed", type=int, help="draws the fault; without it any may come")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Diagnose as `stepline diagnose` would, and say afterwards what was planted."""
    return _live(args) if args.case == LIVE else _recorded(args)


def _recorded(args: argparse.Namespace) -> int:
    folder = Path(str(resources.files("stepline.lab").joinpath("recorded", args.case)))
    if not args.quiet and args.json != "-":
        print(
            f"Recorded from a real server: {RECORDED[args.case]}.\n$ stepline diagnose {args.case} --gpu {GPU}\n"
        )
    return deliver(diagnose([folder], SetupRequest(gpu=GPU), Progress(quiet=args.quiet)), args)


def _live(args: argparse.Namespace) -> int:
    fault = random.Random(args.seed).choice(sorted(PLANTED))  # noqa: S311 - a draw, not a secret
    with tempfile.TemporaryDirectory(prefix="stepline-demo-") as scratch:
        log = Path(scratch) / "server.log"
        with _server(fault, log) as url:
            say = not args.quiet and args.json != "-"
            if say:
                print(
                    f"A simulated SGLang with a fault drawn at random.\n$ stepline diagnose {url} --gpu {GPU}\n",
                    flush=True,
                )
            args_live = defaults(gpu=GPU, model=MODEL, log=str(log), save=None, quiet=not say)
            diagnosis = diagnose_server(url, args_live).diagnosis
    code = deliver(diagnosis, args)
    if say:
        print(f"\nPlanted was {fault}: {PLANTED[fault]}.")
    return code


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
