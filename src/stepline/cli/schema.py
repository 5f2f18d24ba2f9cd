"""`stepline schema`: the JSON Schema of a diagnosis."""

import argparse
import json
import sys

from stepline.report.jsonout import schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options."""
    del parser


def run(args: argparse.Namespace) -> int:
    """Print the schema."""
    del args
    sys.stdout.write(json.dumps(schema(), indent=2) + "\n")
    return 0
