"""Server logs of any known engine, plain or compressed, in one pass and in bounded memory: a run for each start."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from stepline.evidence.merge import merge
from stepline.evidence.run import EvidenceFile, ReadingDoubt, Run
from stepline.evidence.server import ServerFacts
from stepline.sources import prefixes
from stepline.sources.engine import LogReader
from stepline.sources.engines import ENGINES
from stepline.sources.logs import lines
from stepline.sources.peek import Peek

if TYPE_CHECKING:
    from stepline.sources.logs.by_shape import ByShape


READERS = tuple(engine.log for engine in ENGINES if engine.log is not None)
MANY_BYTES = 4 << 20
"""From a log of this size on, importing numpy and learning shapes pays off; its opening is read line by line still."""


def recognises(peek: Peek) -> bool:
    """True when some engine knows a line of the opening."""
    return not peek.binary and any(reader.recognises(peek.head) for reader in READERS)


def read_starts(peek: Peek) -> tuple[Run, ...]:
    """Read a whole log, one run for each start of each server in it; what stands before a damaged tail is kept.

    Servers whose lines a collector gathered into one file are told apart by its prefix. A short log is read line by
    line, a longer one many lines at a time.
    """
    sources = prefixes.Sources(lines.without_colours(peek.head).decode("utf-8", "replace"))
    # Of several sources some may write only after the opening.
    known = [reader for reader in READERS if sources.many or reader.recognises(peek.head)]
    by_source: dict[str | None, list[LogReader]] = {}
    by_shape: ByShape | None = None
    number, done_bytes, cut = 0, 0, None

    def readers_of(source: str | None) -> list[LogReader]:
        if source not in by_source:
            by_source[source] = [reader(peek.name) for reader in known]
        return by_source[source]

    def feed(number: int, line: str) -> None:
        source = None
        if sources.many:
            source, line = sources.of(line)
        for part in lines.segments(line):
            text = lines.unwrapped(part)
            readers = readers_of(source)
            for reader in readers:
                starts = reader.book.starts
                reader.feed(number, text)
                if reader.book.starts > starts:
                    _pause_others(readers, reader)

    def size() -> int:
        return by_shape.chunk_bytes if by_shape else lines.CHUNK_BYTES

    starts = tuple(mark.encode() for reader in known for mark in getattr(reader, "STARTS", ()))
    with peek.open() as stream:
        try:
            for coloured in lines.chunks(stream, size):
                chunk = lines.without_colours(coloured)
                long = number and max(peek.size_bytes, done_bytes) >= MANY_BYTES
                if by_shape is None and long and not sources.many:
                    by_shape = _by_shape(readers_of(None), feed)
                done_bytes += len(chunk)
                if by_shape is not None:
                    for piece, begins in lines.cut_before(chunk, starts):
                        if begins:
                            number += 1
                            by_shape.begin(number, piece.decode("utf-8", "replace").rstrip("\n"))
                        else:
                            number += by_shape.read(number, piece)
                    continue
                for line in lines.split(chunk.decode("utf-8", "replace")):
                    number += 1
                    feed(number, line)
        except (EOFError, OSError, ValueError) as error:
            cut = error
    summed = by_shape.finish() if by_shape else 0
    note = f"{summed:,} of its lines are kept as sums" if summed else None
    doubts: tuple[ReadingDoubt, ...] = ()
    if cut is not None:
        text = f"{peek.name} breaks off after line {number}: {cut}"
        doubts = (ReadingDoubt(topic="damaged-file", text=text),)
    found = [run for source, readers in by_source.items() for run in _starts(source, readers)]
    return tuple(_of_file(run, peek.name, note, doubts) for run in found or [Run()])


def _pause_others(readers: list[LogReader], begun: LogReader) -> None:
    """Where one engine starts, what follows is not another's, unless it goes on as one without starts does."""
    for other in readers:
        if other is not begun and hasattr(other, "STARTS"):
            other.book.pause()


def _starts(source: str | None, readers: list[LogReader]) -> list[Run]:
    """The starts that one source of a log tells of; readers that read a line each speak of one start."""
    last = [reader.finish() for reader in readers]
    earlier = [run for reader in readers for run in reader.book.earlier]
    told = [run for run in last if _speaks(run)] or [run for run in last if _tells(run)]
    apart = [run for run in told if run.decodes or run.prefills]
    if len({engine_of(run) for run in apart}) > 1:
        ends = apart  # two engines wrote into one file: each its own lines
    else:
        ends = [merge(told or last[:1])] if told or source is None else []
    spoken = [run for run in (*earlier, *ends) if _speaks(run)]
    named = spoken or [run for run in (*earlier, *ends) if source is None or _tells(run)]
    return [_with_source(run, source) for run in named]


def engine_of(run: Run) -> str | None:
    """The engine that wrote the records of a run."""
    return None if run.server.engine is None else run.server.engine.value


def _speaks(run: Run) -> bool:
    """Whether an engine's own lines were read, and not only words that several engines write."""
    return bool(run.decodes or run.prefills or run.transfers or run.levels or run.server != ServerFacts())


def _tells(run: Run) -> bool:
    return bool(
        run.decodes
        or run.prefills
        or run.events
        or run.graph_uses
        or run.transfers
        or run.notices
        or run.levels
        or run.doubts
        or run.server != ServerFacts()
    )


def _with_source(run: Run, source: str | None) -> Run:
    if source is None or run.start is None:
        return run
    return msgspec.structs.replace(run, start=msgspec.structs.replace(run.start, source=source))


def _of_file(run: Run, name: str, note: str | None, doubts: tuple[ReadingDoubt, ...]) -> Run:
    records = len(run.decodes) + len(run.prefills) + len(run.events)
    damaged = sum(_counted(doubt) for doubt in run.doubts if doubt.topic == "damaged-lines")
    file = EvidenceFile(path=name, kind="server log", note=note, records=records, damaged=damaged)
    return msgspec.structs.replace(run, files=(file,), doubts=(*run.doubts, *doubts))


def _counted(doubt: ReadingDoubt) -> int:
    head = doubt.text.split(" ", 1)[0]
    return int(head) if head.isdigit() else 0


def _by_shape(readers: list[LogReader], feed: Callable[[int, str], None]) -> "ByShape":
    from stepline.sources.logs.by_shape import ByShape  # noqa: PLC0415  # numpy, only for long logs

    return ByShape(readers, feed)
