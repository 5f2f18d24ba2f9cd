"""The planner's loop on a live server: ask what to measure, measure it, look at what is known by then."""

import os
import time

import msgspec

from stepline.errors import UnreadableEvidence
from stepline.findings.diagnose import diagnose
from stepline.findings.diagnosis import RunDiagnosis
from stepline.model.measure.client_health import more_processes
from stepline.model.picture.picture import Picture
from stepline.plan.experiment import Experiment, Limits, Stop
from stepline.plan.policy import next_experiment, outline
from stepline.sources.live.session import Session
from stepline.sources.load.level import LevelPlan, LevelResult
from stepline.tasks.live import LiveRequest
from stepline.tasks.picture import picture_of
from stepline.tasks.progress import Progress

WARM_UP = LevelPlan(concurrency=2, input_tokens=64, output_tokens=8, seconds=1.5)
"""Compiles and allocates what first requests do."""
WARM_UP_S = 30.0
"""Longest wait for a first answer, a third of the budget at most: first kernels may have to be compiled."""
OVERTIME_S = 15.0
"""Beyond the budget, for a trace that is being written."""


def drive(
    session: Session, limits: Limits, request: LiveRequest, progress: Progress
) -> tuple[Experiment, ...]:
    """One experiment after the other until the plan has enough or the budget is spent; those that were run."""
    planned = outline(limits)
    most = max(experiment.concurrency for experiment in planned)
    profile = "; a profile may freeze it for 2 to 44 s" if limits.profile else ""
    progress.tell(f"about to load it with up to {most} streams, at most {limits.budget_s:.0f} s{profile}")
    deadline = time.monotonic() + limits.budget_s
    warm_up(session, min(WARM_UP_S, limits.budget_s / 3), progress)
    done: tuple[Experiment, ...] = ()
    picture: Picture | None = None
    found: RunDiagnosis | None = None
    while True:
        step = next_experiment(picture, found, done, limits)
        if isinstance(step, Stop):
            progress.tell(f"stopping: {step.reason}")
            return done
        if time.monotonic() + step.seconds > deadline:
            progress.tell(
                f"stopping: the budget is used; next would have been {step.kind} at C = {step.concurrency}"
            )
            return done
        others = session.wait_idle()
        if others and not request.load:
            session.write_record(others=f"{others} requests of others came while it was driven")
            progress.tell(f"stopping: {others} requests of others run on this server by now")
            return done
        progress.tell(f"{step.kind} at C = {step.concurrency}, {step.seconds:.0f} s: {step.decides}")
        if step.kind == "profile":
            step_ms = picture.step.measured_ms if picture and picture.step else 10.0
            longest_s = deadline - time.monotonic() + OVERTIME_S
            plan = plan_of(step, len(done), request)
            if not session.profile(plan, steps=step.steps, step_ms=step_ms, longest_s=longest_s):
                progress.tell("the server wrote no trace that can be read here")
        else:
            result = session.level(plan_of(step, len(done), request), step.decides)
            progress.tell(said(result))
            more = more_processes(result.health, _cores(), os.getloadavg()[0])
            if more is not None and time.monotonic() + step.seconds <= deadline:
                progress.tell(f"  the client filled a core: once more with {more} processes")
                session.processes = more
                session.wait_idle()
                result = session.level(plan_of(step, len(done), request), step.decides)
                progress.tell(said(result))
            if not (result.level.failed or result.level.requests or result.level.decoding):
                progress.tell("  not a token came: waiting for one, as the server may be compiling")
                wait_s = (deadline - time.monotonic()) / 2
                warm_up(session, wait_s, progress, input_tokens=step.input_tokens)
            if result.level.failed and not result.level.requests:
                progress.tell(f"stopping: nothing came back ({result.failures.first or 'no reason given'})")
                return done
        done = (*done, step)
        try:
            picture = picture_of(session.folder, request.setup, progress)
        except UnreadableEvidence:
            continue  # nothing readable yet, such as a first level in which everything failed
        found = diagnose(picture)


def _cores() -> int:
    """Those that this process may run on; macOS has no other answer than all."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def warm_up(
    session: Session, longest_s: float, progress: Progress, *, input_tokens: int = WARM_UP.input_tokens
) -> None:
    """Small requests until one is answered, or the time is over."""
    until = time.monotonic() + longest_s
    while time.monotonic() < until:
        result = session.warm_up(msgspec.structs.replace(WARM_UP, input_tokens=input_tokens))
        if result.level.requests or result.level.failed:
            return
    progress.tell("no answer while warming up; measuring all the same")


def plan_of(step: Experiment, number: int, request: LiveRequest) -> LevelPlan:
    """The load of an experiment; `number` is its place in the recording."""
    return LevelPlan(
        concurrency=step.concurrency,
        input_tokens=step.input_tokens,
        output_tokens=step.output_tokens,
        together_tokens=step.together_tokens,
        seconds=step.seconds,
        seed=0 if request.shared_prefix_tokens else number,  # so that every level opens its prompts alike
        shared_prefix_tokens=request.shared_prefix_tokens,
        temperature=request.temperature,
        sampling=request.sampling,
    )


def said(result: LevelResult) -> str:
    """A level in a line."""
    level = result.level
    rate = "no steady rate" if level.tok_s is None else f"{level.tok_s:,.0f} tok/s"
    decoding = "" if level.decoding is None else f", {level.decoding:.1f} streams decoding"
    failed = f", {level.failed} failed ({result.failures.first})" if level.failed else ""
    return f"  {rate}{decoding}, {level.requests or 0} requests{failed}"
