"""`stepline lab run simulated`: captures of simulated engines; and the list of faults that can be planted."""

import argparse
import json
import os
import sys

from stepline.errors import UsageError
from stepline.lab.sim.captures.cases import cases
from stepline.lab.sim.faults import FAULTS
from stepline.lab.sim.start import ENGINES

NAME = "simulated"
"""Stands where a matrix file would."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lab run` that only the simulated matrix takes."""
    group = parser.add_argument_group("the simulated matrix; --only takes faults or cases")
    group.add_argument("--seed", type=int, default=0, help="systems, loads and noise are drawn from it (0)")
    group.add_argument("--repeats", type=int, default=1, help="cases of each fault and strength (1)")
    group.add_argument("--engine", choices=tuple(ENGINES), help="only this engine")
    group.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time (one a core)")


def run(args: argparse.Namespace) -> int:
    """Write the captures; 0 when all are there.

    Raises:
        UsageError: `--only` names no fault and no case.
    """
    from stepline.lab.sim.captures.runner import write_captures  # noqa: PLC0415  # the HTTP parser, only to simulate

    engines = (args.engine,) if args.engine else tuple(ENGINES)
    drawn = list(cases(args.seed, engines=engines, repeats=args.repeats))
    wanted = [case for case in drawn if not args.only or {case.fault, case.name} & set(args.only)]
    if not wanted:
        raise UsageError(f"no fault or case is called {args.only[0]}; `stepline lab faults` lists the faults")
    args.output.mkdir(parents=True, exist_ok=True)
    for folder in write_captures(wanted, args.output, args.jobs):
        print(folder)
    return 0


def list_faults(*, as_json: bool) -> int:
    """Print what can be planted."""
    rows = [
        {
            "name": fault.name,
            "expected": fault.expected or None,
            "strengths": fault.strengths,
            "load": fault.load,
            "what": fault.what,
        }
        for fault in FAULTS
    ]
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return 0
    for row in rows:
        sys.stdout.write(f"{row['name']:20} {row['expected'] or 'nothing':8} {row['what']}\n")
    return 0
