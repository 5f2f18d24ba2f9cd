"""What stands in a log besides its lines: launch commands at its start, results of a benchmark at its end."""

import msgspec

from stepline.evidence.merge import merge
from stepline.evidence.run import Run
from stepline.sources.commands import read_commands
from stepline.sources.decoded import text_of
from stepline.sources.peek import Peek
from stepline.sources.readers.log import engine_of, read_starts
from stepline.sources.readers.table import read_results_beside

OPENING = 1 << 16
ENDING = 1 << 17
"""Bytes of the opening and the end of a log that are looked at; what it measures stands in its own lines."""


def read_log(peek: Peek) -> tuple[Run, ...]:
    """Every start that a log tells of, with what stands in it besides its lines."""
    return with_what_stands_beside(read_starts(peek), peek)


def with_what_stands_beside(runs: tuple[Run, ...], peek: Peek) -> tuple[Run, ...]:
    """The runs of a log, with what somebody pasted or printed into the same file.

    A command at the opening is the first start's of its engine; results at the end are of what ran last.
    """
    opening = text_of(peek.head[:OPENING])
    commands = read_commands(opening.splitlines(), peek.name)
    ending = opening if peek.size_bytes <= OPENING else _ending(peek)
    results = read_results_beside(ending, peek.name)
    joined = runs
    for command in commands:
        engines = [engine_of(run) for run in joined]
        own = next((at for at, engine in enumerate(engines) if engine in (None, engine_of(command))), None)
        if own is not None:
            joined = (*joined[:own], _joined(joined[own], command), *joined[own + 1 :])
    return joined if results is None else (*joined[:-1], _joined(joined[-1], results))


def _joined(run: Run, *beside: Run) -> Run:
    """One run of a file and of what stands in it besides its lines, listed as that one file."""
    if not beside:
        return run
    own = run.files[0]
    results = [file for each in beside for file in each.files if file.records]
    note = (
        "; ".join(filter(None, (own.note, "a benchmark's results stand in it" if results else None))) or None
    )
    records = own.records + sum(file.records for file in results)
    file = msgspec.structs.replace(own, note=note, records=records)
    return msgspec.structs.replace(merge([run, *beside]), files=(file,))


def _ending(peek: Peek) -> str:
    """The end of a plain file; a compressed one would have to be read whole."""
    with peek.path.open("rb") as stream:
        if stream.read(4) != peek.head[:4]:
            return ""
        stream.seek(max(0, peek.size_bytes - ENDING))
        return text_of(stream.read(ENDING)).partition("\n")[2]
