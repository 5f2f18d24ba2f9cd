"""`stepline compare BEFORE AFTER`: the verdict on a change, with its interval."""

import argparse

from stepline.cli.progress import Progress
from stepline.cli.results import add_result_arguments, check_one_stdout, deliver_result
from stepline.cli.setup_arguments import add_setup_arguments, setup_request
from stepline.errors import UsageError
from stepline.report.comparison_md import to_markdown
from stepline.report.comparison_terminal import draw
from stepline.tasks.compare import CompareRequest, compare_runs

USUAL = CompareRequest(before=(), after=())
EXIT_CODES = {"better": 0, "same": 0, "worse": 1, "inconclusive": 3}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compare`."""
    parser.add_argument(
        "sides",
        nargs="*",
        metavar="BEFORE AFTER",
        help="two runs, each a file, a folder of evidence or a bundle; a folder of several runs is repeats, and alone "
        "is both sides where its runs have two configurations",
    )
    parser.add_argument("--before", nargs="+", default=[], metavar="RUN", help="repeats of BEFORE")
    parser.add_argument("--after", nargs="+", default=[], metavar="RUN", help="repeats of AFTER")
    parser.add_argument(
        "--effect",
        type=float,
        default=USUAL.effect_percent,
        metavar="PERCENT",
        help="change that counts as none, and that repeats are asked for to see (default %(default)g)",
    )
    add_setup_arguments(parser)
    add_result_arguments(parser, as_json="the comparison", as_markdown="Markdown for a pull request")


def run(args: argparse.Namespace) -> int:
    """Compare, report and choose the exit code: 0 better or same, 1 worse, 3 inconclusive."""
    check_one_stdout(args)
    before, after = _sides(args)
    request = CompareRequest(
        before=before, after=after, effect_percent=args.effect, setup=setup_request(args)
    )
    result = compare_runs(request, Progress(quiet=args.quiet))
    deliver_result(result, args, to_markdown, draw)
    return EXIT_CODES[result.verdict]


def _sides(args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if args.sides and (args.before or args.after):
        raise UsageError("give BEFORE AFTER, or --before and --after, not both")
    before, after = args.before, args.after
    if args.sides:
        if len(args.sides) > 2:
            raise UsageError(
                f"{len(args.sides)} runs given: BEFORE and AFTER are one each; repeats go to --before and --after"
            )
        before, after = args.sides[:1], args.sides[1:]
        if not after:
            return tuple(before), ()
    if not before or not after:
        raise UsageError("two sides are needed: stepline compare BEFORE AFTER")
    return tuple(before), tuple(after)
