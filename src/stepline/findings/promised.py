"""What BEFORE's diagnosis promised for the cause that was removed, beside what AFTER measured, and what binds next."""

import math
import statistics
from collections.abc import Mapping, Sequence

from stepline.findings.comparison import BindsNext, ComponentChange, PredictedView
from stepline.findings.diagnosis import Finding
from stepline.findings.registry import find_rule
from stepline.findings.sides import Side
from stepline.findings.together import Span
from stepline.model.change.pairs import Pair


def predictions(
    before: Side, after: Side, pulled: Mapping[str, str], pairs: Sequence[Pair]
) -> tuple[PredictedView, ...]:
    """For each finding of BEFORE whose lever was pulled or that is gone after: its promise and the measurement.

    Args:
        before: the side with the findings.
        after: the side after the change.
        pulled: rule code to the setting that changed and acts on it.
        pairs: what both sides measured.
    """
    remaining = {finding.code for finding in after.diagnosis.findings}
    found: list[PredictedView] = []
    for finding in before.diagnosis.findings:
        setting = pulled.get(finding.code)
        if setting is None and finding.code in remaining:
            continue
        others = set(pulled.values()) - {setting}
        also = f", and {', '.join(sorted(others))}" if others else ""
        because = f"{setting} changed{also}" if setting else f"{finding.code} is found no more"
        found += _rate(finding, because, before, pairs)
        found += _foretold(finding, because, before, after)
    return tuple(found)


def binds_next(before: Side, after: Side, promised: Sequence[PredictedView]) -> BindsNext:
    """The limit that the first promise named, and AFTER's first finding."""
    codes = [promise.code for promise in promised]
    gains = [f.gain for f in before.diagnosis.findings if f.code in codes and f.gain is not None]
    top = next(iter(after.diagnosis.findings), None)
    return BindsNext(
        predicted=gains[0].binds_next if gains else None,
        measured=after.diagnosis.verdict if top is None else f"{top.code} {top.name}: {top.headline}",
    )


def _rate(finding: Finding, because: str, before: Side, pairs: Sequence[Pair]) -> list[PredictedView]:
    """The promised rate, on the terms it was promised: of the closed loop, or of decode steps alone."""
    gain, load, step = finding.gain, before.chief.load, before.chief.step
    if gain is None:
        return []
    closed = before.chief.loop is not None and load is not None and load.concurrency is not None
    if closed and load is not None:
        measure = f"tok/s of the closed loop at C = {load.concurrency:g}"
        there = [pair for pair in pairs if pair.measure == "rate" and pair.level == load.concurrency]
        measured = _after(there[-1]) if there else None
    elif step is not None:
        measure = f"tok/s of decode steps alone at {step.running:g} running"
        there = [pair for pair in pairs if pair.measure != "rate" and pair.level == step.running]
        measured = 1000 * step.running * _after(there[0]) if there else None
    else:
        return []
    return [
        PredictedView(
            code=finding.code,
            name=finding.name,
            because=because,
            measure=measure,
            unit="tok/s",
            predicted=gain.tok_s,
            interval=Span(gain.low, gain.high),
            measured=measured,
            inside=None if measured is None else gain.low <= measured <= gain.high,
        )
    ]


def _after(pair: Pair) -> float:
    """Mean speed after: a rate, or tokens a millisecond of one sequence."""
    return math.exp(statistics.fmean(run.log_speed for run in pair.after))


def _foretold(finding: Finding, because: str, before: Side, after: Side) -> list[PredictedView]:
    """What the rule itself foretells beside the rate."""
    foretell = find_rule(finding.code).foretell
    told = None if foretell is None else foretell(before.chief, after.chief)
    if told is None:
        return []
    return [
        PredictedView(
            code=finding.code,
            name=finding.name,
            because=because,
            measure=told.measure,
            unit=told.unit,
            predicted=told.predicted,
            interval=None,
            measured=told.measured,
            inside=None,
        )
    ]


def component_changes(before: Side, after: Side) -> tuple[tuple[ComponentChange, ...], str | None]:
    """GPU time a step by component on both sides, largest change first, then the host's part of the wall.

    None of it, and why, unless both have a trace of decode steps at one batch.
    """
    ours, theirs = before.chief.traced, after.chief.traced
    if ours is None or theirs is None:
        missing = [name for name, traced in (("before", ours), ("after", theirs)) if traced is None]
        return (), f"no trace of decode steps {' and '.join(missing)}"
    if ours.group.batch != theirs.group.batch:
        return (), f"the traces show {ours.group.batch} running before and {theirs.group.batch} after"
    times = [{part.component: part.busy_ms for part in side.group.components} for side in (ours, theirs)]
    changes = [_change(name, times[0].get(name), times[1].get(name)) for name in {**times[0], **times[1]}]
    changes.sort(key=lambda one: (-abs(one.change_ms), one.component))
    if ours.wall_ms is not None and theirs.wall_ms is not None:
        gaps = (ours.wall_ms - ours.group.busy_ms, theirs.wall_ms - theirs.group.busy_ms)
        changes.append(_change("host gap", *gaps))
    return tuple(changes), None


def _change(component: str, before_ms: float | None, after_ms: float | None) -> ComponentChange:
    return ComponentChange(
        component=component,
        before_ms=before_ms,
        after_ms=after_ms,
        change_ms=(after_ms or 0.0) - (before_ms or 0.0),
    )
