"""Sorts the lines of a chunk by shape: those that a template reads, those to be read one by one, and the rest."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from stepline.sources.logs.lines import unwrapped
from stepline.sources.logs.numbers import Floats, Group, Whole
from stepline.sources.logs.template import MAX_WRAPS, ZEROS, Template, Templates

MAX_SHAPES = 10_000
"""Shapes kept with a template, and as many without: a server makes up to a few thousand, for its numbers come in
several lengths. What comes later is read singly."""
MAX_SHAPE_BYTES = 1 << 10
"""Longer shapes are not kept: batch lines have up to 600 bytes, and prompts differ anyway."""
MANY_BYTES = 8 << 20
"""After so much of unknown shapes, importing polars for its search of many words pays off."""
SKIP, LOOK, FOLLOWED, ACCESS, LEARNED = range(5)
"""What is done with the lines of a shape. FOLLOWED are looked at with the lines after them; of ACCESS the status
decides, which is digits. From LEARNED on the shape has a template."""
UNKNOWN = -1
FOLLOWING = MAX_WRAPS + 1
"""Lines after a FOLLOWED one until it is known to be over."""


class Rows(NamedTuple):
    """Lines of a chunk that one group of templates reads."""

    group: Group
    lines: Whole
    """Their places in the chunk, from 0."""
    places: Whole
    """The places of their templates in the group."""
    columns: dict[str, Floats]
    """A value for each line."""


class Piece(NamedTuple):
    """The lines of a chunk, sorted."""

    chunk: bytes
    starts: Whole
    ends: Whole
    rows: list[Rows]
    look: list[int]
    """Lines to be read one by one."""

    def line(self, at: int) -> str:
        """A line of the chunk."""
        return self.chunk[self.starts[at] : self.ends[at]].decode("utf-8", "replace")

    def time_s(self, rows: Rows, index: int) -> float | None:
        """When a line was written that a template reads."""
        start = int(self.starts[rows.lines[index]])
        begin, end = rows.group.prefix(int(rows.places[index]))
        return rows.group.templates.time_of(
            self.chunk[start + begin : start + end].decode("utf-8", "replace")
        )


class Shapes:
    """Learns shapes as they come; `marks` are words of which a line has one when it may tell something."""

    def __init__(self, readers: Sequence[Templates | None], marks: Iterable[str]) -> None:
        self._readers = [(at, templates) for at, templates in enumerate(readers) if templates]
        self._marks = [_masked(mark) for mark in marks]
        self._kinds: dict[bytes, int] = {}
        self._others = 0
        self._groups: dict[tuple[Any, ...], Group] = {}
        self._group_of, self._place_of = np.full((2, LEARNED), -1)
        """Of each kind its group, and the place of its template in it."""
        self._searched = 0
        self._owed = FOLLOWING
        """So many of the next lines may belong to one before them, perhaps from before the first chunk."""

    def sort(self, chunk: bytes) -> Piece:
        """Sort the lines of the next chunk of the log."""
        shapes = chunk.translate(ZEROS).split(b"\n")
        if not shapes[-1]:
            shapes.pop()
        lengths = np.fromiter(map(len, shapes), np.int64, len(shapes))
        ends = np.cumsum(lengths + 1) - 1
        starts = ends - lengths
        kinds = np.fromiter(map(self._kinds.get, shapes, repeat(UNKNOWN)), np.int64, len(shapes))
        unknown = np.flatnonzero(kinds == UNKNOWN).tolist()
        if unknown:
            met = self._meet({shapes[at]: chunk[int(starts[at]) : int(ends[at])] for at in unknown})
            kinds[unknown] = [met[shapes[at]] for at in unknown]
        self._look_after(kinds)
        access = np.flatnonzero(kinds == ACCESS)
        spans = zip(starts[access].tolist(), ends[access].tolist(), strict=True)
        kinds[access] = [LOOK if _failed(chunk[start:end]) else SKIP for start, end in spans]
        look = np.flatnonzero((kinds == LOOK) | (kinds == FOLLOWED)).tolist()
        return Piece(chunk, starts, ends, self._read(chunk, starts, kinds), look)

    def _read(self, chunk: bytes, starts: Whole, kinds: Whole) -> list[Rows]:
        text = np.frombuffer(chunk, np.uint8)
        group_of, place_of = self._group_of.take(kinds), self._place_of.take(kinds)
        found = []
        for at, group in enumerate(self._groups.values()):
            lines = np.flatnonzero(group_of == at)
            if len(lines):
                places = place_of[lines]
                columns = group.read(text, starts[lines], places)
                found.append(Rows(group, lines, places, columns))
        return found

    def _look_after(self, kinds: Whole) -> None:
        """Lines that may belong to a line before them are looked at, over the end of the chunk if need be."""
        followed = np.flatnonzero(kinds == FOLLOWED).tolist()
        end = 0
        for at, count in [(0, self._owed), *((at + 1, FOLLOWING) for at in followed)]:
            after = kinds[at : at + count]
            after[after != FOLLOWED] = LOOK
            end = at + count
        self._owed = max(0, end - len(kinds))

    def _meet(self, samples: dict[bytes, bytes]) -> dict[bytes, int]:
        """Kinds of new shapes, each with one of its lines."""
        met: dict[bytes, int] = {}
        for (shape, line), telling in zip(samples.items(), self._telling(list(samples)), strict=True):
            kind = self._learn(line) if telling else None
            if kind is not None:
                self._kinds[shape] = kind
            else:
                kind = self._unlearned(line) if telling else ACCESS if b"HTTP/0" in shape else SKIP
                if self._others < MAX_SHAPES and len(shape) <= MAX_SHAPE_BYTES:
                    self._others += 1
                    self._kinds[shape] = kind
            met[shape] = kind
        return met

    def _unlearned(self, line: bytes) -> int:
        text = line.decode("utf-8", "replace")
        return FOLLOWED if any(templates.goes_on(text) for _, templates in self._readers) else LOOK

    def _learn(self, line: bytes) -> int | None:
        """The kind of a line that some reader has a template for."""
        text = line.decode("utf-8", "surrogateescape").rstrip("\r")
        if len(self._group_of) >= MAX_SHAPES or len(line) > MAX_SHAPE_BYTES or "\r" in text:
            return None
        message = unwrapped(text)
        if message is not text and (text.count(message) != 1 or not message.startswith("[")):
            return None  # put together from the fields of a record
        shift = text.index(message)
        for reader, templates in self._readers:
            if template := templates.learn(message):
                return self._keep(reader, templates, template.moved(lambda at: _bytes(text[: shift + at])))
        return None

    def _keep(self, reader: int, templates: Templates, template: Template) -> int:
        made = (reader, template.record, template.instrument)
        group = self._groups.setdefault(made, Group(reader, templates, template))
        at = list(self._groups).index(made)
        self._group_of = np.append(self._group_of, at)
        self._place_of = np.append(self._place_of, group.add(template))
        return len(self._group_of) - 1

    def _telling(self, shapes: list[bytes]) -> list[bool]:
        self._searched += sum(map(len, shapes))
        texts = [shape.decode("utf-8", "replace") for shape in shapes]
        if self._searched < MANY_BYTES:
            return [any(mark in text for mark in self._marks) for text in texts]
        import polars as pl  # noqa: PLC0415

        found: list[bool] = pl.Series(texts).str.contains_any(self._marks).to_list()
        return found


def _masked(text: str) -> str:
    return text.encode().translate(ZEROS).decode()


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _failed(line: bytes) -> bool:
    """True for a line of an access log that may tell of a failed request."""
    return b"HTTP/1" in line and b'" 5' in line
