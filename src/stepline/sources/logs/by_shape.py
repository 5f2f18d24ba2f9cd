"""Reads a log many lines at a time, by the shapes of its lines; past KEEP records it is kept as sums."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepline.evidence.scheduler import DecodeReport
from stepline.sources.logs import lines
from stepline.sources.logs.numbers import INSTRUMENTS, Floats, to_fields
from stepline.sources.logs.remarks import HINTS
from stepline.sources.logs.shapes import Piece, Rows, Shapes

if TYPE_CHECKING:
    from stepline.sources.engine import LogReader
    from stepline.sources.logs.thin import Thinner

KEEP = 30_000
"""Records kept one by one from the opening of a log: four hours of a server at two lines a second."""
SUMMED_CHUNK_BYTES = 4 << 20


class ByShape:
    """Reads the rest of a log whose opening `feed` read line by line into the books of `readers`.

    Every line that some template reads makes the record that `feed` would make. Others reach `feed` unless
    they have no word that any reader, or the search for remarks, looks for.
    """

    def __init__(self, readers: Sequence["LogReader"], feed: Callable[[int, str], None]) -> None:
        self._books = [reader.book for reader in readers]
        self._feed = feed
        marks = [*HINTS, *(mark for reader in readers for mark in reader.MARKS)]
        self._shapes = Shapes([reader.TEMPLATES for reader in readers], marks)
        self._thinners: list[Thinner] = []
        self._summed = 0
        self._thin_when_long()

    @property
    def chunk_bytes(self) -> int:
        """How much to read at a time."""
        return SUMMED_CHUNK_BYTES if self._thinners else lines.CHUNK_BYTES

    def read(self, number: int, chunk: bytes) -> int:
        """Read whole lines, of which `number` stood before; how many they are."""
        ends = [(len(book.decodes), len(book.prefills)) for book in self._books]
        piece = self._shapes.sort(chunk)
        # A line on drafts adds to the record of the interval before it, so intervals are records first.
        single: list[Rows] = []
        summed: list[Rows] = []
        for rows in piece.rows:
            kept = not self._thinners or rows.group.instrument == "interval"
            (single if kept else summed).append(rows)
        self._take(number, piece, single)
        self._sum(number, piece, summed)
        for thinner, mark in zip(self._thinners, ends, strict=False):
            thinner.take_records(*mark)
            thinner.end_piece()
        self._thin_when_long()
        return len(piece.starts)

    def begin(self, number: int, line: str) -> None:
        """Take a line that may begin a start: no sum crosses it, and a new start has its records one by one again."""
        starts = [len(book.earlier) for book in self._books]
        for thinner in self._thinners:
            thinner.end_stretch()
        self._feed(number, line)
        if starts != [len(book.earlier) for book in self._books]:
            self._summed += sum(thinner.lines for thinner in self._thinners)
            self._thinners = []

    def finish(self) -> int:
        """How many lines are kept as sums."""
        for thinner in self._thinners:
            thinner.end_stretch()
        return self._summed + sum(thinner.lines for thinner in self._thinners)

    def _take(self, number: int, piece: Piece, single: list[Rows]) -> None:
        """Records and lines to be looked at, in the order of the log."""
        found = {
            at: (rows, index, fields)
            for rows in single
            for index, (at, fields) in enumerate(
                zip(rows.lines.tolist(), to_fields(rows.columns), strict=True)
            )
        }
        for at in sorted([*found, *piece.look]):
            if at not in found:
                self._feed(number + at + 1, piece.line(at))
                continue
            rows, index, fields = found[at]
            group, book = rows.group, self._books[rows.group.reader]
            if group.record is DecodeReport:
                fields["instrument"] = group.instrument
            book.add(
                group.record(
                    seq=book.next_seq(),
                    origin=book.at(number + at + 1),
                    time_s=piece.time_s(rows, index),
                    **fields,
                )
            )

    def _sum(self, number: int, piece: Piece, summed: list[Rows]) -> None:
        last: dict[int, Rows] = {}
        for rows in sorted(summed, key=lambda rows: int(rows.lines[-1])):
            group, count = rows.group, len(rows.lines)
            fields: dict[str, Floats] = {**rows.columns, "number": rows.lines + np.float64(number + 1)}
            if group.record is DecodeReport:
                fields["instrument"] = np.full(count, float(INSTRUMENTS.index(group.instrument)))
                fields.setdefault("ranks_summed", np.ones(count))
            self._thinners[group.reader].add(group.record, fields)
            last[group.reader] = rows
        for reader, rows in last.items():
            self._thinners[reader].reach(piece.time_s(rows, -1))

    def _thin_when_long(self) -> None:
        if not self._thinners and any(len(b.decodes) + len(b.prefills) > KEEP for b in self._books):
            from stepline.sources.logs.thin import Thinner  # noqa: PLC0415  # polars, only for very long logs

            self._thinners = [Thinner(book) for book in self._books]
