"""`stepline schema`: the JSON Schema of what `--json` writes."""

import argparse
import json
import sys

from stepline.report.jsonout import SCHEMAS, schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which record."""
    parser.add_argument("record", nargs="?", default="diagnosis", choices=SCHEMAS, help="default: diagnosis")


def run(args: argparse.Namespace) -> int:
    """Print the schema."""
    sys.stdout.write(json.dumps(schema(args.record), indent=2) + "\n")
    return 0
