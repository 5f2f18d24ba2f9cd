"""`stepline diagnose TARGET...`: recorded evidence in, diagnosis out."""

import argparse
from pathlib import Path

from stepline.cli.live_arguments import add_live_arguments, add_restart_arguments, live_request
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
    parser.add_argument(
        "--run",
        dest="run_id",
        metavar="ID",
        help="of several runs, the one to report; default: the heaviest load, then the latest",
    )
    add_live_arguments(parser)
    parser.add_argument("--save", metavar="DIR", help="keep what a live server said and how it was driven")
    add_restart_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Read, assess, diagnose, report."""
    for target in args.targets:
        if lacks_scheme(target) and not Path(target).exists():
            raise UsageError(f"{target}: no such file; for a server give http://{target}")
    setup, progress = setup_request(args), Progress(quiet=args.quiet)
    if not any(is_url(target) for target in args.targets):
        if args.restart is not None:
            raise UsageError("--restart: only a running server can be restarted; give its URL")
        return deliver(diagnose(args.targets, setup, progress, run=args.run_id), args)
    if len(args.targets) > 1:
        raise UsageError("give one server's URL alone; recorded evidence of it is found or given with --log")
    check(setup)
    check_output(args)
    # Load and HTTP, only for a live server.
    if args.restart is not None:
        from stepline.cli.trial import run as run_trial  # noqa: PLC0415

        return run_trial(args.targets[0], args, setup, progress)
    from stepline.tasks.diagnose_live import diagnose_server  # noqa: PLC0415

    save = Path(args.save) if args.save else None
    answer = diagnose_server(args.targets[0], live_request(args, setup), progress, save=save)
    code = deliver(answer.diagnosis, args)
    progress.tell(*answer.next_steps)
    return code
