"""Options of every command that talks to a running server."""

import argparse
import re

from stepline.errors import UsageError

DEFAULT_BUDGET = "3m"
_TIME = re.compile(r"(\d+(?:\.\d+)?)(s|m|min|h)?")
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def add_live_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be done to the server, and for how long."""
    live = parser.add_argument_group("a live server")
    live.add_argument("--budget", default=DEFAULT_BUDGET, help="server time to spend, for example 90s or 3m")
    live.add_argument(
        "--concurrency", metavar="N,N,..", help="levels to drive, instead of the planner's choice"
    )
    live.add_argument("--input-tokens", type=int, default=512, help="prompt length of the load")
    live.add_argument("--output-tokens", type=int, default=192, help="answer length of the load")
    live.add_argument(
        "--shared-prefix-tokens",
        type=int,
        default=0,
        metavar="N",
        help="opening that all prompts share, for a prefix cache to find (default 0: every prompt is unique)",
    )
    live.add_argument(
        "--temperature",
        type=float,
        default=0.0,
        metavar="T",
        help="of the sampling (default 0); what speculation gets accepted depends on it",
    )
    live.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="sent with every request and never stored; STEPLINE_API_KEY holds a bearer token",
    )
    live.add_argument("--log", metavar="FILE", help="the server's log, where it is not found by itself")
    live.add_argument(
        "--load",
        action=argparse.BooleanOptionalAction,
        help="drive load (default: only where nobody else uses the server)",
    )
    live.add_argument(
        "--profile",
        action=argparse.BooleanOptionalAction,
        help="take a short trace when it decides something (default: only where nobody else uses the server)",
    )
    live.add_argument("--flush", action="store_true", help="empty the server's prefix cache before the load")


def defaults(**changes: object) -> argparse.Namespace:
    """These options and those of the setup as if nothing had been typed, with changes."""
    parser = argparse.ArgumentParser()
    add_live_arguments(parser)
    untold = dict.fromkeys(("model", "gpu", "tp", "ep", "dp", "pp", "context_length"))
    return argparse.Namespace(**vars(parser.parse_args([])) | untold | changes)


def seconds(text: str) -> float:
    """`90`, `90s`, `3m` or `0.5h` in seconds.

    Raises:
        UsageError: for anything else, or no time at all.
    """
    found = _TIME.fullmatch(text.strip())
    if found is None or float(found[1]) <= 0:
        raise UsageError(f"--budget {text}: give a time such as 90s or 3m")
    return float(found[1]) * _SECONDS[found[2]]


def levels(text: str | None) -> tuple[int, ...]:
    """`1,8,32` as numbers of streams.

    Raises:
        UsageError: for anything that is no list of numbers above zero.
    """
    if text is None:
        return ()
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 0 < int(word) <= 4096 for word in words):
        raise UsageError(f"--concurrency {text}: give numbers of streams from 1 to 4096, for example 1,8,32")
    return tuple(int(word) for word in words)
