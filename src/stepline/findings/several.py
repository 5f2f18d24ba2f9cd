"""Runs side by side: each diagnosed by itself, the one that matters chosen, and what two of them say together."""

from collections.abc import Sequence

import msgspec

from stepline import units
from stepline.errors import SteplineError, UsageError
from stepline.evidence.evidence import Evidence
from stepline.facts.settings.move import joint, move_of
from stepline.findings import diagnosis as view
from stepline.findings import together
from stepline.findings.comparable import check_comparable
from stepline.findings.compare import compare_sides
from stepline.findings.comparison import ComparedLine, Comparison
from stepline.findings.diagnose import diagnose
from stepline.findings.log_rates import COVERS, log_rates, unlike_contexts
from stepline.findings.registry import RULES
from stepline.findings.settings_apart import Difference, differences
from stepline.findings.sides import Side, started
from stepline.model.measure.levers import T as LEVERS
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.version import __version__

TWICE = 2.0
NOT_RECORDED = Difference(setting="something that was not recorded", names=(), before=None, after=None)
"""Runs whose evidence shows no difference, and whose speeds differ."""
MOST_PAIRS = 400
"""Pairs of configurations that are compared: those of 28 configurations."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A run with its picture and its own diagnosis."""

    picture: Picture
    diagnosis: view.RunDiagnosis

    @property
    def id(self) -> str:
        """The run's."""
        return self.diagnosis.id


