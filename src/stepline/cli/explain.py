"""`stepline explain CODE`: the rule's own page, from its docstring."""

import argparse
import inspect
import json
import sys

from stepline.findings.registry import RULES, find_rule


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `explain`."""
    parser.add_argument("code", nargs="?", help="a rule's code or name; without one, the rules are listed")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    """Print one page, or the list of rules."""
    if args.code is None:
        rows = [{"code": rule.code, "name": rule.codename, "since": rule.since} for rule in RULES]
        text = "\n".join(f"{row['code']}  {row['name']}" for row in rows)
        sys.stdout.write((json.dumps(rows, indent=2) if args.json else text) + "\n")
        return 0
    rule = find_rule(args.code)
    page = inspect.getdoc(inspect.getmodule(rule.check)) or ""
    if args.json:
        sections = _sections(page)
        document = {"code": rule.code, "name": rule.codename, "since": rule.since, "sections": sections}
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(page + "\n")
    return 0


def _sections(page: str) -> dict[str, str]:
    sections: dict[str, str] = {}
    heading = ""
    for line in page.splitlines()[1:]:
        if line and not line.startswith(" ") and line.endswith(":"):
            heading = line[:-1]
            sections[heading] = ""
        elif heading and line.strip():
            sections[heading] = f"{sections[heading]} {line.strip()}".strip()
    return sections
