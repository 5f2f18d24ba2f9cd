"""`stepline compare BEFORE AFTER`: the verdict on a change, with its interval."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from stepline.cli.progress import Progress
from stepline.cli.results import add_result_arguments, check_one_stdout, deliver_result
from stepline.cli.setup_arguments import add_setup_arguments, setup_request
from stepline.errors import UsageError
from stepline.findings.compare import compare
from stepline.findings.comparison import Comparison
from stepline.model.picture.picture import Picture
from stepline.report.comparison_md import to_markdown
from stepline.report.comparison_terminal import draw
from stepline.sources.address import is_url
from stepline.tasks.picture import picture_of
from stepline.tasks.setup import check

EXIT_CODES = {"better": 0, "same": 0, "worse": 1, "inconclusive": 3}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compare`."""
    parser.add_argument(
        "sides",
        nargs="*",
        metavar="BEFORE AFTER",
        help="two runs, each a file, a folder of evidence or a bundle; a folder of folders is repeats",
    )
    parser.add_argument("--before", nargs="+", default=[], metavar="RUN", help="repeats of BEFORE")
    parser.add_argument("--after", nargs="+", default=[], metavar="RUN", help="repeats of AFTER")
    parser.add_argument(
        "--effect",
        type=float,
        default=3.0,
        metavar="PERCENT",
        help="change that counts as none, and that repeats are asked for to see (default 3)",
    )
    add_setup_arguments(parser)
    add_result_arguments(parser, as_json="the comparison", as_markdown="Markdown for a pull request")


def run(args: argparse.Namespace) -> int:
    """Compare, report and choose the exit code: 0 better or same, 1 worse, 3 inconclusive."""
    check_one_stdout(args)
    result = compare_paths(args)
    deliver_result(result, args, to_markdown, draw)
    return EXIT_CODES[result.verdict]


def compare_paths(args: argparse.Namespace) -> Comparison:
    """The comparison that a command line asks for.

    Raises:
        UsageError: when the command line does not name two sides, or `--effect` is no share of change.
    """
    if not 0 < args.effect <= 50:
        raise UsageError(f"--effect {args.effect:g}: give a percentage above 0 and up to 50")
    check(setup_request(args))
    before, after = _sides(args)
    for path in (*before, *after):
        if is_url(path):
            raise UsageError(f"{path}: compare reads recordings; make one with stepline record {path} -o DIR")
    both = {Path(path).resolve() for path in before} & {Path(path).resolve() for path in after}
    if both:
        raise UsageError(f"{min(both)}: is on both sides; give two recordings")
    return compare(_pictures(before, args), _pictures(after, args), args.effect / 100)


def _sides(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    if args.sides and (args.before or args.after):
        raise UsageError("give BEFORE AFTER, or --before and --after, not both")
    before, after = args.before, args.after
    if args.sides:
        if len(args.sides) != 2:
            raise UsageError(
                f"{len(args.sides)} runs given: BEFORE and AFTER are one each; repeats go to --before and --after"
            )
        before, after = args.sides[:1], args.sides[1:]
    if not before or not after:
        raise UsageError("two sides are needed: stepline compare BEFORE AFTER")
    return [run for path in before for run in runs_in(path)], [run for path in after for run in runs_in(path)]


def runs_in(path: str) -> list[str]:
    """The runs of a path: its folders where it holds nothing but folders, in order of name, else the path itself."""
    root = Path(path)
    inside = (
        sorted(child for child in root.iterdir() if not child.name.startswith(".")) if root.is_dir() else []
    )
    if inside and all(child.is_dir() for child in inside):
        return [str(child) for child in inside]
    return [path]


def _pictures(paths: Sequence[str], args: argparse.Namespace) -> list[Picture]:
    return [picture_of([path], setup_request(args), Progress(quiet=args.quiet)) for path in paths]
