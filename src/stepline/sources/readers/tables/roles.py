"""What each column of a table is: a measurement, a load, a state, or what tells servers and workloads apart.

Told from names and values, never from where a column stands.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from stepline.facts.levers import find_lever
from stepline.facts.settings.move import ASSIGNED, assigned, is_judged
from stepline.sources.quantities.cells import cell
from stepline.sources.quantities.quantity import Quantity, parse
from stepline.sources.quantities.split import split
from stepline.sources.quantities.words import column_words

Row = Mapping[str, Any]

MEASURES = frozenset(
    (
        *("token_rate", "request_rate", "tpot", "ttft", "itl", "chunk_gap", "token_gap", "e2e", "step"),
        *("client_queue", "decode_time", "prefill_time", "queue_time"),
    )
)
"""What can be compared between servers."""
LOADS = frozenset(("concurrency", "running", "context", "input_tokens", "output_tokens", "offered_rate"))
CENTRAL = (None, "mean", "p50", "low", "high")
"""Statistics that speak of what is usual."""
BEST = ("token_rate", "tpot", "step", "itl", "e2e", "request_rate", "decode_time")
"""What two servers are compared by: decode before the whole."""


SOME = 400
"""Rows of a long table that are looked at to tell what a column is."""


class Column(NamedTuple):
    """One column that says a quantity."""

    name: str
    quantity: Quantity
    words: str
    """Words that tell it from another column of the same quantity; empty where none are needed."""

    @property
    def place(self) -> tuple[str, tuple[tuple[str, float], ...]]:
        """Which server and load of several in one row it speaks of."""
        return self.words, self.quantity.at


class Roles(NamedTuple):
    """The columns of a table by role, each list in the order of the names."""

    measures: tuple[Column, ...]
    loads: tuple[Column, ...]
    others: tuple[Column, ...]
    """States, counts and counters."""
    labels: tuple[str, ...]
    """What tells servers apart."""
    maybes: tuple[str, ...]
    """What might: rows that differ in it are compared with nothing."""
    workloads: tuple[str, ...]
    repeats: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def says_something(self) -> bool:
        """True where a quantity is measured."""
        return bool(self.measures or self.others)


def roles_of(rows: Sequence[Row]) -> Roles:
    """Sort the columns of these rows."""
    names = sorted({name for row in rows for name in row})
    known: dict[str, Quantity] = {}
    lists: dict[str, list[str]] = defaultdict(list)
    parsed = {name: _quantity(name, rows) for name in names}
    configured = _configured(parsed)
    for name in names:
        quantity = parsed[name]
        if _is_setting(name):
            lists["label"].append(name)
        elif quantity.what is not None and name not in configured:
            known[name] = quantity
        else:
            lists[_role(name, rows, configured)].append(name)
    columns = _columns(known)
    return Roles(
        measures=tuple(c for c in columns if c.quantity.what in MEASURES),
        loads=tuple(sorted((c for c in columns if c.quantity.what in LOADS), key=_asked_first)),
        others=tuple(c for c in columns if c.quantity.what not in MEASURES | LOADS),
        labels=tuple(lists["label"]),
        maybes=tuple(lists["maybe"]),
        workloads=tuple(lists["workload"]),
        repeats=tuple(lists["repeat"]),
        unknown=tuple(lists["unknown"]),
    )


def _quantity(name: str, rows: Sequence[Row]) -> Quantity:
    """What a column measures; nothing where its cells are words."""
    quantity = head_of(name)
    if quantity.what in ("graph", "start", "end", "time"):
        return quantity
    said = [row[name] for row in _some(rows) if row.get(name) not in (None, "")]
    numbers = sum(cell(value, decimal_comma=True) is not None for value in said)
    return quantity if numbers and 2 * numbers >= len(said) else Quantity(name=name)


def _some(rows: Sequence[Row]) -> Sequence[Row]:
    """Rows enough to tell what a column holds."""
    return rows if len(rows) <= SOME else rows[:: len(rows) // SOME]


def head_of(name: str) -> Quantity:
    """What a column measures by its name; the words of a setting that it assigns name an arm and no quantity."""
    found = assigned(name)
    if found is None:
        return parse(name)
    bare = parse(ASSIGNED.sub("", name).strip(" ()[]"))
    return msgspec.structs.replace(bare, name=name, arm=(*bare.arm, *found))


def _is_setting(name: str) -> bool:
    """True for an engine's own name of a setting, with words that no measured quantity has."""
    quantity = parse(name)
    return bool(quantity.unknown or quantity.refused) and is_judged(name)


