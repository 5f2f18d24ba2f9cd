"""One pass over a trace file: where the event list begins, its whole events block by block, what follows it."""

import re
from collections.abc import Callable
from pathlib import Path

from stepline.errors import UnreadableEvidence
from stepline.evidence.trace import TraceDoubt
from stepline.evidence.trace_arrays import Calls, Column, GpuWork, Operators, RawTrace, Spans
from stepline.sources.readers.torch_trace import header
from stepline.sources.readers.torch_trace.arguments import triples
from stepline.sources.readers.torch_trace.columns import COLUMNS, TABLES
from stepline.sources.readers.torch_trace.events import EVENT_EDGE
from stepline.sources.readers.torch_trace.helper import CannotShare, Helper
from stepline.sources.readers.torch_trace.joining import joined
from stepline.sources.readers.torch_trace.share import Share
from stepline.sources.readers.torch_trace.stream import CutShort, pieces

_LIST_START = re.compile(rb'"traceEvents"\s*:\s*\[')
_HEADER_LIMIT = 64 << 20
_EDGE_REACH = 1 << 12
"""How far back from a piece's end the last event edge is looked for before the whole piece is searched."""


def read(path: Path, progress: Callable[[int], None] | None = None, helper: Helper | None = None) -> RawTrace:
    """As `torch_trace.read`; the helper decodes whatever it is free for.

    Raises:
        UnreadableEvidence: when the file holds no trace at all.
        CannotShare: when only one process can read this file.
    """
    reading = _Reading(path, helper)
    reading.run(progress)
    return reading.result()


class _Reading:
    """The state of one pass over a file."""

    def __init__(self, path: Path, helper: Helper | None) -> None:
        self.path, self.helper = path, helper
        self.share = Share()
        self.head: bytes | None = None
        self.tail: bytes | None = None
        self.blocks = self.raw_bytes = 0
        self.cut: str | None = None

    def run(self, progress: Callable[[int], None] | None) -> None:
        """Walk the file once; what follows the last whole event of a piece waits for the next piece."""
        rest = b""
        try:
            for piece in pieces(self.path):
                self.raw_bytes += len(piece)
                if self.head is None:
                    rest += piece
                    if (start := self._list_start(rest)) is None:
                        continue
                    rest, piece = b"", rest[start:]  # noqa: PLW2901 - the rest is the first piece
                if self.tail is not None:
                    self.tail, rest = self.tail + rest + piece, b""
                else:
                    rest = self._take_whole(rest, piece)
                if progress:
                    progress(self.raw_bytes)
        except CutShort as cut:
            self.cut = str(cut)
        if self.head is None:
            raise UnreadableEvidence(
                f"{self.path} is not a PyTorch profiler trace: it has no traceEvents list"
            )
        if self.tail is None:
            self._take(rest, last=True)

    def _take_whole(self, rest: bytes, piece: bytes) -> bytes:
        """Take the whole events of rest and piece; returns the begun one."""
        edge = _last_edge(piece)
        if edge is None:  # an event longer than the piece, or an edge across its start
            rest, piece = b"", rest + piece
            if (edge := _last_edge(piece)) is None:
                return piece
        self._take(rest, memoryview(piece)[: edge[0]], b"}")
        return b"{" + piece[edge[1] :]

    def _list_start(self, content: bytes) -> int | None:
        """Where the first event may stand, once the start of the list has come."""
        if match := _LIST_START.search(content):
            self.head = content[: match.start()]
            return match.end()
        if (stripped := content.lstrip()).startswith(b"["):
            self.head = b""
            return len(content) - len(stripped) + 1
        if len(content) > _HEADER_LIMIT:
            raise UnreadableEvidence(
                f"{self.path} is not a PyTorch profiler trace: no traceEvents list in its first 64 MB"
            )
        return None

    def _take(self, *parts: bytes | memoryview, last: bool = False) -> None:
        """Decode a run of events, here or in the helper; the end of the list always here."""
        number, self.blocks = self.blocks, self.blocks + 1
        parts = (b"[", *parts, b"]")
        if last or not (self.helper and self.helper.take(number, parts)):
            self.tail = self.share.take(number, b"".join(parts), last=last)

    def result(self) -> RawTrace:
        """The columns, what the file says of itself, and what was wrong with it."""
        answers = [self.share.answer(), *([self.helper.finish()] if self.helper else [])]
        if any(answer.ended for answer in answers[1:]):
            raise CannotShare  # the blocks after that were no events
        strings, rows = joined([(answer.strings, answer.blocks) for answer in answers])
        tables: dict[str, dict[str, Column]] = {
            table: dict(zip(COLUMNS[table], rows.pop(table), strict=True)) for table in TABLES
        }
        for side in ("grid", "block"):
            tables["gpu"][side] = triples(strings, tables["gpu"][side])
        said = header.parse(self.head or b"", self.tail or b"")
        rank, world = header.rank(said, self.path.name)
        base = said.get("baseTimeNanoseconds")
        events, skipped = sum(answer.events for answer in answers), sum(answer.skipped for answer in answers)
        return RawTrace(
            file=str(self.path),
            rank=rank,
            world_size=world,
            base_ns=base if isinstance(base, int) else None,
            devices=header.devices(said),
            with_stack=header.flag(said, "with_stack"),
            record_shapes=header.flag(said, "record_shapes"),
            gpu=GpuWork(**tables["gpu"]),
            calls=Calls(**tables["calls"]),
            operators=Operators(**tables["operators"]),
            frames=Spans(**tables["frames"]),
            marks=Spans(**tables["marks"]),
            overheads=Spans(**tables["overheads"]),
            strings=strings,
            events=events,
            skipped=skipped,
            raw_bytes=self.raw_bytes,
            doubts=tuple(self._doubts(events, skipped, sum(answer.odd_times for answer in answers))),
        )

    def _doubts(self, events: int, skipped: int, odd_times: int) -> list[TraceDoubt]:
        doubts = []
        if self.cut is not None or self.tail is None:
            text = (
                f"the file is cut short ({self.cut or 'the event list has no end'}): {events:,} "
                "whole events were read"
            )
            doubts.append(TraceDoubt(topic="truncated", text=text))
        if skipped:
            text = f"{skipped:,} of {events + skipped:,} events could not be read and were left out"
            doubts.append(TraceDoubt(topic="damaged", text=text))
        if odd_times:
            text = (
                f"{odd_times:,} events have impossible times (unset, negative or over "
                "ten minutes) and were left out"
            )
            doubts.append(TraceDoubt(topic="times", text=text))
        return doubts


def _last_edge(content: bytes) -> tuple[int, int] | None:
    """The last place between two events, looked for near the end first."""
    for begin in (max(0, len(content) - _EDGE_REACH), 0):
        edge = None
        for edge in EVENT_EDGE.finditer(content, begin):  # noqa: B007 - the last one counts
            pass
        if edge is not None:
            return edge.start(), edge.end()
    return None
