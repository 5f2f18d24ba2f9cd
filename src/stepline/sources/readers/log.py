"""Server logs of any known engine, plain or compressed, in one pass and in bounded memory."""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Protocol

import msgspec

from stepline.evidence.merge import merge
from stepline.evidence.run import EvidenceFile, ReadingDoubt, Run
from stepline.sources import lines
from stepline.sources.engines.dynamo import DynamoLog
from stepline.sources.engines.llama_cpp import LlamaCppLog
from stepline.sources.engines.lmdeploy import LmdeployLog
from stepline.sources.engines.sglang.log import SglangLog
from stepline.sources.engines.tensorrt_llm import TensorRtLlmLog
from stepline.sources.engines.tgi import TgiLog
from stepline.sources.engines.vllm.log import VllmLog
from stepline.sources.logbook import LogBook
from stepline.sources.peek import Peek
from stepline.sources.template import Templates

if TYPE_CHECKING:
    from stepline.sources.readers.by_shape import ByShape


class Dialect(Protocol):
    """One engine's way to log."""

    MARKS: ClassVar[tuple[str, ...]]
    """A line without any of these, and that is no remark, tells it nothing."""
    TEMPLATES: ClassVar[Templates | None]
    """Reads many lines at a time; None where no log of this engine grows so long."""
    book: LogBook

    def __init__(self, file: str) -> None: ...

    @staticmethod
    def recognises(head: bytes) -> bool:
        """True when the opening bytes hold a line only this engine writes."""

    def feed(self, number: int, line: str) -> None:
        """Take one line."""

    def finish(self) -> Run:
        """Everything read."""


DIALECTS: tuple[type[Dialect], ...] = (
    SglangLog,
    VllmLog,
    TensorRtLlmLog,
    LlamaCppLog,
    LmdeployLog,
    TgiLog,
    DynamoLog,
)
MANY_BYTES = 4 << 20
"""From a log of this size on, importing numpy and learning shapes pays off; its opening is read line by line still."""


def recognises(peek: Peek) -> bool:
    """True when some engine knows a line of the opening."""
    return not peek.binary and any(dialect.recognises(peek.head) for dialect in DIALECTS)


def read_log(peek: Peek) -> Run:
    """Read a whole log; what stands before a damaged tail is kept and the damage named.

    Where two engines wrote into one file, each reads its own lines, and their two names are a contradiction.
    A short log is read line by line, a longer one many lines at a time.
    """
    dialects = [dialect(peek.name) for dialect in DIALECTS if dialect.recognises(peek.head)]
    by_shape: ByShape | None = None
    number, done_bytes, cut = 0, 0, None

    def feed(number: int, line: str) -> None:
        for part in lines.segments(line):
            text = lines.unwrapped(part)
            for dialect in dialects:
                dialect.feed(number, text)

    def size() -> int:
        return by_shape.chunk_bytes if by_shape else lines.CHUNK_BYTES

    with peek.open() as stream:
        try:
            for coloured in lines.chunks(stream, size):
                chunk = lines.without_colours(coloured)
                if by_shape is None and number and max(peek.size_bytes, done_bytes) >= MANY_BYTES:
                    by_shape = _by_shape(dialects, feed)
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
    run = merge([dialect.finish() for dialect in dialects])
    records = len(run.decodes) + len(run.prefills) + len(run.events)
    damaged = sum(dialect.book.damaged for dialect in dialects)
    note = f"{summed:,} of its lines are kept as sums" if summed else None
    file = EvidenceFile(path=peek.name, kind="server log", note=note, records=records, damaged=damaged)
    doubts = run.doubts
    if cut is not None:
        text = f"{peek.name} breaks off after line {number}: {cut}"
        doubts += (ReadingDoubt(topic="damaged-file", text=text),)
    return msgspec.structs.replace(run, files=(file,), doubts=doubts)


def _by_shape(dialects: list[Dialect], feed: Callable[[int, str], None]) -> "ByShape":
    from stepline.sources.readers.by_shape import ByShape  # noqa: PLC0415  # numpy, only for long logs

    return ByShape(dialects, feed)
