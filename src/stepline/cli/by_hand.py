"""How to prove a finding by changing one flag, with commands to copy."""

import argparse
import shlex
from pathlib import Path
from typing import NamedTuple

from stepline.cli.live_arguments import defaults
from stepline.plan.change import Change
from stepline.plan.experiment import Experiment
from stepline.sources.surface import Found


class Recorded(NamedTuple):
    """What a recording was made of."""

    found: Found
    log: Path | None
    done: tuple[Experiment, ...]
    """Empty where the server was only watched."""


def by_hand(url: str, args: argparse.Namespace, recorded: Recorded, change: Change | None) -> list[str]:
    """The commands; none where the server's name for the flag is not known, or nothing was driven."""
    flags = None if change is None else flags_of(change, recorded.found)
    driven = dict.fromkeys(step.concurrency for step in recorded.done if step.kind == "level")
    if change is None or flags is None or not driven:
        return []
    lengths = [
        f"--{name.replace('_', '-')} {getattr(args, name)}"
        for name in ("input_tokens", "output_tokens", "shared_prefix_tokens", "temperature")
        if getattr(args, name) != getattr(defaults(), name)
    ]
    load = " ".join([f"--concurrency {','.join(map(str, driven))}", *lengths, "--no-profile"])
    record = f"stepline record {shlex.quote(url)} -o"
    return [
        f"to prove {change.code}, restart the server with {flags} and compare:",
        *([] if args.save else [f"  {record} before {load}   (before the restart)"]),
        f"  {record} after {load}   (after it)",
        f"  stepline compare {shlex.quote(args.save or 'before')} after",
        "or let stepline do it in turns and put the server back: --save DIR --restart 'START COMMAND {flags}'",
    ]


def flags_of(change: Change, found: Found) -> str | None:
    """The change on this server's command line; None where its name for it is not known."""
    flag = found.flags.get(change.setting)
    return None if flag is None else f"{flag} {change.value}"
