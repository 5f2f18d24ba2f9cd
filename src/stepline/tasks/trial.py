"""One flag changed and measured in turns, A B B A: diagnose, restart with the change, compare, put the server back."""

import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from stepline.errors import Inconclusive, SteplineError, UsageError
from stepline.findings.compare import compare
from stepline.findings.comparison import Comparison
from stepline.findings.diagnose import diagnose
from stepline.findings.diagnosis import Diagnosis, RunDiagnosis
from stepline.findings.knobs import changed_knobs
from stepline.findings.registry import find_rule
from stepline.findings.several import diagnosis_of
from stepline.model.picture.picture import Picture
from stepline.plan.change import arm_levels, change_for
from stepline.plan.experiment import Experiment
from stepline.sources.address import parse
from stepline.sources.client_file import CLIENT_FILE
from stepline.sources.http import Http
from stepline.sources.live.log_copy import LogMark
from stepline.sources.live.restart import SLOT, ServerCommand, ends_as_interrupt
from stepline.sources.live.session import Session, claim, wait_idle
from stepline.tasks.by_hand import flags_of
from stepline.tasks.drive import plan_of, said, warm_up
from stepline.tasks.live import RESTART_WAIT_S, LiveRequest
from stepline.tasks.picture import picture_of
from stepline.tasks.progress import SILENT, Progress
from stepline.tasks.record import Recorded, exporter, record
from stepline.tasks.setup import SetupRequest

BEFORE, AFTER = ("1-before", "4-before"), ("2-after", "3-after")
DIAGNOSIS_SHARE = 0.5
"""Of the budget: the other half is for the three arms that are measured beside it."""
WARM_UP_S = 30.0


Tell = Callable[..., None]


class TrialRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What starts the server, and which flags are to be compared."""

    restart: str
    """Starts the server, with `{flags}` where flags go; what listens on its port is stopped first."""
    folder: Path
    """Every arm is a recording of its own in it."""
    tried: str | None = None
    """The changed flags; None takes what the first finding asks for."""
    was: str | None = None
    """The present flags; None takes what the running server's command line gives the changed ones."""
    restart_wait_s: float = RESTART_WAIT_S
    """Longest time for one start."""
    live: LiveRequest = LiveRequest()
    """How every arm is driven; its budget holds all of them."""


class Tried(NamedTuple):
    """What came of it."""

    diagnosis: Diagnosis
    comparison: Comparison | None
    why_not: str | None
    """The reason where nothing was compared."""


class _Trial(NamedTuple):
    """The flags as they are and to try, the load to measure them under, and the recording of the server as it is."""

    was: str
    tried: str
    levels: tuple[Experiment, ...]
    recorded: Recorded


def _nothing(_result: Diagnosis | Comparison) -> None:
    """For a caller that waits for the whole."""


def diagnose_and_try(
    url: str,
    request: TrialRequest,
    progress: Progress = SILENT,
    *,
    on_diagnosis: Callable[[Diagnosis], None] = _nothing,
    on_comparison: Callable[[Comparison], None] = _nothing,
) -> Tried:
    """Diagnose, then restart and compare; the server is left as it was found, whatever happens.

    `on_diagnosis` is told before anything is restarted, `on_comparison` before the last word of the progress.

    Raises:
        SteplineError: the request cannot be right, or the first recording failed.
        Interrupted: Ctrl-C after something was measured.
    """
    _check(request)
    root, live = request.folder, request.live
    claim(root)
    with ends_as_interrupt():
        began = time.monotonic()
        part = msgspec.structs.replace(live, budget_s=DIAGNOSIS_SHARE * live.budget_s)
        recorded = record(url, root / BEFORE[0], part, progress)
        left_s = live.budget_s - (time.monotonic() - began)
        picture = picture_of(root / BEFORE[0], live.setup, progress)
        found = diagnose(picture)
        told = diagnosis_of(picture, found)
        on_diagnosis(told)
        tried = request.tried
        if tried is None and (change := change_for(picture, found)) is not None:
            tried = flags_of(change, recorded.found)
        levels = arm_levels(recorded.done, left_s)
        why_not, result = _why_not(found, tried, recorded, levels), None
        if why_not is None and tried is not None:
            server = ServerCommand(
                parse(url, live.headers),
                request.restart,
                recorded.log or root.with_name(f"{root.name}.server.log"),
                longest_s=request.restart_wait_s,
                tell=progress.tell,
            )
            try:
                was = server.present(tried) if request.was is None else request.was
                _restart_in_turns(url, server, _Trial(was, tried, levels, recorded), request, progress)
                result = _compared(request, progress)
                on_comparison(result)
            except SteplineError as error:
                why_not = str(error)
            finally:
                _say_commands(request, progress)
        return Tried(told, result, why_not)


