"""`stepline diagnose TARGET...`: recorded evidence in, diagnosis out."""

import argparse
from pathlib import Path

from stepline.cli.live_arguments import add_live_arguments, add_restart_arguments
from stepline.cli.output import add_output_arguments, check_output, deliver
from stepline.cli.progress import Progress
from stepline.cli.setup_arguments import add_setup_arguments, setup_request
from stepline.errors import UsageError
from stepline.sources.address import is_url, lacks_scheme
from stepline.tasks.diagnose import diagnose
from stepline.tasks.setup import check


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `diagnose`."""
    parser.add_argument(
        "targets",
        nargs="+",
        metavar="TARGET",
        help="a server's URL, or files and folders of evidence, recognised by content",
    )
    add_setup_arguments(parser)
    add_live_arguments(parser)
    parser.add_argument("--save", metavar="DIR", help="keep what a live server said and how it was driven")
    add_restart_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Read, assess, diagnose, report."""
    for target in args.targets:
        if lacks_scheme(target) and not Path(target).exists():
            raise UsageError(f"{target}: no such file; for a server give http://{target}")
    if any(is_url(target) for target in args.targets):
        if len(args.targets) > 1:
            raise UsageError(
                "give one server's URL alone; recorded evidence of it is found or given with --log"
            )
        check(setup_request(args))
        check_output(args)
        # Load and HTTP, only for a live server.
        if args.restart is not None:
            from stepline.cli.trial import diagnose_and_try  # noqa: PLC0415

            return diagnose_and_try(args.targets[0], args)
        from stepline.cli.live import diagnose_server  # noqa: PLC0415

        answer = diagnose_server(args.targets[0], args)
        code = deliver(answer.diagnosis, args)
        Progress(quiet=args.quiet).tell(*answer.next_steps)
        return code
    if args.restart is not None:
        raise UsageError("--restart: only a running server can be restarted; give its URL")
    return deliver(diagnose(args.targets, setup_request(args), Progress(quiet=args.quiet)), args)
