"""`stepline diagnose URL --restart CMD`: the diagnosis, then the verdict on one flag changed in turns."""

import argparse
import sys
from pathlib import Path

from stepline.cli.live_arguments import live_request
from stepline.cli.output import FAIL_ON, INCONCLUSIVE, deliver
from stepline.cli.progress import Progress
from stepline.errors import UsageError
from stepline.findings.comparison import Comparison
from stepline.findings.diagnosis import Diagnosis
from stepline.report.comparison_terminal import draw
from stepline.tasks.live import seconds
from stepline.tasks.setup import SetupRequest
from stepline.tasks.trial import TrialRequest, diagnose_and_try


def run(url: str, args: argparse.Namespace, setup: SetupRequest, progress: Progress) -> int:
    """Report the diagnosis before the first restart and the verdict at the end.

    Returns:
        The exit code of the diagnosis, or 3 where no arm could be compared.
    """
    if args.save is None:
        raise UsageError("--restart wants --save DIR: every arm is a recording to keep")
    request = TrialRequest(
        restart=args.restart,
        folder=Path(args.save),
        tried=args.tried,
        was=args.was,
        restart_wait_s=seconds(args.restart_wait, "--restart-wait"),
        live=live_request(args, setup),
    )
    codes: list[int] = []

    def on_diagnosis(found: Diagnosis) -> None:
        codes.append(deliver(found, args))

    def on_comparison(result: Comparison) -> None:
        """To stdout, or to stderr where that carries the diagnosis as JSON."""
        if not args.quiet:
            draw(result, sys.stderr if args.json == "-" else sys.stdout)

    tried = diagnose_and_try(url, request, progress, on_diagnosis=on_diagnosis, on_comparison=on_comparison)
    (code,) = codes
    if tried.why_not is not None:
        progress.tell(f"no comparison: {tried.why_not}")
        return code if code == FAIL_ON else INCONCLUSIVE
    return code