def _check(request: TrialRequest) -> None:
    if SLOT not in request.restart:
        raise UsageError(
            f"--restart: put {SLOT} where the changed flag goes, for example './serve.sh {SLOT}'"
        )
    if request.tried is not None and request.tried == request.was:
        raise UsageError(f"--try {request.tried!r} is what --was says: nothing would change")


def _why_not(
    found: RunDiagnosis, tried: str | None, recorded: Recorded, levels: tuple[Experiment, ...]
) -> str | None:
    if not recorded.done:
        return "the server was only watched, so nothing was measured that could be measured again"
    if found.findings and find_rule(found.findings[0].code).hides_changes:
        return "the client could not keep up, so a change of the server would not show; the server was left alone"
    if tried is None:
        return "no finding asks for a flag that stepline knows; name one with --try '--FLAG VALUE'"
    if not levels:
        return "what is left of --budget holds no three further levels; give it more"
    return None


def _restart_in_turns(
    url: str, server: ServerCommand, trial: _Trial, request: TrialRequest, progress: Progress
) -> None:
    """B, B and A again. The server ends with its present flags, also after Ctrl-C and failures."""
    live, was = request.live, trial.was
    driven = ", ".join(f"C = {step.concurrency}" for step in trial.levels)
    progress.tell(
        f"about to restart the server three times, with the same load after each ({driven})",
        f"  now stops: {server.stops()}",
        f"  B, twice:  {server.line(trial.tried)}",
        f"  A, at the end (by hand, should stepline be killed):  {server.line(was)}",
    )
    address, log = parse(url, live.headers), trial.recorded.log
    others = wait_idle(trial.recorded.found, Http(address))
    if others and not live.load:
        raise Inconclusive(f"{others} requests of others run on this server by now")
    try:
        for name, flags in ((AFTER[0], trial.tried), (AFTER[1], trial.tried), (BEFORE[1], was)):
            since = None if log is None else LogMark.of(log)
            server.restart(flags)
            arm = Session(
                address,
                request.folder / name,
                log=live.log,
                since=since,
                restarted_with=flags,
                dcgm=exporter(live, progress),
            )
            log = arm.log
            _measure(arm, trial.levels, live, progress)
    except BaseException:
        if server.touched:
            progress.tell("putting the server back as it was")
            server.put_back(was)
        raise


def _measure(arm: Session, levels: tuple[Experiment, ...], live: LiveRequest, progress: Progress) -> None:
    with arm as session:
        warm_up(session, WARM_UP_S, progress)
        for number, step in enumerate(levels):
            session.wait_idle()
            progress.tell(f"{arm.folder.name}: level at C = {step.concurrency}, {step.seconds:.0f} s")
            progress.tell(said(session.level(plan_of(step, number, live), step.decides)))


def _compared(request: TrialRequest, progress: Progress) -> Comparison:
    """The verdict; a setting that differs between the two recordings of A is told."""
    before, after = (_pictures(request, names, progress) for names in (BEFORE, AFTER))
    for knob in changed_knobs(*(diagnose(picture).target for picture in before)):
        if knob.before is not None and knob.after is not None:
            progress.tell(
                f"the server is NOT as it was found: {knob.name} was {knob.before} and is {knob.after}; "
                "start it again by hand, and say with --was what its flags were"
            )
    return compare(before, after)


def _pictures(request: TrialRequest, names: tuple[str, str], progress: Progress) -> list[Picture]:
    return [picture_of(request.folder / name, request.live.setup, progress) for name in names]


def _say_commands(request: TrialRequest, progress: Progress) -> None:
    """The arms that there are, and how to compare them again."""
    before, after = (
        [
            shlex.quote(str(request.folder / name))
            for name in names
            if (request.folder / name / CLIENT_FILE).is_file()
        ]
        for names in (BEFORE, AFTER)
    )
    if after:
        setup = " ".join(
            f"--{name.replace('_', '-')} {shlex.quote(str(value))}"
            for name in SetupRequest.__struct_fields__
            if (value := getattr(request.live.setup, name)) is not None
        )
        again = f"stepline compare --before {' '.join(before)} --after {' '.join(after)} {setup}".rstrip()
        progress.tell(f"every arm is kept; again, or as --json: {again}")
