"""`stepline history DIR`: the ledger of levers tried over a folder of runs."""

import argparse
from pathlib import Path

from stepline.cli.progress import Progress
from stepline.cli.results import add_result_arguments, check_one_stdout, deliver_result
from stepline.cli.setup_arguments import add_setup_arguments, setup_request
from stepline.errors import UnreadableEvidence, UsageError
from stepline.findings.history import History
from stepline.findings.ledger import ledger
from stepline.model.picture.picture import Picture
from stepline.report.history_md import to_markdown
from stepline.report.history_terminal import draw
from stepline.tasks.picture import picture_of
from stepline.tasks.setup import check

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
    result = history_of(args.folder, args)
    deliver_result(result, args, to_markdown, draw)
    return 0 if result.entries else INCONCLUSIVE


def history_of(folder: str, args: argparse.Namespace) -> History:
    """The ledger of a folder.

    Raises:
        UsageError: when it is no folder.
        UnreadableEvidence: when nothing in it could be read.
    """
    check(setup_request(args))
    root = Path(folder)
    if not root.is_dir():
        raise UsageError(f"{folder}: no folder; give one whose folders are runs")
    visible = sorted(child for child in root.iterdir() if not child.name.startswith("."))
    places = [(child.name, [str(child)]) for child in visible if child.is_dir()]
    loose = [str(child) for child in visible if child.is_file()]
    if loose:
        places.append(("loose files", loose))
    runs: list[tuple[str, Picture]] = []
    passed: list[str] = []
    for name, paths in places:
        try:
            runs.append((name, picture_of(paths, setup_request(args), Progress(quiet=args.quiet))))
        except UnreadableEvidence as error:
            passed.append(f"{name}: {error}")
    if not runs:
        raise UnreadableEvidence(passed[0] if passed else f"{folder}: the folder is empty")
    return ledger(runs, passed)
