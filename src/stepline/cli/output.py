"""Writes a diagnosis where the user asked for it; stdout carries results, stderr progress."""

import argparse
import sys
from pathlib import Path

from stepline.cli.files import check_writable, write_text
from stepline.errors import UsageError
from stepline.findings.diagnosis import Diagnosis
from stepline.report.jsonout import to_json

FAIL_ON = 1
INCONCLUSIVE = 3
ANY_FINDING = ("confirmed", "suspected")
"""What `--fail-on` takes besides rules."""


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that every command with a diagnosis shares."""
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write the diagnosis as JSON; - or nothing for stdout",
    )
    parser.add_argument(
        "--html", metavar="FILE", help="write the diagnosis as one page that needs no network"
    )
    parser.add_argument("--md", metavar="FILE", help="write the diagnosis as Markdown for an issue")
    parser.add_argument(
        "--fail-on",
        metavar="WHAT",
        help="exit 1 when a finding matches: a rule code, confirmed, or suspected",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="no progress and no report, only files asked for"
    )


def check_output(args: argparse.Namespace) -> None:
    """Refuse output that cannot be given, before minutes of a server's time are spent on it.

    Raises:
        UsageError: a file cannot be written, or `--fail-on` names no rule.
    """
    for option in ("html", "md"):
        if getattr(args, option) is not None:
            check_writable(_file(getattr(args, option), f"--{option}"))
    if args.json not in (None, "-"):
        check_writable(args.json)
    if args.fail_on is not None and args.fail_on not in ANY_FINDING:
        from stepline.findings.registry import find_rule  # noqa: PLC0415

        find_rule(args.fail_on)


def deliver(diagnosis: Diagnosis, args: argparse.Namespace) -> int:
    """Write the files asked for and the terminal report, and choose the exit code.

    Raises:
        UsageError: when a file cannot be written or `--fail-on` names no rule.
    """
    failing = _failing(diagnosis, args.fail_on)
    if args.html is not None:
        from stepline.report.html import page  # noqa: PLC0415  # jinja2, only for pages

        write_text(_file(args.html, "--html"), page(diagnosis))
    if args.md is not None:
        from stepline.report.markdown import markdown  # noqa: PLC0415

        write_text(_file(args.md, "--md"), markdown(diagnosis))
    if args.json == "-":
        sys.stdout.write(to_json(diagnosis) + "\n")
    else:
        if args.json is not None:
            write_text(Path(args.json), to_json(diagnosis) + "\n")
        if not args.quiet:
            from stepline.report.terminal import draw  # noqa: PLC0415  # rich is only for people

            draw(diagnosis, sys.stdout)
    if failing:
        return FAIL_ON
    return 0 if diagnosis.conclusive else INCONCLUSIVE


def _failing(diagnosis: Diagnosis, wanted: str | None) -> bool:
    if wanted is None:
        return False
    if wanted == "confirmed":
        return any(finding.status == "confirmed" for finding in diagnosis.findings)
    if wanted == "suspected":
        return bool(diagnosis.findings)
    from stepline.findings.registry import find_rule  # noqa: PLC0415

    code = find_rule(wanted).code
    return any(finding.code == code for finding in diagnosis.findings)


def _file(name: str, option: str) -> Path:
    if name == "-":
        raise UsageError(f"{option} -: stdout carries the report or the JSON; name a file")
    return Path(name)
