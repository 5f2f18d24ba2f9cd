"""How to prove a finding by changing one flag, with commands to copy."""

import shlex
from pathlib import Path

from stepline.plan.change import Change
from stepline.sources.surface import Found
from stepline.tasks.live import LiveRequest
from stepline.tasks.record import Recorded

UNCHANGED = LiveRequest()


def by_hand(
    url: str, request: LiveRequest, recorded: Recorded, change: Change | None, save: Path | None
) -> list[str]:
    """The commands; none where the server's name for the flag is not known, or nothing was driven."""
    flags = None if change is None else flags_of(change, recorded.found)
    driven = dict.fromkeys(step.concurrency for step in recorded.done if step.kind == "level")
    if change is None or flags is None or not driven:
        return []
    lengths = [
        f"--{name.replace('_', '-')} {getattr(request, name)}"
        for name in ("input_tokens", "output_tokens", "shared_prefix_tokens", "temperature")
        if getattr(request, name) != getattr(UNCHANGED, name)
    ]
    load = " ".join([f"--concurrency {','.join(map(str, driven))}", *lengths, "--no-profile"])
    record = f"stepline record {shlex.quote(url)} -o"
    return [
        f"to prove {change.code}, restart the server with {flags} and compare:",
        *([] if save else [f"  {record} before {load}   (before the restart)"]),
        f"  {record} after {load}   (after it)",
        f"  stepline compare {shlex.quote(str(save or 'before'))} after",
        "or let stepline do it in turns and put the server back: --save DIR --restart 'START COMMAND {flags}'",
    ]


def flags_of(change: Change, found: Found) -> str | None:
    """The change on this server's command line; None where its name for it is not known."""
    flag = found.flags.get(change.setting)
    return None if flag is None else f"{flag} {change.value}"
