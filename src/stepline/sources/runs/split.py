"""One file that speaks of several servers: rows of a table or of a result file, told apart by what each row says."""

from collections.abc import Hashable

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


def _server(level: LoadLevel) -> Hashable:
    return level.served_with, level.tool, level.backend, level.model, level.url, level.workload
