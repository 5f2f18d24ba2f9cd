"""Bounds the number of records that a long log makes: windows are kept as sums.

A stretch of the log becomes one record for each rank, running batch, graph mode and kind of window in it.
What is unusual (eager, queued, retracted) has records of its own, so nothing rare is averaged away. Windows
that a step can be read from (same batch as the window before, no prefill between) are summed apart from the
others and come right after a record of their own batch, so that whoever reads them judges them as the
single windows before.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from stepline.evidence.scheduler import DecodeReport, PrefillReport
from stepline.sources.logs.logbook import LogBook
from stepline.sources.logs.numbers import INSTRUMENTS, Floats
from stepline.sources.logs.sums import DECODE_COLUMNS, OPTIONAL, PREFILL_COLUMNS, decode_sums, prefill_sums

STRETCHES = 16
"""After so many stretches the next ones are twice, then four and then eight times as long."""

Columns = dict[str, Floats]
"""Lines by fields of their records, NaN where one is missing; `number` is the line, `instrument` its place in
INSTRUMENTS. A column may be absent."""


class Thinner:
    """Gathers columns of one log and turns each stretch into summed records of its book."""

    def __init__(self, book: LogBook) -> None:
        self._book = book
        self._decodes: list[Columns] = []
        self._prefills: list[Columns] = []
        self._end_s: float | None = None
        self._pieces = 0
        self._stretches = 0
        self.lines = 0
        """Decode and prefill lines that were summed."""

    def take_records(self, decodes_from: int, prefills_from: int) -> None:
        """Move the book's records from these places on into the sums."""
        decodes, prefills = self._book.decodes[decodes_from:], self._book.prefills[prefills_from:]
        del self._book.decodes[decodes_from:], self._book.prefills[prefills_from:]
        if decodes:
            self.add(DecodeReport, _columns_of(decodes, DECODE_COLUMNS))
        if prefills:
            self.add(PrefillReport, _columns_of(prefills, PREFILL_COLUMNS))
        for time_s in [*(record.time_s for record in decodes), *(record.time_s for record in prefills)]:
            self.reach(time_s)

    def add(self, record: type[DecodeReport] | type[PrefillReport], columns: Columns) -> None:
        """Take lines into the sums."""
        (self._decodes if record is DecodeReport else self._prefills).append(columns)
        self.lines += len(columns["number"])

    def reach(self, time_s: float | None) -> None:
        """The stretch goes on to this time: that of its records, for no sum has a time of its own."""
        if time_s is not None:
            self._end_s = time_s if self._end_s is None else max(self._end_s, time_s)

    def end_piece(self) -> None:
        """A piece of the log is read; the stretch ends when it has enough of them."""
        self._pieces += 1
        if self._pieces >= 1 << min(3, self._stretches // STRETCHES):
            self.end_stretch()

    def end_stretch(self) -> None:
        """Write what was gathered into the book."""
        prefills = _frame(self._prefills, PREFILL_COLUMNS)
        for row in prefill_sums(prefills).iter_rows(named=True):
            origin = self._book.at(row.pop("number"))
            self._book.add(PrefillReport(seq=self._book.next_seq(), origin=origin, time_s=self._end_s, **row))
        self._write_decodes(decode_sums(_frame(self._decodes, DECODE_COLUMNS), prefills))
        self._decodes, self._prefills, self._end_s = [], [], None
        self._pieces = 0
        self._stretches += 1

    def _write_decodes(self, sums: pl.DataFrame) -> None:
        for row in sums.iter_rows(named=True):
            origin = self._book.at(row.pop("number"))
            row["instrument"] = INSTRUMENTS[row["instrument"]]
            if row.pop("alone") and row["windows"] > 1:
                row["windows"] -= 1
                first = {**row, "windows": 1}
                self._book.add(
                    DecodeReport(seq=self._book.next_seq(), origin=origin, time_s=self._end_s, **first)
                )
            self._book.add(DecodeReport(seq=self._book.next_seq(), origin=origin, time_s=self._end_s, **row))


def _columns_of(records: Sequence[Any], kinds: Mapping[str, Any]) -> Columns:
    def values(name: str) -> list[Any]:
        if name == "number":
            return [record.origin.line for record in records]
        found = [getattr(record, name) for record in records]
        return [INSTRUMENTS.index(value) for value in found] if name == "instrument" else found

    return {name: np.array(values(name), dtype=np.float64) for name in kinds}


def _frame(parts: list[Columns], kinds: Mapping[str, Any]) -> pl.DataFrame:
    """The columns of several pieces in the order of the log."""
    sizes = [len(part["number"]) for part in parts]
    columns = []
    for name, kind in kinds.items():
        if any(name in part for part in parts):
            found = [part.get(name, np.full(size, np.nan)) for part, size in zip(parts, sizes, strict=True)]
            columns.append(pl.Series(name, np.concatenate(found), nan_to_null=True).cast(kind))
        elif name not in OPTIONAL:
            columns.append(pl.repeat(None, sum(sizes), dtype=kind, eager=True).alias(name))
    return pl.DataFrame(columns).sort("number")
