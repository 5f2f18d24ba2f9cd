"""`stepline history DIR`: the ledger of levers tried over a folder of runs."""

import argparse
import sys
from pathlib import Path

from stepline.cli.diagnose import add_setup_arguments, check, picture_of
from stepline.cli.files import write_text
from stepline.errors import UnreadableEvidence, UsageError
from stepline.findings.history import History
from stepline.findings.ledger import ledger
from stepline.model.picture import Picture
from stepline.report.jsonout import to_json

INCONCLUSIVE = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `history`."""
    parser.add_argument(
        "folder",
        help="a folder of runs: each folder in it is one (evidence or a bundle), loose files are read as one more",
    )
    add_setup_arguments(parser)
    parser.add_argument("--json", metavar="FILE", help="write the ledger as JSON, - for stdout")
    parser.add_argument("--md", metavar="FILE", help="write it as a findings document, - for stdout")
    parser.add_argument(
        "--quiet", action="store_true", help="no progress and no report, only files asked for"
    )


def run(args: argparse.Namespace) -> int:
    """Read every run, compare, report; 3 when nothing could be compared."""
    from stepline.report.history_md import to_markdown  # noqa: PLC0415

    if args.json == "-" and args.md == "-":
        raise UsageError("--json - and --md -: one of them may take stdout")
    result = history_of(args.folder, args)
    for target, text in ((args.json, to_json), (args.md, to_markdown)):
        if target is not None and target != "-":
            write_text(target, text(result) + "\n")
    if args.json == "-":
        sys.stdout.write(to_json(result) + "\n")
    elif args.md == "-":
        sys.stdout.write(to_markdown(result) + "\n")
    elif not args.quiet:
        from stepline.report.history_terminal import draw  # noqa: PLC0415  # rich is only for people

        draw(result, sys.stdout)
    return 0 if result.entries else INCONCLUSIVE


def history_of(folder: str, args: argparse.Namespace) -> History:
    """The ledger of a folder.

    Raises:
        UsageError: when it is no folder.
        UnreadableEvidence: when nothing in it could be read.
    """
    check(args)
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
            runs.append((name, picture_of(paths, args)))
        except UnreadableEvidence as error:
            passed.append(f"{name}: {error}")
    if not runs:
        raise UnreadableEvidence(passed[0] if passed else f"{folder}: the folder is empty")
    return ledger(runs, passed)
