"""`stepline lab campaign`: blind cases on real engines of this machine, each answered before its truth is measured."""

import argparse
import sys
from pathlib import Path

import msgspec

from stepline.cli.progress import Progress
from stepline.errors import UsageError
from stepline.lab.blind.draw import Plan, draw_case
from stepline.lab.blind.plans import plan_from, plan_of
from stepline.lab.real.matrix import read_matrix
from stepline.tasks.campaign_request import CampaignRequest

DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(CampaignRequest)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lab campaign`."""
    parser.add_argument(
        "action", choices=("draw", "run", "verify"), help="show the cases, run them, check the seals"
    )
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="of the campaign; an interrupted one goes on"
    )
    parser.add_argument(
        "--engine", default="sglang", metavar="NAME|FILE", help="a shipped matrix or a matrix file"
    )
    parser.add_argument("--seed", type=int, default=0, help="every case follows from it and its number (0)")
    parser.add_argument("--cases", type=int, default=DEFAULTS["cases"], help="how many (default %(default)s)")
    parser.add_argument(
        "--number", type=int, action="append", default=[], help="this case of the seed (repeatable)"
    )
    parser.add_argument(
        "--wave", type=int, default=DEFAULTS["wave"], help="servers that start together (%(default)s)"
    )
    parser.add_argument(
        "--ready", type=float, default=DEFAULTS["ready_s"], metavar="SECONDS", help="to start in"
    )
    parser.add_argument(
        "--level", type=float, default=DEFAULTS["level_s"], metavar="S", help="length of a truth"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    """Draw, run or verify; 0 when it is done and the seals hold, 1 where they do not."""
    from stepline.tasks.campaign import run_campaign, verify_campaign  # noqa: PLC0415  # a client, only to load servers

    if args.action == "verify":
        doubts = verify_campaign(args.folder)
        for doubt in doubts:
            print(doubt)
        return 1 if doubts else 0
    if args.cases < 1:
        raise UsageError(f"--cases {args.cases}: give a number above zero")
    plan = _plan(args.engine)
    if args.action == "draw":
        for number in args.number or range(args.cases):
            case = draw_case(plan, args.seed, number)
            sys.stdout.write(f"{case.name}  {case}\n")
        return 0
    request = CampaignRequest(
        folder=args.folder,
        plan=plan,
        seed=args.seed,
        cases=args.cases,
        only=tuple(args.number),
        wave=args.wave,
        ready_s=args.ready,
        level_s=args.level,
    )
    run_campaign(request, Progress(quiet=args.quiet))
    return 0


def _plan(engine: str) -> Plan:
    path = Path(engine)
    return plan_from(read_matrix(path), models=1) if path.suffix == ".toml" else plan_of(engine)
