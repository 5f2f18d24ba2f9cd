"""From the runs of a campaign to its ledger: what was pulled, what it did at low and high batch, what that settles."""

import math
from collections import Counter
from collections.abc import Sequence

import msgspec

from stepline import units
from stepline.errors import SteplineError
from stepline.evidence.load import LeverTrial
from stepline.facts.levers import find_lever
from stepline.findings.compare import compare_sides, line_verdict
from stepline.findings.comparison import ComparedLine, Comparison, KnobChange
from stepline.findings.history import CauseSettled, Effect, History, HistoryRun, LedgerEntry
from stepline.findings.registry import RULES
from stepline.findings.settings_apart import changes
from stepline.findings.sides import Side, make_side, started
from stepline.findings.together import Span
from stepline.model.change.speedup import Measured, ratio
from stepline.model.measure.levers import T as LEVERS
from stepline.model.measure.levers import move_in
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one server under one configuration."""

    names: tuple[str, ...]
    side: Side

    @property
    def name(self) -> str:
        """The first run, and how many repeat it."""
        more = f" and {len(self.names) - 1} more" if len(self.names) > 1 else ""
        return f"{self.names[0]}{more}"


def ledger(runs: Sequence[tuple[str, Picture]], passed_over: Sequence[str] = ()) -> History:
    """The ledger of named runs; `passed_over` are folders that held no run.

    Each configuration is compared with the earlier one that differs from it in fewest settings, the latest of those.
    """
    ordered = _in_time(runs)
    servers = [(name, picture) for name, picture in ordered if picture.step is not None or picture.levels]
    configurations, repeats = _configurations(servers)
    entries: list[LedgerEntry] = []
    alone: list[str] = []
    for at, later in enumerate(configurations):
        found, reason = _against(configurations[:at], later)
        if found is not None:
            entries.append(found)
        elif reason is not None:
            alone.append(f"{later.name}: {reason}")
    entries += [entry for _, picture in ordered for entry in _trials(picture.run.levers)]
    confirmed = _settled([cause for entry in entries for cause in entry.confirms])
    sure = {cause.code for cause in confirmed}
    return History(
        sentence=_sentence(entries),
        runs=tuple(
            HistoryRun(
                name=name,
                started_s=started(picture),
                repeats=repeats.get(name),
                verdict=next(c.side.diagnosis.verdict for c in configurations if name in c.names),
            )
            for name, picture in servers
        ),
        entries=tuple(entries),
        ruled_out=tuple(
            cause
            for cause in _settled([cause for entry in entries for cause in entry.rules_out])
            if cause.code not in sure
        ),
        confirmed=confirmed,
        not_compared=(*alone, *passed_over),
    )


def _in_time(runs: Sequence[tuple[str, Picture]]) -> list[tuple[str, Picture]]:
    """By their clocks where every run has one, else as given."""
    times = {name: started(picture) for name, picture in runs}
    if any(time is None for time in times.values()):
        return list(runs)
    return sorted(runs, key=lambda run: times[run[0]] or 0.0)


def _configurations(
    runs: Sequence[tuple[str, Picture]],
) -> tuple[list[Configuration], dict[str, str]]:
    """Runs by configuration; a run that differs in no setting and in no speed repeats an earlier one."""
    found: list[Configuration] = []
    repeats: dict[str, str] = {}
    for name, picture in runs:
        side = make_side([picture], name)
        at = next((at for at, known in enumerate(found) if _repeats(known.side, side)), None)
        if at is None:
            found.append(Configuration(names=(name,), side=side))
            continue
        known = found[at]
        repeats[name] = known.names[0]
        together = make_side((*known.side.pictures, picture), name)
        found[at] = Configuration(names=(*known.names, name), side=together)
    return found, repeats


def _repeats(known: Side, other: Side) -> bool:
    if _changes(known, other):
        return False
    try:
        return compare_sides(known, other).verdict in ("same", "inconclusive")
    except SteplineError:
        return False


def _against(earlier: Sequence[Configuration], later: Configuration) -> tuple[LedgerEntry | None, str | None]:
    """The comparison with the nearest earlier configuration; else why none may be made."""
    apart = [_changes(one.side, later.side) for one in earlier]
    reason = None
    for at in sorted(range(len(earlier)), key=lambda at: (len(apart[at]), -at)):
        try:
            result = compare_sides(earlier[at].side, later.side)
        except SteplineError as error:
            reason = reason or f"{str(error).removeprefix('not comparable: ')} (against {earlier[at].name})"
            continue
        return _entry(earlier[at].name, later.name, result, apart[at]), None
    return None, reason


def _changes(before: Side, after: Side) -> tuple[KnobChange, ...]:
    return changes(before.chief, after.chief, (before.diagnosis.target, after.diagnosis.target))


def _entry(before: str, after: str, result: Comparison, pulled: tuple[KnobChange, ...]) -> LedgerEntry:
    low, high = _ends(result.lines)
    only = pulled[0] if len(pulled) == 1 else None
    return LedgerEntry(
        lever="; ".join(f"{knob.name} {knob.before} → {knob.after}" for knob in pulled)
        or "no setting that the evidence shows",
        source="runs",
        before=before,
        after=after,
        knobs=pulled,
        acts_on="; ".join(knob.acts_on for knob in pulled if knob.acts_on) or None,
        verdict=result.verdict,
        sentence=result.sentence,
        low=None if low is high else _effect(low),
        high=_effect(high),
        rules_out=()
        if only is None
        else ruled_out_by(only.name, only.causes, high.speedup, high.verdict, high.at),
        confirms=() if only is None else _confirmed(only, result, high),
        binds_next=result.binds_next.measured,
        doubts=result.doubts,
    )


def _ends(lines: Sequence[ComparedLine]) -> tuple[ComparedLine, ComparedLine]:
    """The lightest and the heaviest level, of rates where there are any."""
    rates = [line for line in lines if line.measure == "rate"] or list(lines)
    ordered = sorted(rates, key=lambda line: line.level)
    return ordered[0], ordered[-1]


def _effect(line: ComparedLine) -> Effect:
    return Effect(
        at=line.at,
        measure=line.measure,
        before=line.before,
        after=line.after,
        unit=line.unit,
        speedup=line.speedup,
        interval=line.interval,
        verdict=line.verdict,
    )


def ruled_out_by(
    lever: str, causes: Sequence[str], speedup: float, verdict: str, at: str
) -> tuple[CauseSettled, ...]:
    """What a lever that changed nothing where it counts did not find binding."""
    if verdict != "same":
        return ()
    by = f"{lever} changed the speed by {units.change(speedup)} at {at}"
    return tuple(CauseSettled(code=code, name=_name(code), by=by) for code in causes)


def _confirmed(knob: KnobChange, result: Comparison, high: ComparedLine) -> tuple[CauseSettled, ...]:
    """The one cause that the only setting pulled acts on, where it gained (or cost) a tenth and more."""
    lever = find_lever(knob.name)
    codes = set(result.gone if high.verdict == "better" else result.appeared) & set(knob.causes)
    if (
        lever is None
        or high.verdict not in ("better", "worse")
        or abs(math.log(high.speedup)) < math.log(1 + SHARED.worth)
    ):
        return ()
    if len(knob.causes) == 1:
        codes = set(knob.causes)
    by = f"{knob.name} {knob.before} → {knob.after}: {units.change(high.speedup)} at {high.at}"
    return tuple(CauseSettled(code=code, name=_name(code), by=by) for code in sorted(codes))


def _trials(trials: Sequence[LeverTrial]) -> list[LedgerEntry]:
    """A table's levers: the trials at the smallest and the largest batch, each one run a side."""
    by_lever: dict[str, list[LeverTrial]] = {}
    for trial in trials:
        by_lever.setdefault(trial.lever, []).append(trial)
    return [_trial_entry(lever, tried) for lever, tried in by_lever.items()]


