"""Writes what `compare` and `history` found: JSON and Markdown to files or stdout, else the terminal report."""

import argparse
import sys
from collections.abc import Callable
from typing import IO, TypeVar

import msgspec

from stepline.cli.files import write_text
from stepline.errors import UsageError
from stepline.report.jsonout import to_json

T = TypeVar("T", bound=msgspec.Struct)


def add_result_arguments(parser: argparse.ArgumentParser, *, as_json: str, as_markdown: str) -> None:
    """`--json`, `--md` and `--quiet`, with what the first two write."""
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help=f"write {as_json} as JSON; - or nothing for stdout",
    )
    parser.add_argument("--md", metavar="FILE", help=f"write it as {as_markdown}, - for stdout")
    parser.add_argument(
        "--quiet", action="store_true", help="no progress and no report, only files asked for"
    )


def deliver_result(
    result: T,
    args: argparse.Namespace,
    to_markdown: Callable[[T], str],
    draw: Callable[[T, IO[str]], None],
) -> None:
    """Write the files asked for, and one of JSON, Markdown and report to stdout.

    Raises:
        UsageError: when a file cannot be written.
    """
    texts: tuple[tuple[str | None, Callable[[T], str]], ...] = ((args.json, to_json), (args.md, to_markdown))
    for target, text in texts:
        if target is not None and target != "-":
            write_text(target, text(result) + "\n")
    shown = next((text for target, text in texts if target == "-"), None)
    if shown is not None:
        sys.stdout.write(shown(result) + "\n")
    elif not args.quiet:
        draw(result, sys.stdout)


def check_one_stdout(args: argparse.Namespace) -> None:
    """Refuse two results on one stdout.

    Raises:
        UsageError: when `--json -` and `--md -` are both given.
    """
    if args.json == "-" and args.md == "-":
        raise UsageError("--json - and --md -: one of them may take stdout")
