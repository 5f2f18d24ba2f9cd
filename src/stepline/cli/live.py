"""Drives a running server: asks the plan what to measure, measures it, and looks at what is known by then."""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from stepline.cli.by_hand import Recorded, by_hand
from stepline.cli.live_arguments import levels, seconds
from stepline.cli.progress import Progress
from stepline.cli.setup_arguments import setup_request
from stepline.errors import Inconclusive, UnreadableEvidence, UsageError
from stepline.findings.diagnose import diagnose
from stepline.findings.diagnosis import Diagnosis
from stepline.model.measure.client_health import more_processes
from stepline.model.picture.picture import Picture
from stepline.plan.change import change_for
from stepline.plan.experiment import Experiment, Limits, Stop
from stepline.plan.policy import MIN_CONTEXT, fitted, next_experiment, outline
from stepline.sources.address import parse, shown
from stepline.sources.client_file import CLIENT_FILE, METRICS_FILE
from stepline.sources.http import Http
from stepline.sources.live.session import Session
from stepline.sources.live.traffic import Traffic, watch
from stepline.sources.load.level import Address, LevelPlan, LevelResult
from stepline.sources.surface import Found
from stepline.tasks.picture import picture_of

WATCH_S = 2.0
"""Long enough for two scrapes a second apart to show tokens being made."""
MAX_WATCH_S = 60.0
WARM_UP = LevelPlan(concurrency=2, input_tokens=64, output_tokens=8, seconds=1.5)
"""Compiles and allocates what first requests do."""
WARM_UP_S = 30.0
"""Longest wait for a first answer, a third of the budget at most: first kernels may have to be compiled."""


MAX_TEMPERATURE = 2.0
"""Both engines refuse more, as the OpenAI API does."""
OVERTIME_S = 15.0
"""Beyond the budget, for a trace that is being written."""


Tell = Callable[..., None]


class Diagnosed(NamedTuple):
    """A live server's diagnosis, and how to prove its first finding by hand."""

    diagnosis: Diagnosis
    next_steps: list[str]


def diagnose_server(url: str, args: argparse.Namespace) -> Diagnosed:
    """Record a server and diagnose the recording; what was measured survives Ctrl-C, with or without `--save`."""
    scratch = None if args.save else Path(tempfile.mkdtemp(prefix="stepline-"))
    folder = scratch or Path(args.save)
    try:
        recorded = record_server(url, folder, args)
        picture = picture_of([str(folder)], setup_request(args), Progress(quiet=args.quiet))
        found = diagnose(picture)
        return Diagnosed(found, by_hand(url, args, recorded, change_for(picture, found)))
    except KeyboardInterrupt:
        if say_kept(folder):
            scratch = None
        raise
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def say_kept(folder: Path) -> bool:
    """Tell where an interrupted recording lies; False where nothing had been measured yet."""
    measured = any((folder / name).is_file() for name in (CLIENT_FILE, METRICS_FILE))
    if measured:
        print(f"what was recorded is kept; next: stepline diagnose {folder}", file=sys.stderr)
    return measured


def record_server(url: str, folder: Path, args: argparse.Namespace) -> Recorded:
    """Find the server, look whether others use it, then drive it or watch it within the budget.

    Raises:
        SteplineError: nobody answers, the command line cannot be right, or the folder cannot be written.
    """
    tell = Progress(quiet=args.quiet).tell
    seconds(args.budget)
    levels(args.concurrency)
    address = parse(url, args.header)
    log = Path(args.log) if args.log else None
    try:
        return _record(Session(address, folder, log=log, dcgm=exporter(args, tell)), args, tell)
    except OSError as error:
        raise UsageError(f"{folder}: the recording cannot be written ({error.strerror})") from error


def exporter(args: argparse.Namespace, tell: Tell) -> Address | None:
    """The DCGM exporter that the user named; one without GPU counters is said, and left out.

    Raises:
        Unreachable: nobody answers there.
    """
    if args.dcgm is None:
        return None
    named = parse(args.dcgm.rstrip("/").removesuffix("/metrics"))
    address = msgspec.structs.replace(
        named, headers=()
    )  # the server's key is none of the exporter's business
    if b"DCGM_FI_" in Http(address).get("/metrics").body:
        return address
    tell(f"{shown(address)}: /metrics there holds no DCGM counters; going on without")
    return None


