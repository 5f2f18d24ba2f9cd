"""L105 trace-integrity.

What it means:
    The trace cannot carry conclusions about decode: it holds no decode step, was recorded with gaps, is damaged or cut
    short, or contradicts the unprofiled step.

Why it costs:
    No rate, but whoever trusts such a trace hunts idle time and kernels that are not there.

Evidence needed:
    A trace. To see a contradiction: also the unprofiled step at its batch.

How it decides:
    Confirmed when nothing about decode follows: no GPU work, no step, none that decodes, over 10 % of the graph
    replays without some of their kernels, or more GPU work in a step than the unprofiled step lasts. Suspected when
    part of the file could not be read; what is whole was used. A trace that only stretches the wall (every one with
    Python stacks does, up to 2.2 times on the H200 captures) is sound: GPU work is taken from it, the wall never is.
    Steps of which nothing says what they are leave it open.

What would prove it wrong:
    A second trace of the same load with the same gaps.

What to try:
    Six to ten steps, no Python stacks, and wait until the file is written before it is copied.

References:
    docs/identifiability.md; AMD-AGI/Hyperloom issue 1121; AMD-AGI/TraceLens issues 728 and 972
"""

from stepline import units
from stepline.findings.outcome import (
    CannotTell,
    Clear,
    Fired,
    Observation,
    Outcome,
    Proof,
    Rival,
    Rule,
    RuledOut,
    Status,
    Try,
)
from stepline.model.picture.picture import Picture
from stepline.model.signs.trace_integrity import NO_GPU_WORK, trace_integrity


def check(picture: Picture) -> Outcome:
    """Decide whether the trace can be trusted."""
    found = trace_integrity(picture)
    if found is None:
        return Clear("no trace was given: nothing rests on one")
    if found.broken == (NO_GPU_WORK,) and picture.target.gpu is None:
        return CannotTell(
            "whether there is a GPU at all: the trace holds no GPU work, and nothing names one",
            "give --gpu, and record with GPU activities",
        )
    if found.broken:
        return _fired("confirmed", f"the trace proves nothing about decode: {found.broken[0]}", found.broken)
    if found.partial:
        return _fired("suspected", "part of the trace could not be read", found.partial)
    if found.unnamed_steps:
        return CannotTell(
            f"whether the {found.unnamed_steps} steps of the trace decode: no annotation and no kernel says so",
            "take the trace through the engine, which marks its steps (/start_profile)",
        )
    if found.stretched is not None:
        times = units.times(found.stretched)
        return Clear(
            f"the trace is whole; its steps last {times} the unprofiled one, so only GPU work is taken from it"
        )
    return Clear("the trace is whole; its wall is the profiler's, so only GPU work is taken from it")


def _fired(status: Status, headline: str, reasons: tuple[str, ...]) -> Fired:
    broken = status == "confirmed"
    return Fired(
        status=status,
        headline=headline,
        evidence=tuple(Observation(reason) for reason in dict.fromkeys(reasons)),
        ruled_out=(RuledOut("H301 host-bound", "no idle time is concluded from this trace"),)
        if broken
        else (),
        rivals=()
        if broken
        else (
            Rival("a whole trace of less work", "the number of steps in a second trace of the same length"),
        ),
        tries=(
            Try("record the trace again: six to ten steps, no Python stacks", "seconds of stalled service"),
        ),
        proof=Proof("stepline trace on a new capture", 10.0),
    )


RULE = Rule("L105", "trace-integrity", "0.1.0", check)