def _trial_entry(name: str, tried: Sequence[LeverTrial]) -> LedgerEntry:
    ordered = sorted(tried, key=lambda trial: trial.running or trial.concurrency or 0.0)
    effects = [_trial_effect(trial, len(tried)) for trial in ordered]
    high, trial = effects[-1], ordered[-1]
    move = move_in(trial)
    confirms: tuple[CauseSettled, ...] = ()
    settled = move is not None and high.verdict in ("better", "worse")
    one = move.bound(high.speedup, SHARED.worth) if move is not None and settled else ()
    vain = () if move is None else move.did_not_bind(high.speedup, LEVERS.no_change)
    if len(one) == 1:
        by = f"{name}: {units.change(high.speedup)} at {high.at}"
        confirms = (CauseSettled(code=one[0], name=_name(one[0]), by=by),)
    return LedgerEntry(
        lever=name,
        source="table",
        before=trial.value_before or "before",
        after=str(trial.origin),
        knobs=(),
        acts_on=None if move is None else move.acts_on,
        verdict=high.verdict,
        sentence=f"{high.verdict}: {units.change(high.speedup)} at {high.at}",
        low=effects[0] if len(effects) > 1 else None,
        high=high,
        rules_out=ruled_out_by(name, vain, high.speedup, high.verdict, high.at),
        confirms=confirms,
        binds_next=None,
        doubts=(),
    )


def _trial_effect(trial: LeverTrial, lines: int) -> Effect:
    """The stated figures as one run a side: nothing tells how steady they were."""
    found = ratio(
        [Measured(log_speed=0.0, windows=1)],
        [Measured(log_speed=math.log(trial.speedup), windows=1)],
        lines,
    )
    at = (
        f"{trial.running:g} running"
        if trial.running
        else f"C = {trial.concurrency:g}"
        if trial.concurrency
        else "the batch as stated"
    )
    return Effect(
        at=at,
        measure="as stated in a table",
        before=trial.before,
        after=trial.after,
        unit="tok/s" if trial.measure == "tok_s" else "ms",
        speedup=found.speedup,
        interval=Span(found.low, found.high),
        verdict=line_verdict(found.log_ratio, found.half, found.wide, LEVERS.no_change),
    )


def _settled(causes: Sequence[CauseSettled]) -> tuple[CauseSettled, ...]:
    """Each cause once, by the first lever that settled it."""
    by_code: dict[str, CauseSettled] = {}
    for cause in causes:
        by_code.setdefault(cause.code, cause)
    return tuple(by_code[code] for code in sorted(by_code))


def _name(code: str) -> str:
    return next((rule.codename for rule in RULES if rule.code == code), code)


def _sentence(entries: Sequence[LedgerEntry]) -> str:
    if not entries:
        return "nothing was tried that the runs could tell apart"
    counts = Counter(entry.verdict for entry in entries)
    told = ", ".join(
        f"{counts[verdict]} {verdict}"
        for verdict in ("better", "worse", "same", "inconclusive")
        if counts[verdict]
    )
    best = max(entries, key=lambda entry: entry.high.speedup)
    most = (
        f"; most by {best.lever}: {units.change(best.high.speedup)} at {best.high.at}"
        if best.verdict == "better"
        else ""
    )
    return f"{len(entries)} changes tried: {told}{most}"
