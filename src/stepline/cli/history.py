"""`stepline history DIR`: the ledger of levers tried over a folder of runs."""

import argparse

from stepline.cli.progress import Progress
from stepline.cli.results import add_result_arguments, check_one_stdout, deliver_result
from stepline.cli.setup_arguments import add_setup_arguments, setup_request
from stepline.report.history_md import to_markdown
from stepline.report.history_terminal import draw
from stepline.tasks.history import history_of

INCONCLUSIVE = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `history`."""
    parser.add_argument(
        "folder",
        help="a folder of runs: each folder in it is one (evidence or a bundle), loose files are read as one more",
    )
    add_setup_arguments(parser)
    add_result_arguments(parser, as_json="the ledger", as_markdown="a findings document")


def run(args: argparse.Namespace) -> int:
    """Read every run, compare, report; 3 when nothing could be compared."""
    check_one_stdout(args)
    result = history_of(args.folder, setup_request(args), Progress(quiet=args.quiet))
    deliver_result(result, args, to_markdown, draw)
    return 0 if result.entries else INCONCLUSIVE
