"""What several runs say beside each other, in words: a table of runs, experiments, and what could not be compared."""

import math
from collections.abc import Iterable

from stepline import units
from stepline.facts.arguments import kind_of
from stepline.findings.diagnosis import Diagnosis, KnobValue, RunDiagnosis
from stepline.findings.together import RunsCompared

HEADS = ("run", "load", "tok/s", "step", "verdict")
MOST = 40
"""Rows of a table; more are counted in a line."""
MOST_EXPERIMENTS = 12
LONGEST = 110


def rows(diagnosis: Diagnosis) -> list[tuple[str, str, str, str, str]]:
    """A row for each run: what tells it from the others, its load, rate, step and verdict."""
    return [_row(run) for run in diagnosis.runs[:MOST]]


def _row(run: RunDiagnosis) -> tuple[str, str, str, str, str]:
    load, step = run.load, run.step
    offered = "–"
    if load is not None and load.concurrency is not None:
        offered = f"C = {load.concurrency:g}, {units.batch(load.running)} running"
    elif load is not None:
        offered = f"{units.batch(load.running)} running"
    rate = "–" if load is None or load.tok_s is None else units.count(load.tok_s)
    taken = "–" if step is None else units.ms(step.measured_ms)
    return run.id, offered, rate, taken, _said(run)


def _said(run: RunDiagnosis) -> str:
    """The verdict in a table: the first finding by its name; its sentence stands in the run's own report."""
    if run.findings:
        top = run.findings[0]
        more = f" and {len(run.findings) - 1} more" if len(run.findings) > 1 else ""
        return f"{top.code} {top.name}, {top.status}{more}"
    if run.step is not None:
        return "no cause found"
    return "too little was recorded" if run.load is not None else "no load was recorded"


def chosen(diagnosis: Diagnosis) -> str:
    """Which run the report speaks of, and why."""
    return (
        f"{len(diagnosis.runs)} runs; what follows is of {diagnosis.chosen_run}: {diagnosis.chosen_because}"
    )


def differing(diagnosis: Diagnosis) -> list[str]:
    """The settings that are not the same in all runs, each with its values."""
    told: dict[str, dict[str, str]] = {}
    for run in diagnosis.runs:
        named = [KnobValue(name, str(size), "") for name, size in run.target.layout.items()]
        for knob in (*named, *run.target.knobs):
            told.setdefault(knob.name, {})[run.id] = knob.value
    lines = []
    for name, values in told.items():
        known = sorted(set(values.values()))
        if len(known) > 1 and kind_of(name) == "setting" and len(", ".join(known)) <= LONGEST:
            lines.append(f"{name}: {', '.join(known)}")
    return lines


def foremost(diagnosis: Diagnosis) -> str | None:
    """The largest effect of one setting: what the runs together say first."""
    strongest = _strongest(diagnosis)
    return f"Between runs: {strongest[0].sentence}" if strongest else None


def _strongest(diagnosis: Diagnosis) -> list[RunsCompared]:
    """Experiments whose effect is sure first, the largest of them before the others."""
    return sorted(
        diagnosis.comparisons,
        key=lambda one: (one.effect.verdict in ("same", "inconclusive"), -abs(math.log(one.effect.speedup))),
    )


def experiments(diagnosis: Diagnosis) -> Iterable[str]:
    """A line for each pair of arms that differ in one setting, with what it answers; the largest effect first."""
    strongest = _strongest(diagnosis)
    for one in strongest[:MOST_EXPERIMENTS]:
        arms = f"{_named(one.before)} against {_named(one.after)}"
        yield f"{one.sentence} [{arms}]"
        for cause in one.answers:
            yield f"{cause.says}: {cause.code} {cause.name}, by {cause.by}"
    if len(strongest) > MOST_EXPERIMENTS:
        yield f"and {len(strongest) - MOST_EXPERIMENTS} more, in the JSON"
    yield from dict.fromkeys(one.covers for one in strongest[:MOST_EXPERIMENTS])


def repeats(diagnosis: Diagnosis) -> Iterable[str]:
    """Runs that differ in nothing that the evidence shows."""
    for one in diagnosis.repeats:
        yield f"repeats: {', '.join(one.runs)}"


def apart(diagnosis: Diagnosis) -> Iterable[str]:
    """Pairs of which no difference can be put down to one setting, with what differs."""
    for one in diagnosis.not_comparable:
        differs = f" ({'; '.join(one.differs)})" if one.differs else ""
        yield _short(f"{one.runs[0]} and {one.runs[1]}: {one.reason}{differs}", 400)


def ungrouped(diagnosis: Diagnosis) -> Iterable[str]:
    """Files that joined no run, and why."""
    for one in diagnosis.provenance.ungrouped:
        yield f"{one.path}: {one.reason}"


def _named(ids: tuple[str, ...]) -> str:
    return ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} repeats"


def _short(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
