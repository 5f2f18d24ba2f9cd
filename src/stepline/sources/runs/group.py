"""From fragments to runs.

Every start that a log, settings or scrapes tell of is a run; clients, traces and counters are put to the run that they
agree with best, by what both report. Names decide only between runs that fit equally; what still fits two joins none.
"""

from collections.abc import Sequence

import msgspec

from stepline.evidence.evidence import Evidence, Ungrouped
from stepline.evidence.load import LoadLevel
from stepline.evidence.merge import merge
from stepline.evidence.origin import Origin
from stepline.evidence.run import EvidenceFile, Run
from stepline.sources.logs.logbook import MIXED
from stepline.sources.runs import names
from stepline.sources.runs.clocks import in_year, year_of, zone_shift
from stepline.sources.runs.fragment import ORDER, Fragment, fragment_of
from stepline.sources.runs.ids import with_ids
from stepline.sources.runs.party import Party
from stepline.sources.runs.split import by_ready, by_server
from stepline.sources.runs.starts import same_start

STANDS_ALONE = ("bundle", "log", "info", "scrape", "client", "steps", "trace", "gpu")
FULL = 8
"""Figures of a result from which two measurements cannot agree in all."""
TRUST = ("server info", "server log", "metrics scrape")
"""Where two files state the same setting, the resolved one of an earlier kind is used."""


def group(read: Sequence[Run], bundles: Sequence[Run], passed: Sequence[EvidenceFile] = ()) -> Evidence:
    """The runs among what was read."""
    saved = [part for run in bundles for part in by_ready(run)]
    fragments = [fragment_of(run, place, "bundle") for place, run in enumerate(saved)]
    for run in read:
        fragments += [fragment_of(part, len(fragments)) for part in by_server(run)]
    fragments, mixed = _without_mixed(fragments)
    fragments.sort(key=lambda fragment: (ORDER.index(fragment.kind), fragment.place))
    year = year_of([span for f in fragments for span in (f.clock, f.local) if span is not None])
    shift = _shift(fragments, year)
    parties: list[Party] = []
    ungrouped: list[Ungrouped] = []
    late: list[Fragment] = []
    for fragment in fragments:
        if fragment.kind in ("trials", "config", "other"):
            late.append(fragment)
        else:
            _place(fragment, parties, ungrouped, shift, year)
    shared = _share(late, parties, ungrouped)
    runs = [_joined(party) for party in parties]
    if len(runs) == 1:
        runs[0] = msgspec.structs.replace(runs[0], files=(*runs[0].files, *passed))
    doubts = tuple(doubt for fragment in mixed for doubt in fragment.run.doubts if doubt.topic == MIXED)
    ungrouped += [
        Ungrouped(path=fragment.file, reason=doubt.text)
        for fragment in mixed
        for doubt in fragment.run.doubts
        if doubt.topic == MIXED
    ]
    return Evidence(
        runs=with_ids(_in_time(runs)),
        shared=tuple(dict.fromkeys(shared)),
        ungrouped=tuple(dict.fromkeys(ungrouped)),
        passed=tuple(passed),
        doubts=doubts,
    )


def _without_mixed(fragments: list[Fragment]) -> tuple[list[Fragment], list[Fragment]]:
    """Without the starts of one log whose lines are of two servers at once; of such a log no start is kept."""
    files = {f.file for f in fragments if any(doubt.topic == MIXED for doubt in f.run.doubts)}
    return [f for f in fragments if f.file not in files], [f for f in fragments if f.file in files]


def _shift(fragments: Sequence[Fragment], year: int | None) -> float:
    logs = [in_year(f.local, year) for f in fragments if f.kind == "log" and f.local is not None]
    clients = [
        f.clock or in_year(span, year)
        for f in fragments
        if f.kind != "log" and (span := f.clock or f.local) is not None
    ]
    return zone_shift(logs[:200], list(dict.fromkeys(clients))[:200]) or 0.0


def _place(
    fragment: Fragment, parties: list[Party], ungrouped: list[Ungrouped], shift: float, year: int | None
) -> None:
    """Put a fragment to the run it is of, or begin one with it."""
    if fragment.kind in ("bundle", "log"):
        known = next((party for party in parties if same_start(party.members[0], fragment)), None)
        if known is None:
            parties.append(Party(fragment))
        else:
            known.add(fragment)
        return
    captured = _capture(fragment, parties)
    if captured is not None:
        captured.add(fragment)
        return
    reasons = [party.excludes(fragment, shift, year) for party in parties]
    fitting = [party for party, reason in zip(parties, reasons, strict=True) if reason is None]
    if not fitting:
        record = fragment.run.start is not None and fragment.run.start.capture is not None
        if not parties or (fragment.kind != "gpu" and not record):
            parties.append(Party(fragment))
        else:
            ungrouped.append(Ungrouped(path=fragment.file, reason=f"fits no run: {reasons[0]}"))
        return
    if fragment.kind != "gpu" and _alone(fitting, fragment, shift, year):
        parties.append(Party(fragment))
        return
    best = _best(fitting, fragment, shift, year)
    if best is None:
        files = " and ".join(party.members[0].file for party in fitting[:2])
        text = f"fits {len(fitting)} runs equally well (those of {files}{' and others' if len(fitting) > 2 else ''})"
        ungrouped.append(Ungrouped(path=fragment.file, reason=text))
    else:
        best.add(fragment)


