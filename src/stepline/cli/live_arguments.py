"""Options of every command that talks to a running server."""

import argparse
from pathlib import Path

from stepline.tasks.live import RESTART_WAIT_S, LiveRequest, levels, seconds
from stepline.tasks.setup import UNTOLD, SetupRequest

USUAL = LiveRequest()


def add_live_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be done to the server, and for how long."""
    live = parser.add_argument_group("a live server")
    live.add_argument(
        "--budget", default=f"{USUAL.budget_s / 60:g}m", help="server time to spend, for example 90s or 3m"
    )
    live.add_argument(
        "--concurrency", metavar="N,N,..", help="levels to drive, instead of the planner's choice"
    )
    live.add_argument(
        "--input-tokens", type=int, default=USUAL.input_tokens, help="prompt length of the load"
    )
    live.add_argument(
        "--output-tokens", type=int, default=USUAL.output_tokens, help="answer length of the load"
    )
    live.add_argument(
        "--shared-prefix-tokens",
        type=int,
        default=USUAL.shared_prefix_tokens,
        metavar="N",
        help="opening that all prompts share, for a prefix cache to find (default 0: every prompt is unique)",
    )
    live.add_argument(
        "--temperature",
        type=float,
        default=USUAL.temperature,
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
    live.add_argument(
        "--dcgm", metavar="URL", help="a DCGM exporter beside a remote server, for its GPUs: http://HOST:9400"
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


def add_restart_arguments(parser: argparse.ArgumentParser) -> None:
    """An A/B/B/A on the server itself: what starts it, and with which flags."""
    trial = parser.add_argument_group("one flag changed, measured in turns (A B B A, ends as it began)")
    trial.add_argument(
        "--restart",
        metavar="CMD",
        help="starts the server, with {flags} where flags go, for example './serve.sh {flags}'; what listens on its "
        "port here is stopped first; wants --save",
    )
    trial.add_argument(
        "--try",
        dest="tried",
        metavar="FLAGS",
        help="the changed {flags} (default: what the first finding asks for)",
    )
    trial.add_argument(
        "--was",
        metavar="FLAGS",
        help="the present {flags} (default: what the running server's command line gives the changed ones)",
    )
    trial.add_argument(
        "--restart-wait",
        metavar="TIME",
        default=f"{RESTART_WAIT_S / 60:g}m",
        help="longest time for one start (default %(default)s)",
    )


def live_request(args: argparse.Namespace, setup: SetupRequest = UNTOLD) -> LiveRequest:
    """What the command line allows.

    Raises:
        UsageError: a time or the levels cannot be right.
    """
    return LiveRequest(
        budget_s=seconds(args.budget),
        concurrency=levels(args.concurrency),
        input_tokens=args.input_tokens,
        output_tokens=args.output_tokens,
        shared_prefix_tokens=args.shared_prefix_tokens,
        temperature=args.temperature,
        headers=tuple(args.header),
        dcgm=args.dcgm,
        log=Path(args.log) if args.log else None,
        load=args.load,
        profile=args.profile,
        flush=args.flush,
        setup=setup,
    )