def _record(opened: Session, args: argparse.Namespace, tell: Tell) -> Recorded:
    done: tuple[Experiment, ...] = ()
    with opened as session:
        _introduce(session, tell)
        limits = limits_of(args, session.found, profile=session.can_profile)
        if args.input_tokens != (fits := fitted(limits, args.input_tokens)):
            tell(
                f"prompts are shortened to {fits} tokens: the server takes {limits.context_tokens} with the answer"
            )
        traffic = watch(session, WATCH_S)
        if traffic.others is not None:
            session.write_record(others=traffic.others)
        if _may_load(traffic, args, tell):
            if traffic.others is not None and not args.profile:
                limits = msgspec.structs.replace(limits, profile=False)
            if args.flush:
                tell(
                    "prefix cache emptied"
                    if session.flush()
                    else "the server refused to empty its prefix cache"
                )
            done = _drive(session, limits, args, tell)
        else:
            if not session.found.metrics and session.log is None:
                raise Inconclusive(
                    "without load there is nothing to watch here: no /metrics and no log; give --log"
                )
            span = min(MAX_WATCH_S, limits.budget_s)
            tell(f"watching for {span:.0f} s, without load")
            watch(session, span)
    return Recorded(session.found, session.log, done)


def _introduce(session: Session, tell: Tell) -> None:
    record = session.record
    engine = f"{record.engine or 'an OpenAI-compatible server'} {record.engine_version or ''}".strip()
    where = f" on {record.gpus[0]}" if record.gpus else ""
    tell(f"{record.url}: {engine} serving {record.model or 'an unnamed model'}{where}")
    if session.log is not None:
        tell(f"log: {session.log}")
    for lack in record.lacks:
        tell(f"not to be had: {lack}")


def limits_of(args: argparse.Namespace, found: Found, *, profile: bool) -> Limits:
    """What the user allows and this server can do.

    Raises:
        UsageError: when an option cannot be right.
    """
    if not 0 <= args.temperature <= MAX_TEMPERATURE:
        raise UsageError(f"--temperature {args.temperature:g}: give a number from 0 to {MAX_TEMPERATURE:g}")
    if not 0 <= args.shared_prefix_tokens < args.input_tokens:
        raise UsageError(
            f"--shared-prefix-tokens {args.shared_prefix_tokens}: give fewer than the prompt's {args.input_tokens}"
        )
    for name in ("input_tokens", "output_tokens"):
        if getattr(args, name) < 1:
            raise UsageError(f"--{name.replace('_', '-')} {getattr(args, name)}: give a number above zero")
    most = found.max_context_tokens
    if most is not None and args.output_tokens > (longest := most - MIN_CONTEXT):
        raise UsageError(
            f"--output-tokens {args.output_tokens}: the server takes {most} tokens with the prompt; "
            f"give {longest} at most"
            if longest > 0
            else f"the server takes {most} tokens with the prompt, too few for a load"
        )
    return Limits(
        budget_s=seconds(args.budget),
        concurrency=levels(args.concurrency),
        input_tokens=args.input_tokens,
        output_tokens=args.output_tokens,
        context_tokens=found.max_context_tokens,
        profile=profile and args.profile is not False,
    )


def _may_load(traffic: Traffic, args: argparse.Namespace, tell: Tell) -> bool:
    if args.load is not None:
        return bool(args.load)
    if traffic.others is not None:
        tell(f"{traffic.others}; only watching (--load drives it all the same)")
        return False
    if not traffic.known:
        tell(
            "nothing here tells whether others use this server; not loading it (--load drives it all the same)"
        )
        return False
    return True


