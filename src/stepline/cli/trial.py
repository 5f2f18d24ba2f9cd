"""`diagnose URL --restart CMD`: the diagnosis, then one flag changed and measured in turns, A B B A."""

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from stepline.cli.by_hand import Recorded, flags_of
from stepline.cli.live import exporter, plan_of, record_server, said, say_kept, warm_up
from stepline.cli.live_arguments import seconds
from stepline.cli.output import FAIL_ON, INCONCLUSIVE, deliver
from stepline.cli.progress import Progress
from stepline.cli.setup_arguments import setup_request
from stepline.errors import Inconclusive, SteplineError, UsageError
from stepline.findings.compare import compare
from stepline.findings.diagnose import diagnose
from stepline.findings.diagnosis import Diagnosis
from stepline.findings.knobs import changed_knobs
from stepline.model.picture.picture import Picture
from stepline.plan.change import arm_levels, change_for
from stepline.plan.experiment import Experiment
from stepline.report.comparison_terminal import draw
from stepline.sources.address import parse
from stepline.sources.client_file import CLIENT_FILE
from stepline.sources.http import Http
from stepline.sources.live.log_copy import LogMark
from stepline.sources.live.restart import SLOT, ServerCommand, ends_as_interrupt
from stepline.sources.live.session import Session, claim, wait_idle
from stepline.tasks.picture import picture_of
from stepline.tasks.setup import SetupRequest

BEFORE, AFTER = ("1-before", "4-before"), ("2-after", "3-after")
DIAGNOSIS_SHARE = 0.5
"""Of the budget: the other half is for the three arms that are measured beside it."""
WARM_UP_S = 30.0


Tell = Callable[..., None]


class Trial(NamedTuple):
    """The flags as they are and to try, the load to measure them under, and the recording of the server as it is."""

    was: str
    tried: str
    levels: tuple[Experiment, ...]
    recorded: Recorded


def diagnose_and_try(url: str, args: argparse.Namespace) -> int:
    """Diagnose, report, then restart and compare; the server is left as it was found, whatever happens.

    Every arm is a recording of its own in a folder of `--save`.

    Returns:
        The exit code of the diagnosis, or 3 where no arm could be compared.
    """
    _check(args)
    root = Path(args.save)
    claim(root)
    tell = Progress(quiet=args.quiet).tell
    with ends_as_interrupt():
        budget_s = seconds(args.budget)
        part = argparse.Namespace(**vars(args) | {"budget": f"{DIAGNOSIS_SHARE * budget_s:g}"})
        began = time.monotonic()
        try:
            recorded = record_server(url, root / BEFORE[0], part)
        except KeyboardInterrupt:
            say_kept(root / BEFORE[0])
            raise
        left_s = budget_s - (time.monotonic() - began)
        picture = picture_of([str(root / BEFORE[0])], setup_request(args), Progress(quiet=args.quiet))
        found = diagnose(picture)
        code = deliver(found, args)
        tried: str | None = args.tried
        if tried is None and (change := change_for(picture, found)) is not None:
            tried = flags_of(change, recorded.found)
        levels = arm_levels(recorded.done, left_s)
        why_not = _why_not(found, tried, recorded, levels)
        if why_not is None and tried is not None:
            server = ServerCommand(
                parse(url, args.header),
                args.restart,
                recorded.log or root.with_name(f"{root.name}.server.log"),
                longest_s=seconds(args.restart_wait, "--restart-wait"),
                tell=tell,
            )
            try:
                was = server.present(tried) if args.was is None else args.was
                _restart_in_turns(server, Trial(was, tried, levels, recorded), args, tell)
                _judge(root, args, tell)
            except SteplineError as error:
                why_not = str(error)
            finally:
                _say_commands(root, args, tell)
        if why_not is not None:
            tell(f"no comparison: {why_not}")
            return code if code == FAIL_ON else INCONCLUSIVE
    return code


def _check(args: argparse.Namespace) -> None:
    if SLOT not in args.restart:
        raise UsageError(
            f"--restart: put {SLOT} where the changed flag goes, for example './serve.sh {SLOT}'"
        )
    if args.save is None:
        raise UsageError("--restart wants --save DIR: every arm is a recording to keep")
    if args.tried is not None and args.tried == args.was:
        raise UsageError(f"--try {args.tried!r} is what --was says: nothing would change")
    seconds(args.restart_wait, "--restart-wait")


