"""`stepline plan URL`: what a diagnosis would run on a server, and what each run would decide, without running it."""

import argparse
import json
import sys

import msgspec

from stepline.cli.live_arguments import add_live_arguments, live_request
from stepline.errors import UsageError
from stepline.sources.address import is_url
from stepline.tasks.plan import plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `plan`."""
    parser.add_argument("url", metavar="URL", help="the server, for example http://localhost:30000")
    add_live_arguments(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    """Ask the server what it is, and print the outline; nothing is loaded."""
    if not is_url(args.url):
        raise UsageError(f"{args.url}: give the URL of a server, for example http://localhost:30000")
    experiments, budget_s = plan(args.url, live_request(args))
    if args.json:
        rows = [msgspec.to_builtins(experiment) for experiment in experiments]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return 0
    total = 0.0
    for experiment in experiments:
        total += experiment.seconds
        load = f"C = {experiment.concurrency}, {experiment.input_tokens} + {experiment.output_tokens} tokens"
        when = "" if experiment.sure else "if still open: "
        sys.stdout.write(
            f"{experiment.kind:9}{load:29}{experiment.seconds:3.0f} s  {when}{experiment.decides}\n"
        )
    within = f"{min(total, budget_s):.0f} s of server time before repeats"
    sys.stdout.write(f"at most {within}; the steps seen will change it\n")
    if total > budget_s:
        sys.stdout.write(f"the budget of {budget_s:.0f} s does not hold all of it: the last are left out\n")
    return 0
