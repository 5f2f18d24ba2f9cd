"""`stepline record URL -o DIR`: capture a running server, think later."""

import argparse
from pathlib import Path

from stepline.cli.live_arguments import add_live_arguments, live_request
from stepline.cli.progress import Progress
from stepline.cli.setup_arguments import add_setup_arguments, setup_request
from stepline.errors import UsageError
from stepline.sources.address import is_url
from stepline.tasks.record import record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `record`."""
    parser.add_argument("url", metavar="URL", help="the server, for example http://localhost:30000")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder of the capture")
    add_setup_arguments(parser)
    add_live_arguments(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    """Record; the folder is readable whenever this stops."""
    if not is_url(args.url):
        raise UsageError(f"{args.url}: give the URL of a server, for example http://localhost:30000")
    folder, progress = Path(args.output), Progress(quiet=args.quiet)
    record(args.url, folder, live_request(args, setup_request(args)), progress)
    progress.tell(f"recorded; next: stepline diagnose {folder}")
    return 0