def _why_not(
    found: Diagnosis, tried: str | None, recorded: Recorded, levels: tuple[Experiment, ...]
) -> str | None:
    if not recorded.done:
        return "the server was only watched, so nothing was measured that could be measured again"
    if found.findings and found.findings[0].code == "L101":
        return "the client could not keep up, so a change of the server would not show; the server was left alone"
    if tried is None:
        return "no finding asks for a flag that stepline knows; name one with --try '--FLAG VALUE'"
    if not levels:
        return "what is left of --budget holds no three further levels; give it more"
    return None


def _restart_in_turns(server: ServerCommand, trial: Trial, args: argparse.Namespace, tell: Tell) -> None:
    """B, B and A again. The server ends with its present flags, also after Ctrl-C and failures."""
    root, was = Path(args.save), trial.was
    driven = ", ".join(f"C = {step.concurrency}" for step in trial.levels)
    tell(
        f"about to restart the server three times, with the same load after each ({driven})",
        f"  now stops: {server.stops()}",
        f"  B, twice:  {server.line(trial.tried)}",
        f"  A, at the end (by hand, should stepline be killed):  {server.line(was)}",
    )
    address, log = parse(args.targets[0], args.header), trial.recorded.log
    others = wait_idle(trial.recorded.found, Http(address))
    if others and not args.load:
        raise Inconclusive(f"{others} requests of others run on this server by now")
    try:
        for name, flags in ((AFTER[0], trial.tried), (AFTER[1], trial.tried), (BEFORE[1], was)):
            since = None if log is None else LogMark.of(log)
            server.restart(flags)
            arm = Session(
                address,
                root / name,
                log=Path(args.log) if args.log else None,
                since=since,
                restarted_with=flags,
                dcgm=exporter(args, tell),
            )
            log = arm.log
            _measure(arm, trial.levels, args, tell)
    except BaseException:
        if server.touched:
            tell("putting the server back as it was")
            server.put_back(was)
        raise


def _measure(arm: Session, levels: tuple[Experiment, ...], args: argparse.Namespace, tell: Tell) -> None:
    with arm as session:
        warm_up(session, WARM_UP_S, tell)
        for number, step in enumerate(levels):
            session.wait_idle()
            tell(f"{arm.folder.name}: level at C = {step.concurrency}, {step.seconds:.0f} s")
            tell(said(session.level(plan_of(step, number, args), step.decides)))


def _judge(root: Path, args: argparse.Namespace, tell: Tell) -> None:
    """The verdict to stdout, or to stderr where that carries the diagnosis as JSON."""
    before, after = (_pictures(root, names, args) for names in (BEFORE, AFTER))
    for knob in changed_knobs(*(diagnose(picture).target for picture in before)):
        if knob.before is not None and knob.after is not None:
            tell(
                f"the server is NOT as it was found: {knob.name} was {knob.before} and is {knob.after}; "
                "start it again by hand, and say with --was what its flags were"
            )
    result = compare(before, after)
    if not args.quiet:
        draw(result, sys.stderr if args.json == "-" else sys.stdout)


def _pictures(root: Path, names: tuple[str, str], args: argparse.Namespace) -> list[Picture]:
    return [picture_of([str(root / name)], setup_request(args), Progress(quiet=args.quiet)) for name in names]


def _say_commands(root: Path, args: argparse.Namespace, tell: Tell) -> None:
    """The arms that there are, and how to compare them again."""
    before, after = (
        [shlex.quote(str(root / name)) for name in names if (root / name / CLIENT_FILE).is_file()]
        for names in (BEFORE, AFTER)
    )
    if after:
        setup = " ".join(
            f"--{name.replace('_', '-')} {shlex.quote(str(value))}"
            for name in SetupRequest.__struct_fields__
            if (value := getattr(args, name)) is not None
        )
        again = f"stepline compare --before {' '.join(before)} --after {' '.join(after)} {setup}".rstrip()
        tell(f"every arm is kept; again, or as --json: {again}")
