"""The sentence where nothing was found: typical, or above it by so much, or nobody can say."""

from stepline import units
from stepline.model.picture.picture import Picture
from stepline.model.signs.accounting import speculates

TRACED = "a trace would tell (`stepline diagnose URL --profile`, or a profiler trace of decode steps in the folder)"


def without_finding(picture: Picture) -> str:
    """What can be said of the step itself."""
    step, traced = picture.step, picture.traced
    if step is None:
        if traced is None:
            return "too little was recorded for a verdict: no decode step could be measured"
        group = traced.group
        at = "" if group.batch is None else f" at {group.batch} running"
        largest = max(group.components, key=lambda part: part.busy_ms)
        return (
            f"the GPU works {units.ms(group.busy_ms)} in a traced decode step{at}, most in {largest.component} "
            f"({units.ms(largest.busy_ms)}); the step itself was not measured without the profiler"
        )
    most = "at most " if step.upper_bound else ""
    took = f"a decode step takes {most}{units.ms(step.measured_ms)} at {units.batch(step.running)} running"
    if picture.gap is None:
        return f"no cause found; {took}, and without a floor nobody can say whether that is slow"
    took = f"{took}, {units.times(picture.gap)} its floor"
    usual = None if picture.floors is None else picture.floors.typical
    if usual is None:
        return f"no cause found; {took}; what such a server typically takes is not known for this GPU"
    if speculates(picture):
        return f"no cause found; {took}; what a step that verifies drafts typically takes is not known"
    if step.measured_ms <= usual.high_ms:
        share = units.percent(step.measured_ms / usual.ms)
        return f"no cause found; {took}: decode is at {share} of what such a server typically takes"
    above = units.ms(step.measured_ms - usual.ms)
    if step.upper_bound:
        return f"{took}, prefill or waiting inside; up to {above} above what is typical, not attributed: {TRACED}"
    if traced is not None:
        return f"{took}, {above} above what is typical; no part of the traced step is: another batch, or its gaps"
    return f"{took}, {above} above what is typical, not attributed: {TRACED}"


def below_floor(picture: Picture) -> str | None:
    """A warning where the measured step is shorter than any step of this model, layout and GPU can be; else None."""
    step, floors = picture.step, picture.floors
    if step is None or floors is None or step.measured_ms >= floors.strict.total_ms:
        return None
    return (
        f"the step measures {units.ms(step.measured_ms)}, below the strict floor of "
        f"{units.ms(floors.strict.total_ms)}: model, GPU, number of GPUs, batch or context is not what it is taken for"
    )
