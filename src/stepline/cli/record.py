"""`stepline record URL -o DIR`: capture a running server, think later."""

import argparse
import sys
from pathlib import Path

from stepline.cli.live import record_server, say_kept
from stepline.cli.live_arguments import add_live_arguments
from stepline.cli.setup_arguments import add_setup_arguments, setup_request
from stepline.errors import UsageError
from stepline.sources.address import is_url
from stepline.tasks.setup import check


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
    check(setup_request(args))
    folder = Path(args.output)
    try:
        record_server(args.url, folder, args)
    except KeyboardInterrupt:
        say_kept(folder)
        raise
    if not args.quiet:
        print(f"recorded; next: stepline diagnose {folder}", file=sys.stderr)
    return 0