def _drive(session: Session, limits: Limits, args: argparse.Namespace, tell: Tell) -> tuple[Experiment, ...]:
    """One experiment after the other until the plan has enough or the budget is spent; those that were run."""
    planned = outline(limits)
    most = max(experiment.concurrency for experiment in planned)
    profile = "; a profile may freeze it for 2 to 44 s" if limits.profile else ""
    tell(f"about to load it with up to {most} streams, at most {limits.budget_s:.0f} s{profile}")
    deadline = time.monotonic() + limits.budget_s
    warm_up(session, min(WARM_UP_S, limits.budget_s / 3), tell)
    done: tuple[Experiment, ...] = ()
    picture: Picture | None = None
    found: Diagnosis | None = None
    while True:
        step = next_experiment(picture, found, done, limits)
        if isinstance(step, Stop):
            tell(f"stopping: {step.reason}")
            return done
        if time.monotonic() + step.seconds > deadline:
            tell(f"stopping: the budget is used; next would have been {step.kind} at C = {step.concurrency}")
            return done
        others = session.wait_idle()
        if others and not args.load:
            session.write_record(others=f"{others} requests of others came while it was driven")
            tell(f"stopping: {others} requests of others run on this server by now")
            return done
        tell(f"{step.kind} at C = {step.concurrency}, {step.seconds:.0f} s: {step.decides}")
        if step.kind == "profile":
            step_ms = picture.step.measured_ms if picture and picture.step else 10.0
            longest_s = deadline - time.monotonic() + OVERTIME_S
            plan = plan_of(step, len(done), args)
            if not session.profile(plan, steps=step.steps, step_ms=step_ms, longest_s=longest_s):
                tell("the server wrote no trace that can be read here")
        else:
            result = session.level(plan_of(step, len(done), args), step.decides)
            tell(said(result))
            more = more_processes(result.health, _cores(), os.getloadavg()[0])
            if more is not None and time.monotonic() + step.seconds <= deadline:
                tell(f"  the client filled a core: once more with {more} processes")
                session.processes = more
                session.wait_idle()
                result = session.level(plan_of(step, len(done), args), step.decides)
                tell(said(result))
            if not (result.level.failed or result.level.requests or result.level.decoding):
                tell("  not a token came: waiting for one, as the server may be compiling")
                wait_s = (deadline - time.monotonic()) / 2
                warm_up(session, wait_s, tell, input_tokens=step.input_tokens)
            if result.level.failed and not result.level.requests:
                tell(f"stopping: nothing came back ({result.failures.first or 'no reason given'})")
                return done
        done = (*done, step)
        try:
            picture = picture_of([str(session.folder)], setup_request(args), Progress(quiet=args.quiet))
        except UnreadableEvidence:
            continue  # nothing readable yet, such as a first level in which everything failed
        found = diagnose(picture)


def _cores() -> int:
    """Those that this process may run on; macOS has no other answer than all."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def warm_up(
    session: Session, longest_s: float, tell: Tell, *, input_tokens: int = WARM_UP.input_tokens
) -> None:
    """Small requests until one is answered, or the time is over."""
    until = time.monotonic() + longest_s
    while time.monotonic() < until:
        result = session.warm_up(msgspec.structs.replace(WARM_UP, input_tokens=input_tokens))
        if result.level.requests or result.level.failed:
            return
    tell("no answer while warming up; measuring all the same")


def plan_of(step: Experiment, number: int, args: argparse.Namespace) -> LevelPlan:
    """The load of an experiment; `number` is its place in the recording."""
    return LevelPlan(
        concurrency=step.concurrency,
        input_tokens=step.input_tokens,
        output_tokens=step.output_tokens,
        together_tokens=step.together_tokens,
        seconds=step.seconds,
        seed=0 if args.shared_prefix_tokens else number,  # so that every level opens its prompts alike
        shared_prefix_tokens=args.shared_prefix_tokens,
        temperature=args.temperature,
    )


def said(result: LevelResult) -> str:
    """A level in a line."""
    level = result.level
    rate = "no steady rate" if level.tok_s is None else f"{level.tok_s:,.0f} tok/s"
    decoding = "" if level.decoding is None else f", {level.decoding:.1f} streams decoding"
    failed = f", {level.failed} failed ({result.failures.first})" if level.failed else ""
    return f"  {rate}{decoding}, {level.requests or 0} requests{failed}"