def _configured(parsed: Mapping[str, Quantity]) -> set[str]:
    """Columns that state a setting under a quantity's name: a cap beside no other batch, a context beside a live one.

    `max_running_requests` is the cap, unless the batch stands there by mean or median too: then it is the largest seen.
    """
    whats = defaultdict(set)
    for quantity in parsed.values():
        whats[quantity.what].add(quantity.statistic)
    live = any(dict(q.at).get("context") for q in parsed.values()) or "input_tokens" in whats
    found = set()
    for name, quantity in parsed.items():
        words = split(name)
        if quantity.what == "running" and quantity.statistic == "max" and not whats["running"] - {"max"}:
            found.add(name)
        if quantity.what == "context" and "length" in words and (live or len(whats["context"]) > 1):
            found.add(name)
        if quantity.what == "context" and quantity.statistic == "max":
            found.add(name)
    return found


def _role(name: str, rows: Sequence[Row], configured: set[str]) -> str:
    values = {str(row[name]).strip() for row in _some(rows) if row.get(name) not in (None, "")}
    words = split(name)
    kind = _kind(words)
    said = (cell(value) or cell(value, decimal_comma=True) for value in values)
    numbers = [found.value for found in said if found is not None]
    numeric = len(numbers) == len(values)
    if name in configured or (find_lever(name) is not None and parse(name).refused is None):
        return "label"
    if kind == "repeat" and numeric:
        return "repeat"
    if kind == "workload":
        return "workload"
    if kind == "row_name" or (not numeric and _long(values)):
        return "maybe" if kind == "row_name" and not numeric else "unknown"
    if not numeric:
        return "label"
    whole = all(float(number).is_integer() for number in numbers)
    measured = parse(name).unit is not None or parse(name).refused is not None
    counted = bool({"count", "counts", "num", "number", "samples", "sampled"} & set(words))
    return "maybe" if whole and not measured and not counted and values else "unknown"


def is_change(name: str) -> bool:
    """True for a column that names what was changed."""
    return _kind(split(name)) == "change"


def _long(values: set[str]) -> bool:
    """True for prose and data in cells."""
    return any(len(value) > 80 or value.startswith(("{", "[")) for value in values)


@cache
def _kind(words: tuple[str, ...]) -> str | None:
    text = " ".join(words)
    for kind, phrases in column_words().items():
        if any(re.search(rf"\b{phrase}\b", text) for phrase in phrases):
            return kind
    return None


def _columns(known: Mapping[str, Quantity]) -> list[Column]:
    """Columns with the words that matter: those in which two columns of one quantity differ.

    A word that nobody contrasts changes nothing. Beside a column without any, one with unknown words is left out: it
    may be anything; words for one of two states, and those of known settings, name an arm.
    """
    alike: dict[tuple[Any, ...], list[tuple[str, Quantity]]] = defaultdict(list)
    for name, quantity in known.items():
        alike[_signature(quantity)].append((name, quantity))
    columns: list[Column] = []
    for members in alike.values():
        words = {quantity.words for _, quantity in members}
        common = _common([quantity for _, quantity in members])
        for name, quantity in members:
            told = " ".join(word for word in (*quantity.arm, *quantity.unknown) if word not in common)
            if len(words) == 1:
                told = ""
            elif told and "" in words and not (quantity.arm or find_lever(told.replace(" ", "_"))):
                continue
            columns.append(Column(name, quantity, told.replace(" ", "_")))
    stated = any(_is_output(c.quantity) for c in columns)
    return [c for c in columns if not (stated and _is_bare(c.quantity))]


def _asked_first(column: Column) -> bool:
    """What a client was told to hold open before what it held open on average."""
    return not (column.quantity.what == "concurrency" and "max" in split(column.name))


def _signature(quantity: Quantity) -> tuple[Any, ...]:
    central = quantity.statistic in CENTRAL
    side = quantity.side if quantity.side in ("input", "both") else None
    engine = quantity.instrument == "engine"
    return quantity.what, side, quantity.per, central or quantity.statistic, quantity.at, engine


def _common(quantities: Sequence[Quantity]) -> set[str]:
    return set.intersection(*({*quantity.arm, *quantity.unknown} for quantity in quantities))


def _is_output(quantity: Quantity) -> bool:
    return quantity.what == "token_rate" and quantity.side == "output" and quantity.per is None


def _is_bare(quantity: Quantity) -> bool:
    """Tokens a second beside output tokens a second: those of prompts are in it, or nobody knows."""
    return quantity.what == "token_rate" and quantity.side is None and quantity.per is None
