"""Reads a PyTorch profiler trace (Kineto's Chrome trace JSON, plain or gzip) into columns.

In one bounded pass.
"""

import gc
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from stepline.errors import UnreadableEvidence
from stepline.evidence.trace import TraceDoubt
from stepline.evidence.trace_arrays import RawTrace
from stepline.sources.readers.torch_trace import header
from stepline.sources.readers.torch_trace.columns import Columns, fractional, large_times
from stepline.sources.readers.torch_trace.events import EVENT_EDGE, decode, decode_patiently
from stepline.sources.readers.torch_trace.stream import CutShort, pieces

_LIST_START = re.compile(rb'"traceEvents"\s*:\s*\[')
_HEADER_LIMIT = 64 << 20
_EDGE_REACH = 1 << 12
"""How far back from a piece's end the last event edge is looked for before the whole piece is searched."""

Progress = Callable[[int], None]


def read(path: Path, progress: Progress | None = None, part: tuple[int, int] = (0, 1)) -> RawTrace:
    """Read one trace file; damaged parts are skipped, counted and named in the doubts.

    Args:
        path: the file; its content decides between plain and gzip.
        progress: called with the decompressed bytes read so far.
        part: (k, n) decodes every n-th piece from the k-th on, for n processes to share the work.

    Raises:
        UnreadableEvidence: when the file holds no trace at all.
    """
    collecting = gc.isenabled()
    gc.disable()  # events are acyclic; the collector would scan them for nothing
    try:
        reading = _Reading(path, part)
        reading.run(progress)
        return reading.result()
    finally:
        if collecting:
            gc.enable()


class _Reading:
    """The state of one pass over a file."""

    def __init__(self, path: Path, part: tuple[int, int]) -> None:
        self.path, self.part, self.pieces = path, part, 0
        self.columns = Columns()
        self.head: bytes | None = None
        self.tail: bytes | None = None
        self.text_times = self._decided = False
        self.events = self.skipped = self.raw_bytes = 0
        self.cut: str | None = None

    def run(self, progress: Progress | None) -> None:
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
        """Decode a run of events; the patient way where the fast one fails, and for the end of the list."""
        self.pieces += 1
        if (self.pieces - 1) % self.part[1] != self.part[0]:
            self.tail = b"" if last else self.tail  # its own process says how the list ends
            return
        text = b"".join((b"[", *parts, b"]"))
        events: list[Any] | None = None
        if not last:
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                events = self._exact(text)
        if events is None:
            body = text[1:-1]
            events, broken, self.tail = decode_patiently(body, text_times=self.text_times)
            if self._wants_text(events, body):
                events, broken, self.tail = decode_patiently(body, text_times=True)
            cut_off = last and self.tail is None  # then the last piece is no damage, only unfinished
            self.skipped += len(broken[:-1] if cut_off else broken)
        self.events += len(events)
        self.columns.add(events)

    def _exact(self, text: bytes) -> list[Any]:
        """Events with times as floats, or as text once floats would lose nanoseconds."""
        events = decode(text, text_times=self.text_times)
        return decode(text, text_times=True) if self._wants_text(events, text) else events

    def _wants_text(self, events: list[Any], body: bytes) -> bool:
        """Whether these events must be decoded again with times as text; decided at the first large times."""
        if self._decided or not large_times(events):
            return False
        self._decided = True
        self.text_times = fractional(body)
        return self.text_times

    def result(self) -> RawTrace:
        """The columns, what the file says of itself, and what was wrong with it."""
        said = header.parse(self.head or b"", self.tail or b"")
        rank, world = header.rank(said, self.path.name)
        base = said.get("baseTimeNanoseconds")
        return RawTrace(
            file=str(self.path),
            rank=rank,
            world_size=world,
            base_ns=base if isinstance(base, int) else None,
            devices=header.devices(said),
            with_stack=header.flag(said, "with_stack"),
            record_shapes=header.flag(said, "record_shapes"),
            gpu=self.columns.gpu(),
            calls=self.columns.calls(),
            operators=self.columns.operators(),
            frames=self.columns.spans("frames"),
            marks=self.columns.spans("marks"),
            overheads=self.columns.spans("overheads"),
            strings=list(self.columns.strings),
            events=self.events,
            skipped=self.skipped,
            raw_bytes=self.raw_bytes,
            doubts=tuple(self._doubts()),
        )

    def _doubts(self) -> list[TraceDoubt]:
        doubts = []
        if self.cut is not None or self.tail is None:
            text = (
                f"the file is cut short ({self.cut or 'the event list has no end'}): {self.events:,} "
                "whole events were read"
            )
            doubts.append(TraceDoubt(topic="truncated", text=text))
        if self.skipped:
            text = (
                f"{self.skipped:,} of {self.events + self.skipped:,} events could not be read and "
                "were left out"
            )
            doubts.append(TraceDoubt(topic="damaged", text=text))
        if self.columns.odd_times:
            text = (
                f"{self.columns.odd_times:,} events have impossible times (unset, negative or over "
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
