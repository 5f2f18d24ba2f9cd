"""Reads the numbers of many lines of a few templates at once, as columns."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepline.sources.logs.template import Number, Template, Templates

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

FLOATS = frozenset(
    (
        *("tok_s", "accept_length", "accept_rate", "forward_busy"),
        *("pool_usage", "step_ms", "prefill_tok_s", "prefix_hit_share"),
    )
)
"""Fields of records that are no counts."""
INSTRUMENTS = ("interval", "step", "window")
"""In columns an instrument is its place here."""


class Table(NamedTuple):
    """One number of every template: its digits stand at `offsets` and count `weights`, a row for each digit.

    Numbers with fewer digits than others have weight 0 in the rest; a template without the number has the divisor NaN.
    """

    offsets: Whole
    weights: Whole
    zero: Whole
    """What the digits add up to as characters when all are 0."""
    power: Floats
    divisor: Floats

    def read(self, text: NDArray[np.uint8], starts: Whole, places: Whole) -> Floats:
        """The number in each of the lines that begin at `starts`, by the template at its place."""
        divisor = self.divisor.take(places)
        having = np.flatnonzero(divisor == divisor)  # noqa: PLR0124  # not NaN
        if len(having) < len(places):
            found = np.full(len(places), np.nan)
            if len(having):
                found[having] = self.read(text, starts[having], places[having])
            return found
        value = -self.zero.take(places)
        for offset, weight in zip(self.offsets, self.weights, strict=True):
            value += text.take(starts + offset.take(places)) * weight.take(places)
        # In two steps, as a number that is read and then divided: so both round alike.
        read: Floats = value / self.power.take(places) / divisor
        return read


class Group:
    """Templates of one reader that make the same kind of record."""

    def __init__(self, reader: int, templates: Templates, first: Template) -> None:
        self.reader = reader
        self.templates = templates
        self.record = first.record
        self.instrument = first.instrument
        self._prefixes: list[tuple[int, int]] = []
        self._new: list[Template] = []
        self._tables: dict[str, Table] = {}
        self._graphs: Floats = np.empty(0)

    def add(self, template: Template) -> int:
        """Take one more template; its place among those of the group."""
        self._prefixes.append(template.prefix)
        self._new.append(template)
        return len(self._prefixes) - 1

    def prefix(self, place: int) -> tuple[int, int]:
        """Where time and rank stand in a line of the template at this place."""
        return self._prefixes[place]

    def read(self, text: NDArray[np.uint8], starts: Whole, places: Whole) -> dict[str, Floats]:
        """Columns of the lines that begin at `starts`, each by the template at its place; NaN where it has none."""
        self._table_new()
        columns = {name: table.read(text, starts, places) for name, table in self._tables.items()}
        columns["graph"] = self._graphs.take(places)
        self.templates.complete(columns)
        return columns

    def _table_new(self) -> None:
        """Bring the tables up to all templates."""
        new, before = self._new, len(self._prefixes) - len(self._new)
        if not new:
            return
        for name in {**self._tables, **{name: None for template in new for name in template.numbers}}:
            table = _table([template.numbers.get(name) for template in new])
            self._tables[name] = _joined(self._tables.get(name) or _table([None] * before), table)
        graphs = [np.nan if template.graph is None else float(template.graph) for template in new]
        self._graphs = np.append(self._graphs, graphs)
        self._new = []


def to_fields(columns: dict[str, Floats]) -> list[dict[str, Any]]:
    """Columns as fields of records, one after the other."""
    lists = [_values(name, column) for name, column in columns.items()]
    return [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]


def _values(name: str, column: Floats) -> list[Any]:
    kind: type = float if name in FLOATS else bool if name == "graph" else int
    return [None if value != value else kind(value) for value in column.tolist()]  # noqa: PLR0124  # NaN


def _table(numbers: list[Number | None]) -> Table:
    """The numbers of one name; None where a template lacks it."""
    known = [one or Number(0, 0, 0, np.nan) for one in numbers]
    start, digits, decimals = np.array([one[:3] for one in known], dtype=np.int64).reshape(-1, 3).T
    count = digits + decimals
    place = np.arange(count.max(initial=0))[:, None]
    weights = np.where(place < count, 10 ** np.maximum(count - 1 - place, 0), 0)
    # The point stands before the first decimal. A digit that counts nothing may be any byte of the line.
    offsets = np.where(place < count, start + place + (place >= digits), 0)
    return Table(
        offsets=offsets,
        weights=weights,
        zero=ord("0") * weights.sum(axis=0),
        power=np.array([float(10**one.decimals) for one in known]),
        divisor=np.array([one.divisor for one in known]),
    )


def _joined(one: Table, other: Table) -> Table:
    digits = max(len(one.offsets), len(other.offsets))
    filled = [
        table._replace(offsets=_filled(table.offsets, digits), weights=_filled(table.weights, digits))
        for table in (one, other)
    ]
    return Table(*(np.concatenate(parts, axis=-1) for parts in zip(*filled, strict=True)))


def _filled(digits: Whole, count: int) -> Whole:
    """With rows that count nothing, up to so many."""
    return np.pad(digits, ((0, count - len(digits)), (0, 0)))