class _Arm(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that differ in nothing and share a load."""

    runs: tuple[Told, ...]

    @property
    def side(self) -> Side:
        """As comparisons take it."""
        chief = next((run for run in self.runs if run.picture.traced is not None), self.runs[0])
        return Side(
            pictures=tuple(run.picture for run in self.runs), chief=chief.picture, diagnosis=chief.diagnosis
        )

    @property
    def ids(self) -> tuple[str, ...]:
        """Of its runs."""
        return tuple(run.id for run in self.runs)


def diagnose_runs(
    pictures: Sequence[Picture],
    evidence: Evidence,
    chosen: str | None = None,
    *,
    general_only: bool = False,
) -> view.Diagnosis:
    """The diagnosis of each run by itself, and what runs say together; `general_only` as `diagnose` has it.

    Raises:
        UsageError: `chosen` is no run's id, or nothing that was read belongs to any run.
    """
    if not pictures:
        raise UsageError(
            evidence.ungrouped[0].reason if evidence.ungrouped else "nothing was read of any run"
        )
    runs = [
        Told(picture=picture, diagnosis=diagnose(picture, general_only=general_only)) for picture in pictures
    ]
    picked, because = _choose(runs, chosen)
    arms = _arms([run for run in runs if run.picture.levels or run.picture.step is not None])
    comparisons, apart = _compare(arms)
    return view.Diagnosis(
        runs=tuple(run.diagnosis for run in runs),
        chosen_run=picked.id,
        chosen_because=because,
        comparisons=tuple(comparisons),
        not_comparable=tuple(apart),
        repeats=tuple(together.Repeated(runs=arm.ids) for arm in arms if len(arm.runs) > 1),
        provenance=together.ReadTogether(
            stepline=__version__,
            shared=evidence.shared,
            ungrouped=tuple(
                together.UngroupedView(path=one.path, reason=one.reason) for one in evidence.ungrouped
            ),
            passed_over=tuple(file.note or file.path for file in evidence.passed),
        ),
    )


def arms_of(pictures: Sequence[Picture]) -> tuple[tuple[Picture, ...], ...]:
    """Runs by configuration, repeats together; of two the earlier one, or the smaller value, first."""
    arms = _arms([Told(picture=picture, diagnosis=diagnose(picture)) for picture in pictures])
    if len(arms) == 2:
        one, other = arms
        arms = list(_in_order(one, other, _differences(one.runs[0], other.runs[0]))[:2])
    return tuple(arm.side.pictures for arm in arms)


def diagnosis_of(picture: Picture, found: view.RunDiagnosis) -> view.Diagnosis:
    """The diagnosis of evidence that holds one run."""
    return view.Diagnosis(
        runs=(found,),
        chosen_run=found.id,
        chosen_because="the only run",
        comparisons=(),
        not_comparable=(),
        repeats=(),
        provenance=together.ReadTogether(
            stepline=__version__,
            shared=(),
            ungrouped=(),
            passed_over=tuple(file.note or file.path for file in picture.run.files if not file.kind),
        ),
    )


def _choose(runs: Sequence[Told], wanted: str | None) -> tuple[Told, str]:
    """The heaviest load, then the latest; a run without a load only where none has one."""
    if wanted is not None:
        picked = next((run for run in runs if run.id == wanted), None)
        if picked is None:
            raise UsageError(
                f"--run {wanted}: no such run; there are {', '.join(run.id for run in runs[:12])}"
            )
        return picked, "asked for"
    if len(runs) == 1:
        return runs[0], "the only run"
    loads = [_load(run) for run in runs]
    heaviest = max(loads)
    tied = [run for run, load in zip(runs, loads, strict=True) if load == heaviest]
    offered = f"{heaviest:g} requests at once" if heaviest > 0 else "no load"
    times = [started(run.picture) for run in tied]
    if len(tied) == 1:
        return tied[0], f"the heaviest load ({offered})"
    if all(time is not None for time in times):
        at = max(range(len(tied)), key=lambda index: times[index] or 0.0)
        return tied[at], f"the latest of {len(tied)} runs under the heaviest load ({offered})"
    return tied[-1], f"the last read of {len(tied)} runs under the heaviest load ({offered})"


def _load(run: Told) -> float:
    load = run.picture.load
    if load is None:
        return 0.0
    return load.concurrency or load.running + (load.queued or 0.0)


def _arms(runs: Sequence[Told]) -> list[_Arm]:
    """Runs that differ in nothing that the evidence shows and share a load are repeats."""
    arms: list[_Arm] = []
    for run in runs:
        at = next((at for at, arm in enumerate(arms) if _repeats(arm.runs[0], run)), None)
        if at is None:
            arms.append(_Arm(runs=(run,)))
        else:
            arms[at] = _Arm(runs=(*arms[at].runs, run))
    return arms


def _repeats(one: Told, other: Told) -> bool:
    if _differences(one, other) or (one.picture.target.model or "") != (other.picture.target.model or ""):
        return False
    told = bool(one.diagnosis.target.knobs) or bool(one.diagnosis.target.model)
    result = _result(_Arm(runs=(one,)), _Arm(runs=(other,)))[0] if told else None
    return result is not None and result.verdict in ("same", "inconclusive")


def _differences(one: Told, other: Told) -> tuple[Difference, ...]:
    return differences(one.picture, other.picture, (one.diagnosis.target, other.diagnosis.target))


def _compare(arms: Sequence[_Arm]) -> tuple[list[together.RunsCompared], list[together.NotComparable]]:
    """Every pair that differs in one thing and shares a load; for arms in none, the nearest other and why not."""
    found: list[together.RunsCompared] = []
    compared: set[int] = set()
    nearest: dict[int, tuple[int, together.NotComparable]] = {}
    pairs = [(a, b) for a in range(len(arms)) for b in range(a + 1, len(arms))][:MOST_PAIRS]
    for first, second in pairs:
        apart = _differences(arms[first].runs[0], arms[second].runs[0])
        before, after, apart = _in_order(arms[first], arms[second], apart)
        one = apart[0] if apart else NOT_RECORDED
        unknown = [arm.ids[0] for arm in (before, after) if not _described(arm.runs[0])]
        if unknown:
            result, why = None, f"nothing was recorded of the server of {' and of '.join(unknown)}"
        else:
            result, why = _result(before, after) if len(apart) < 2 else (None, _several(apart))
        told = None if result is None else _compared(before, after, one, result)
        if told is None and len(apart) == 1 and not unknown:
            told = _by_log(before, after, one)
        if told is not None:
            found.append(told)
            compared |= {first, second}
            continue
        reason = together.NotComparable(
            runs=(before.ids[0], after.ids[0]), differs=tuple(one.text for one in apart), reason=why
        )
        for at in (first, second):
            if at not in nearest or len(apart) < nearest[at][0]:
                nearest[at] = (len(apart), reason)
    left = [nearest[at][1] for at in range(len(arms)) if at not in compared and at in nearest]
    return found, list(dict.fromkeys(left))


def _described(run: Told) -> bool:
    """Whether anything is known of a run's server: without it nobody can say in what two differ."""
    start, target = run.picture.run.start, run.diagnosis.target
    set_by_client = any(level.served_with for level in run.picture.run.levels)
    seen = bool(run.picture.run.decodes)
    return bool(
        target.engine or target.knobs or set_by_client or seen or (start is not None and start.arguments)
    )


def _several(apart: Sequence[Difference]) -> str:
    if not apart:
        return "nothing that the evidence shows differs in their servers"
    return f"they differ in {len(apart)} settings"


def _in_order(
    one: _Arm, other: _Arm, apart: tuple[Difference, ...]
) -> tuple[_Arm, _Arm, tuple[Difference, ...]]:
    """The smaller number before the larger one; else in order of time, else as read."""
    turned = False
    numbers = [_number(apart[0].before), _number(apart[0].after)] if len(apart) == 1 else [None, None]
    times = [started(arm.runs[0].picture) for arm in (one, other)]
    if numbers[0] is not None and numbers[1] is not None:
        turned = numbers[0] > numbers[1]
    elif times[0] is not None and times[1] is not None:
        turned = times[0] > times[1]
    if not turned:
        return one, other, apart
    swapped = tuple(msgspec.structs.replace(each, before=each.after, after=each.before) for each in apart)
    return other, one, swapped


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _result(before: _Arm, after: _Arm) -> tuple[Comparison | None, str]:
    if unlike_contexts(before.side.pictures, after.side.pictures):
        return None, "their logs show no batch at one use of the KV pool, so the contexts may differ"
    try:
        return compare_sides(before.side, after.side), ""
    except SteplineError as error:
        return None, str(error).removeprefix("not comparable: ")


def _compared(before: _Arm, after: _Arm, apart: Difference, result: Comparison) -> together.RunsCompared:
    rates = [line for line in result.lines if line.measure == "rate"] or list(result.lines)
    levels = tuple(_effect(line) for line in sorted(rates, key=lambda line: line.level))
    return _experiment((before, after), apart, levels, result.covers, {*result.gone, *result.appeared})


def _by_log(before: _Arm, after: _Arm, apart: Difference) -> together.RunsCompared | None:
    """By the rates that both logs print, where neither steps nor a client's rates were measured on both sides."""
    pictures = [run.picture for arm in (before, after) for run in arm.runs]
    if any(picture.run.levels for picture in pictures) or len({one.target.engine for one in pictures}) > 1:
        return None  # a client's levels say which loads are alike, and here none were
    try:
        check_comparable(before.side.pictures, after.side.pictures)
    except SteplineError:
        return None
    levels = log_rates(before.side.pictures, after.side.pictures, LEVERS.no_change)
    if not levels:
        return None
    found = [{finding.code for finding in arm.runs[0].diagnosis.findings} for arm in (before, after)]
    return _experiment((before, after), apart, levels, COVERS, found[0] ^ found[1])


def _experiment(
    sides: tuple[_Arm, _Arm],
    apart: Difference,
    levels: tuple[together.Compared, ...],
    covers: str,
    changed: set[str],
) -> together.RunsCompared:
    before, after = sides
    high = levels[-1]
    unit = "tok/s" if high.measure == "rate" else "ms a token"
    return together.RunsCompared(
        runs=(*before.ids, *after.ids),
        before=before.ids,
        after=after.ids,
        setting=apart.setting,
        value_before=apart.before,
        value_after=apart.after,
        effect=high,
        levels=levels,
        covers=covers,
        answers=_answers(apart, high, changed),
        sentence=(
            f"{apart.text} at {high.at}: {_change(high.speedup)} "
            f"({units.count(high.before)} to {units.count(high.after)} {unit}; 95 % "
            f"{_change(high.interval.low)} to {_change(high.interval.high)})"
        ),
    )


def _change(speedup: float) -> str:
    """A loss and a gain below twice as a percentage, a larger gain as times."""
    return units.times(speedup) if speedup >= TWICE else f"{100 * (speedup - 1):+.1f} %"


def _effect(line: ComparedLine) -> together.Compared:
    return together.Compared(
        at=line.at,
        measure=line.measure,
        instrument=line.instrument,
        before=line.before,
        after=line.after,
        unit=line.unit,
        speedup=line.speedup,
        interval=line.interval,
        verdict=line.verdict,
    )


def _answers(apart: Difference, high: together.Compared, changed: set[str]) -> tuple[together.Answered, ...]:
    """What the one setting takes away or brings: ruled out where that gained nothing, confirmed where it bound."""
    move = joint([move_of(*each) for each in _each(apart)])
    if move is None:
        return ()
    by = f"{apart.text}: {_change(high.speedup)} at {high.at}"
    if high.verdict == "inconclusive":
        return ()
    bound = move.bound(high.speedup, SHARED.worth) if high.verdict != "same" else ()
    sure = [code for code in bound if len(bound) == 1 or code in changed]
    vain = move.did_not_bind(high.speedup, LEVERS.no_change)
    return (
        *(_answered(code, "confirmed", by) for code in sure),
        *(_answered(code, "ruled out", by) for code in vain if code not in sure),
    )


def _each(apart: Difference) -> list[tuple[str, str | None, str | None]]:
    """Every setting of a family with its own values."""
    if len(apart.names) == 1 and apart.setting == apart.names[0]:
        return [(apart.setting, apart.before, apart.after)]
    sides = [
        dict(part.split("=", 1) for part in (text or "").split(", ") if "=" in part)
        for text in (apart.before, apart.after)
    ]
    return [(name, sides[0].get(name), sides[1].get(name)) for name in apart.names]


def _answered(code: str, says: str, by: str) -> together.Answered:
    name = next((rule.codename for rule in RULES if rule.code == code), code)
    return together.Answered(
        code=code, name=name, says="confirmed" if says == "confirmed" else "ruled out", by=by
    )
