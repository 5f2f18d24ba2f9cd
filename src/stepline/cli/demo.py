"""`stepline demo`: the main job, live on a simulated server with a planted fault, or on a recorded real one."""

import argparse

from stepline.cli.output import add_output_arguments, deliver
from stepline.cli.progress import Progress
from stepline.tasks.demo import GPU, LIVE, PLANTED, RECORDED, live, recorded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `demo`."""
    parser.add_argument(
        "case",
        nargs="?",
        default=LIVE,
        choices=(LIVE, *RECORDED),
        help="a simulated server with a fault drawn at random, diagnosed live (default), or a recording of a real one",
    )
    parser.add_argument("--seed", type=int, help="draws the fault; without it any may come")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Diagnose as `stepline diagnose` would, and say afterwards what was planted."""
    show = not args.quiet and args.json != "-"
    if args.case != LIVE:
        if show:
            print(
                f"Recorded from a real server: {RECORDED[args.case]}.\n"
                f"$ stepline diagnose {args.case} --gpu {GPU}\n"
            )
        return deliver(recorded(args.case, Progress(quiet=args.quiet)), args)

    def on_start(url: str) -> None:
        if show:
            print(
                f"A simulated SGLang with a fault drawn at random.\n$ stepline diagnose {url} --gpu {GPU}\n",
                flush=True,
            )

    planted, diagnosis = live(args.seed, Progress(quiet=not show), on_start)
    code = deliver(diagnosis, args)
    if show:
        print(f"\nPlanted was {planted}: {PLANTED[planted]}.")
    return code
