"""What stands in a log besides its lines: launch commands at its start, results of a benchmark at its end."""

import msgspec

from stepline.evidence.merge import merge
from stepline.evidence.run import EvidenceFile, Run
from stepline.sources.commands import read_commands
from stepline.sources.decoded import text_of
from stepline.sources.peek import Peek
from stepline.sources.readers.table import read_results_beside

OPENING = 1 << 16
ENDING = 1 << 17
"""Bytes of the opening and the end of a log that are looked at; what it measures stands in its own lines."""


def with_what_stands_beside(run: Run, peek: Peek) -> Run:
    """The log's run, with commands and results that somebody pasted or printed into the same file."""
    opening = text_of(peek.head[:OPENING])
    runs = [run, *read_commands(opening.splitlines(), peek.name)]
    ending = opening if peek.size_bytes <= OPENING else _ending(peek)
    beside = read_results_beside(ending, peek.name)
    if beside is not None:
        runs.append(beside)
    if len(runs) == 1:
        return run
    joined = merge(runs)
    own = run.files[0]
    kind = f"{own.kind} and results" if beside is not None else own.kind
    file = EvidenceFile(
        path=own.path,
        kind=own.kind if beside is None else kind,
        note=own.note,
        records=own.records + (beside.files[0].records if beside else 0),
        damaged=own.damaged,
    )
    return msgspec.structs.replace(joined, files=(file,))


def _ending(peek: Peek) -> str:
    """The end of a plain file; a compressed one would have to be read whole."""
    with peek.path.open("rb") as stream:
        if stream.read(4) != peek.head[:4]:
            return ""
        stream.seek(max(0, peek.size_bytes - ENDING))
        return text_of(stream.read(ENDING)).partition("\n")[2]
