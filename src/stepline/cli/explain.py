"""`stepline explain CODE`: the rule's own page, from its docstring, and the thresholds that it decides by."""

import argparse
import inspect
import json
import sys
from collections.abc import Sequence

import msgspec

from stepline.findings.outcome import Rule
from stepline.findings.registry import RULES, find_rule
from stepline.findings.relations import relation_lines, relations_of
from stepline.findings.thresholds import Decider, thresholds_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `explain`."""
    parser.add_argument("code", nargs="?", help="a rule's code or name; without one, the rules are listed")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    """Print one page, or the list of rules."""
    if args.code is None:
        rows = [_row(rule) for rule in RULES]
        text = "\n".join(f"{row['code']}  {row['name']}" for row in rows)
        sys.stdout.write((json.dumps(rows, indent=2) if args.json else text) + "\n")
        return 0
    rule = find_rule(args.code)
    if args.json:
        document = {
            **_row(rule),
            "sections": sections(page_of(rule)),
            "relations": msgspec.to_builtins(relations_of(rule.code)),
            "thresholds": msgspec.to_builtins(thresholds_of(rule)),
        }
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(
            f"{page_of(rule)}\n\n{relation_lines(rule.code)}\n\n{threshold_lines(thresholds_of(rule))}\n"
        )
    return 0


def _row(rule: Rule) -> dict[str, str | bool]:
    return {
        "code": rule.code,
        "name": rule.codename,
        "since": rule.since,
        "makes_notes_only": not rule.proven,
    }


def threshold_lines(thresholds: Sequence[Decider]) -> str:
    """The thresholds as one more section of the page."""
    lines = ["Thresholds:"]
    for one in thresholds:
        lines += [
            f"    {one.name} = {one.value:.6g} {one.unit} ({one.where})",
            f"        {one.why} Source: {one.source}.",
        ]
    return "\n".join(lines if len(lines) > 1 else [*lines, "    none: the rule reads what others measured"])


def page_of(rule: Rule) -> str:
    """The docstring of a rule's module."""
    return inspect.getdoc(inspect.getmodule(rule.check)) or ""


def sections(page: str) -> dict[str, str]:
    """Heading to text, each text as one line."""
    found: dict[str, str] = {}
    heading = ""
    for line in page.splitlines()[1:]:
        if line and not line.startswith(" ") and line.endswith(":"):
            heading = line[:-1]
            found[heading] = ""
        elif heading and line.strip():
            found[heading] = f"{found[heading]} {line.strip()}".strip()
    return found
