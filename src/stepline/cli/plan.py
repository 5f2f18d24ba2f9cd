"""`stepline plan URL`: what a diagnosis would run on a server, and what each run would decide, without running it."""

import argparse
import json
import sys

import msgspec

from stepline.cli.live import limits_of
from stepline.cli.live_arguments import add_live_arguments
from stepline.errors import UsageError
from stepline.plan.policy import outline
from stepline.sources.address import is_local, is_url, parse
from stepline.sources.live.session import look_at


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `plan`."""
    parser.add_argument("url", metavar="URL", help="the server, for example http://localhost:30000")
    add_live_arguments(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    """Ask the server what it is, and print the outline; nothing is loaded."""
    if not is_url(args.url):
        raise UsageError(f"{args.url}: give the URL of a server, for example http://localhost:30000")
    address = parse(args.url, args.header)
    found = look_at(address)
    limits = limits_of(args, found, profile=found.profile is not None and is_local(address))
    experiments = outline(limits)
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
    within = f"{min(total, limits.budget_s):.0f} s of server time before repeats"
    sys.stdout.write(f"at most {within}; the steps seen will change it\n")
    if total > limits.budget_s:
        sys.stdout.write(
            f"the budget of {limits.budget_s:.0f} s does not hold all of it: the last are left out\n"
        )
    return 0
