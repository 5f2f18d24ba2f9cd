"""Records a running server into a folder that stays readable whenever the recording stops."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from stepline.errors import Inconclusive, Interrupted, UsageError
from stepline.plan.experiment import Experiment
from stepline.plan.policy import fitted
from stepline.sources.address import parse, shown
from stepline.sources.client_file import CLIENT_FILE, METRICS_FILE
from stepline.sources.http import Http
from stepline.sources.live.session import Session
from stepline.sources.live.traffic import Traffic, watch
from stepline.sources.load.level import Address
from stepline.sources.surface import Found
from stepline.tasks.drive import drive
from stepline.tasks.live import LiveRequest, check_live, limits_of
from stepline.tasks.progress import SILENT, Progress
from stepline.tasks.setup import check

WATCH_S = 2.0
"""Long enough for two scrapes a second apart to show tokens being made."""
MAX_WATCH_S = 60.0


class Recorded(NamedTuple):
    """What a recording was made of."""

    found: Found
    log: Path | None
    done: tuple[Experiment, ...]
    """Empty where the server was only watched."""


@contextlib.contextmanager
def kept(folder: Path) -> Iterator[None]:
    """Ctrl-C says where the recording lies, if anything had been measured by then.

    Raises:
        Interrupted: in place of the bare KeyboardInterrupt.
    """
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt as stop:
        if any((folder / name).is_file() for name in (CLIENT_FILE, METRICS_FILE)):
            raise Interrupted(folder) from stop
        raise


def record(url: str, folder: Path, request: LiveRequest, progress: Progress = SILENT) -> Recorded:
    """Find the server, look whether others use it, then drive it or watch it within the budget.

    Raises:
        SteplineError: nobody answers, the request cannot be right, or the folder cannot be written.
        Interrupted: Ctrl-C after something was measured.
    """
    check(request.setup, progress)
    check_live(request)
    address = parse(url, request.headers)
    try:
        with kept(folder):
            session = Session(address, folder, log=request.log, dcgm=exporter(request, progress))
            return _record(session, request, progress)
    except OSError as error:
        raise UsageError(f"{folder}: the recording cannot be written ({error.strerror})") from error


def exporter(request: LiveRequest, progress: Progress) -> Address | None:
    """The DCGM exporter that the user named; one without GPU counters is said, and left out.

    Raises:
        Unreachable: nobody answers there.
    """
    if request.dcgm is None:
        return None
    named = parse(request.dcgm.rstrip("/").removesuffix("/metrics"))
    address = msgspec.structs.replace(
        named, headers=()
    )  # the server's key is none of the exporter's business
    if b"DCGM_FI_" in Http(address).get("/metrics").body:
        return address
    progress.tell(f"{shown(address)}: /metrics there holds no DCGM counters; going on without")
    return None


def _record(opened: Session, request: LiveRequest, progress: Progress) -> Recorded:
    done: tuple[Experiment, ...] = ()
    with opened as session:
        _introduce(session, progress)
        limits = limits_of(request, session.found, profile=session.can_profile)
        if request.input_tokens != (fits := fitted(limits, request.input_tokens)):
            progress.tell(
                f"prompts are shortened to {fits} tokens: the server takes {limits.context_tokens} with the answer"
            )
        traffic = watch(session, WATCH_S)
        if traffic.others is not None:
            session.write_record(others=traffic.others)
        if _may_load(traffic, request, progress):
            if traffic.others is not None and not request.profile:
                limits = msgspec.structs.replace(limits, profile=False)
            if request.flush:
                progress.tell(
                    "prefix cache emptied"
                    if session.flush()
                    else "the server refused to empty its prefix cache"
                )
            done = drive(session, limits, request, progress)
        else:
            if not session.found.metrics and session.log is None:
                raise Inconclusive(
                    "without load there is nothing to watch here: no /metrics and no log; give --log"
                )
            span = min(MAX_WATCH_S, limits.budget_s)
            progress.tell(f"watching for {span:.0f} s, without load")
            watch(session, span)
    return Recorded(session.found, session.log, done)


def _introduce(session: Session, progress: Progress) -> None:
    record = session.record
    engine = f"{record.engine or 'an OpenAI-compatible server'} {record.engine_version or ''}".strip()
    where = f" on {record.gpus[0]}" if record.gpus else ""
    progress.tell(f"{record.url}: {engine} serving {record.model or 'an unnamed model'}{where}")
    if session.log is not None:
        progress.tell(f"log: {session.log}")
    for lack in record.lacks:
        progress.tell(f"not to be had: {lack}")


def _may_load(traffic: Traffic, request: LiveRequest, progress: Progress) -> bool:
    if request.load is not None:
        return bool(request.load)
    if traffic.others is not None:
        progress.tell(f"{traffic.others}; only watching (--load drives it all the same)")
        return False
    if not traffic.known:
        progress.tell(
            "nothing here tells whether others use this server; not loading it (--load drives it all the same)"
        )
        return False
    return True