def _alone(fitting: Sequence[Party], fragment: Fragment, shift: float, year: int | None) -> bool:
    """True where nothing in a file agrees with any run, and it does not lie beside one's files either."""
    if any(party.likeness(fragment, shift, year) > 0 for party in fitting):
        return False
    return all(
        names.foreign(party, fragment)
        or all(names.beside(member.file, fragment.file) for member in party.members)
        for party in fitting
    )


def _capture(fragment: Fragment, parties: Sequence[Party]) -> Party | None:
    """The run of a recording that `stepline record` wrote: everything in its folder is of one start."""
    for party in parties:
        for member in party.members:
            captures = [
                f.run.start.capture for f in (member, fragment) if f.run.start and f.run.start.capture
            ]
            if captures and member.folder == fragment.folder == captures[0] != ".":
                return party
    return None


def _best(fitting: Sequence[Party], fragment: Fragment, shift: float, year: int | None) -> Party | None:
    scores = [party.likeness(fragment, shift, year) for party in fitting]
    top = max(scores)
    tied = [party for party, score in zip(fitting, scores, strict=True) if score == top]
    return tied[0] if len(tied) == 1 else names.nearest(tied, fragment)


def _share(late: Sequence[Fragment], parties: list[Party], ungrouped: list[Ungrouped]) -> list[str]:
    """Put what says nothing of a start to the runs it fits; the files that several runs share.

    A table of trials is about all of them. One model's config is every run's; of several each is the run's whose files
    lie nearest.
    """
    if late and not parties:
        parties.append(Party(late[0]))
        late = late[1:]
    configs = [msgspec.json.encode(f.run.model_config.value) for f in late if f.run.model_config is not None]
    shared: list[str] = []
    for fragment in late:
        own = fragment.kind == "other" or (fragment.kind == "config" and len(configs) > 1)
        near = names.nearest(parties, fragment) if own and len(parties) > 1 else None
        if len(parties) == 1:
            parties[0].add(fragment)
        elif near is not None:
            near.add(fragment)
        elif fragment.kind == "other":
            continue
        elif own and len(set(configs)) > 1:
            reason = f"one of {len(set(configs))} models' configs, and nothing says of which run"
            ungrouped.append(Ungrouped(path=fragment.file, reason=reason))
        else:
            # Rows of a table of trials are of several servers; the trials are of all of them.
            fragment.run = msgspec.structs.replace(fragment.run, levels=(), step_rows=())
            for party in parties:
                party.add(fragment)
            shared.append(fragment.file)
    return shared


def _joined(party: Party) -> Run:
    members = sorted(party.members, key=lambda member: (_trust(member.run), member.place))
    run = merge([member.run for member in members])
    return msgspec.structs.replace(run, levels=_once(run.levels))


def _once(levels: Sequence[LoadLevel]) -> tuple[LoadLevel, ...]:
    """Each measurement once: a sweep's summary repeats what stands in the files of its levels.

    Two measurements never agree in every figure of a full result; rows of a few rounded ones may.
    """
    kept: list[LoadLevel] = []
    written: dict[bytes, str] = {}
    for level in levels:
        key = msgspec.json.encode(msgspec.structs.replace(level, origin=Origin("")))
        figures = sum(isinstance(getattr(level, name), float) for name in LoadLevel.__struct_fields__)
        if figures < FULL or written.setdefault(key, level.origin.file) == level.origin.file:
            kept.append(level)
    return tuple(kept)


def _trust(run: Run) -> int:
    kind = run.files[0].kind if run.files else None
    return TRUST.index(kind) if kind in TRUST else len(TRUST)


def _in_time(runs: list[Run]) -> list[Run]:
    """By the time that all of them tell, else as read."""
    times = [began(run) for run in runs]
    if any(time is None for time in times):
        return runs
    return [runs[at] for at in sorted(range(len(runs)), key=lambda at: times[at] or 0.0)]


def began(run: Run) -> float | None:
    """When a run's evidence begins, by its own clock."""
    start = run.start
    told = [level.start_s for level in run.levels if level.start_s is not None]
    told += [scrape.time_s for scrape in run.metrics if scrape.time_s is not None]
    if start is not None and start.first_s is not None:
        return start.first_s
    return min(told, default=None)
