"""Server logs of any known engine, plain or compressed, in one pass and in bounded memory."""

from typing import Any, ClassVar, Protocol

import msgspec

from stepline.evidence.merge import merge
from stepline.evidence.run import EvidenceFile, ReadingDoubt, Run
from stepline.sources import lines, thin
from stepline.sources.engines.dynamo import DynamoLog
from stepline.sources.engines.llama_cpp import LlamaCppLog
from stepline.sources.engines.lmdeploy import LmdeployLog
from stepline.sources.engines.sglang.log import SglangLog
from stepline.sources.engines.tensorrt_llm import TensorRtLlmLog
from stepline.sources.engines.tgi import TgiLog
from stepline.sources.engines.vllm.log import VllmLog
from stepline.sources.logbook import LogBook
from stepline.sources.peek import Peek
from stepline.sources.remarks import HINTS


class Dialect(Protocol):
    """One engine's way to log."""

    MARKS: ClassVar[tuple[str, ...]]
    """A line without any of these, and that is no remark, tells it nothing."""
    book: LogBook
    bulk: Any
    """Reads frames of lines at a time; None where no log of this engine grows so long."""

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
BULK_CHUNK_BYTES = 4 << 20


def recognises(peek: Peek) -> bool:
    """True when some engine knows a line of the opening."""
    return not peek.binary and any(dialect.recognises(peek.head) for dialect in DIALECTS)


def read_log(peek: Peek) -> Run:
    """Read a whole log; what stands before a damaged tail is kept and the damage named.

    Where two engines wrote into one file, each reads its own lines, and their two names are a contradiction.
    Past thin.KEEP records the log is read many lines at a time and kept as sums.
    """
    dialects = [dialect(peek.name) for dialect in DIALECTS if dialect.recognises(peek.head)]
    thinners: list[thin.Thinner] = []
    number, cut = 0, None

    def size() -> int:
        return BULK_CHUNK_BYTES if thinners else lines.CHUNK_BYTES

    with peek.open() as stream:
        try:
            for chunk in lines.chunks(stream, size):
                text = lines.without_colours(chunk)
                if thinners:
                    number += _feed_in_bulk(dialects, thinners, number, text)
                else:
                    number += _feed(dialects, number, text)
                    if any(len(d.book.decodes) + len(d.book.prefills) > thin.KEEP for d in dialects):
                        thinners = [thin.Thinner(dialect.book) for dialect in dialects]
        except (EOFError, OSError, ValueError) as error:
            cut = error
    for thinner in thinners:
        thinner.end_stretch()
    run = merge([dialect.finish() for dialect in dialects])
    records = len(run.decodes) + len(run.prefills) + len(run.events)
    damaged = sum(dialect.book.damaged for dialect in dialects)
    summed = sum(thinner.lines for thinner in thinners)
    note = f"{summed:,} of its lines are kept as sums" if summed else None
    file = EvidenceFile(path=peek.name, kind="server log", note=note, records=records, damaged=damaged)
    doubts = run.doubts
    if cut is not None:
        text = f"{peek.name} breaks off after line {number}: {cut}"
        doubts += (ReadingDoubt(topic="damaged-file", text=text),)
    return msgspec.structs.replace(run, files=(file,), doubts=doubts)


def _feed(dialects: list[Dialect], number: int, chunk: str) -> int:
    """Read a chunk line by line; how many lines it had."""
    count = 0
    for line in lines.split(chunk):
        count += 1
        for part in lines.segments(line):
            text = lines.unwrapped(part)
            for dialect in dialects:
                dialect.feed(number + count, text)
    return count


def _feed_in_bulk(dialects: list[Dialect], thinners: list[thin.Thinner], number: int, chunk: str) -> int:
    """Read a chunk many lines at a time; what no dialect knows in bulk is read line by line."""
    import polars as pl  # noqa: PLC0415  # only for logs past thin.KEEP records

    split = pl.Series("line", [chunk.removesuffix("\n")]).str.split("\n").explode()
    rest = pl.DataFrame(
        [pl.int_range(number + 1, number + 1 + len(split), eager=True).alias("number"), split]
    )
    ends = [(len(dialect.book.decodes), len(dialect.book.prefills)) for dialect in dialects]
    for dialect, thinner in zip(dialects, thinners, strict=True):
        if dialect.bulk is None:
            continue
        decodes, prefills, rest = dialect.bulk.read(rest)
        thinner.add(decodes, prefills)
    marks = [*HINTS, "HTTP/1", *(mark for dialect in dialects for mark in dialect.MARKS)]
    telling = pl.col("line").str.contains_any(marks)
    fine = pl.col("line").str.contains("HTTP/1", literal=True) & ~pl.col("line").str.contains(
        '" 5', literal=True
    )
    rest = rest.filter(telling & ~fine)
    for at, line in zip(rest["number"].to_list(), rest["line"].to_list(), strict=True):
        for part in lines.segments(line):
            text = lines.unwrapped(part)
            for dialect in dialects:
                dialect.feed(at, text)
    for thinner, mark in zip(thinners, ends, strict=True):
        thinner.take_records(*mark)
        thinner.end_piece()
    return len(split)
