"""Server logs of any known engine, plain or compressed, in one pass and in bounded memory."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from stepline.evidence.merge import merge
from stepline.evidence.run import EvidenceFile, ReadingDoubt, Run
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


def read_log(peek: Peek) -> Run:
    """Read a whole log; what stands before a damaged tail is kept and the damage named.

    Where two engines wrote into one file, each reads its own lines, and their two names are a contradiction.
    A short log is read line by line, a longer one many lines at a time.
    """
    readers = [reader(peek.name) for reader in READERS if reader.recognises(peek.head)]
    by_shape: ByShape | None = None
    number, done_bytes, cut = 0, 0, None

    def feed(number: int, line: str) -> None:
        for part in lines.segments(line):
            text = lines.unwrapped(part)
            for reader in readers:
                reader.feed(number, text)

    def size() -> int:
        return by_shape.chunk_bytes if by_shape else lines.CHUNK_BYTES

    with peek.open() as stream:
        try:
            for coloured in lines.chunks(stream, size):
                chunk = lines.without_colours(coloured)
                if by_shape is None and number and max(peek.size_bytes, done_bytes) >= MANY_BYTES:
                    by_shape = _by_shape(readers, feed)
                done_bytes += len(chunk)
                if by_shape is not None:
                    number += by_shape.read(number, chunk)
                    continue
                for line in lines.split(chunk.decode("utf-8", "replace")):
                    number += 1
                    feed(number, line)
        except (EOFError, OSError, ValueError) as error:
            cut = error
    summed = by_shape.finish() if by_shape else 0
    run = merge([reader.finish() for reader in readers])
    records = len(run.decodes) + len(run.prefills) + len(run.events)
    damaged = sum(reader.book.damaged for reader in readers)
    note = f"{summed:,} of its lines are kept as sums" if summed else None
    file = EvidenceFile(path=peek.name, kind="server log", note=note, records=records, damaged=damaged)
    doubts = run.doubts
    if cut is not None:
        text = f"{peek.name} breaks off after line {number}: {cut}"
        doubts += (ReadingDoubt(topic="damaged-file", text=text),)
    return msgspec.structs.replace(run, files=(file,), doubts=doubts)


def _by_shape(readers: list[LogReader], feed: Callable[[int, str], None]) -> "ByShape":
    from stepline.sources.logs.by_shape import ByShape  # noqa: PLC0415  # numpy, only for long logs

    return ByShape(readers, feed)
