"""One file that speaks of several servers: rows of a table or of a result file, told apart by what each row says."""

from collections.abc import Hashable
from itertools import pairwise

import msgspec

from stepline.evidence.load import LoadLevel
from stepline.evidence.run import Run


def by_server(run: Run) -> tuple[Run, ...]:
    """A run for each server that the file's levels name.

    Rows that were set beside each other as trials stay together: their table is the comparison.
    """
    keys = dict.fromkeys(_server(level) for level in run.levels)
    if len(keys) < 2 or run.levers or run.decodes or run.metrics:
        return (run,)
    return tuple(
        msgspec.structs.replace(run, levels=tuple(level for level in run.levels if _server(level) == key))
        for key in keys
    )


def by_ready(run: Run) -> tuple[Run, ...]:
    """A run for each start in a bundle of an earlier version, which kept all starts of a log in one.

    A start ends where the server becomes ready again after it served. Settings are those of the last start alone.
    """
    ready = [event.seq for event in run.events if event.kind == "ready"]
    ends = [
        after
        for before, after in pairwise(ready)
        if any(before < report.seq < after for report in run.decodes)
    ]
    if not ends:
        return (run,)
    last = _between(run, ends[-1], None)
    firsts = [
        _between(
            Run(files=run.files, decodes=run.decodes, prefills=run.prefills, events=run.events), low, high
        )
        for low, high in zip([0, *ends[:-1]], ends, strict=True)
    ]
    return (*firsts, last)


def _between(run: Run, low: int, high: int | None) -> Run:
    def inside(seq: int) -> bool:
        return low <= seq and (high is None or seq < high)

    return msgspec.structs.replace(
        run,
        decodes=tuple(report for report in run.decodes if inside(report.seq)),
        prefills=tuple(report for report in run.prefills if inside(report.seq)),
        events=tuple(event for event in run.events if inside(event.seq)),
    )


def _server(level: LoadLevel) -> Hashable:
    return level.served_with, level.tool, level.backend, level.model, level.url, level.workload
