"""`stepline trace PATH...`: steps, components, kernels and ranks of GPU traces."""

import argparse
import sys
from pathlib import Path

import msgspec

from stepline.cli.files import write_text
from stepline.cli.progress import Progress
from stepline.tasks.traces import TraceRequest, account


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `trace`."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", type=Path, help="traces, or folders of them, any rank count"
    )
    parser.add_argument("--context-length", type=int, metavar="N", help="configured context in tokens")
    parser.add_argument(
        "--step-ms", type=float, metavar="X", help="a decode step's wall measured without the profiler"
    )
    parser.add_argument("--gpu", metavar="NAME", help="the GPU, where the trace does not name it")
    parser.add_argument(
        "--top", type=int, default=12, metavar="K", help="kernels shown (default %(default)s)"
    )
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write the summary as JSON; - or nothing for stdout",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    """Account and print."""
    request = TraceRequest(
        paths=tuple(args.paths), context_length=args.context_length, step_ms=args.step_ms, gpu=args.gpu
    )
    summary = account(request, Progress(quiet=args.quiet))
    if args.json:
        text = msgspec.json.format(msgspec.json.encode(summary), indent=1).decode() + "\n"
        if args.json == "-":
            sys.stdout.write(text)
            return 0
        write_text(args.json, text)
    from stepline.report.trace_terminal import show  # noqa: PLC0415 - rich is slow to import

    show(summary, args.top)
    return 0
