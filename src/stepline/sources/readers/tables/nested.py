"""JSON of any nesting as rows: lists of objects, columns of equal length, and objects within objects."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stepline.sources.quantities.quantity import is_unnamed_time, parse
from stepline.sources.readers.tables.kernels import is_summary

MAX_DEPTH = 12
MAX_ROWS = 200_000
MAX_NAMES = 2_000

Row = dict[str, Any]
_SERIES = re.compile(r'[{].*="')
"""A key such as `engine:gauge_name{engine="0"}`."""


def rows_in(document: Any) -> list[tuple[str, Row]]:
    """(place, row) for each object that measures something; what stands above a row belongs to it too."""
    found: list[tuple[str, Row]] = []
    for place, row in _rows(document, {}, "", 0):
        if len(found) >= MAX_ROWS:
            break
        told = [parse(name) for name in row]
        if (
            any(one.what is not None for one in told)
            or sum(map(is_unnamed_time, told)) >= 2
            or is_summary(list(row))
        ):
            found.append((place, row))
    return found


def _rows(document: Any, above: Row, place: str, depth: int) -> Iterator[tuple[str, Row]]:
    if depth > MAX_DEPTH:
        return
    if isinstance(document, list):
        for index, item in enumerate(document):
            if isinstance(item, Mapping):
                yield from _rows(item, above, f"{place}[{index}]", depth + 1)
        return
    if not isinstance(document, Mapping) or any(_SERIES.search(str(key)) for key in document):
        return  # samples of Prometheus by series are no rows
    if columns := _columns(document):
        yield from ((f"{place}[{index}]", {**above, **row}) for index, row in enumerate(columns))
        return
    own, lists = _flat(document, "", depth)
    row = {**above, **own}
    branches = {name: inner for name, inner in lists.items() if _objects(inner)}
    if not branches:
        yield place or "", row
        return
    scalars = {name: value for name, value in row.items() if not isinstance(value, list)}
    for name, inner in branches.items():
        yield from _rows(inner, scalars, f"{place}.{name}" if place else name, depth + 1)


def _flat(document: Mapping[Any, Any], before: str, depth: int) -> tuple[Row, dict[str, list[Any]]]:
    """Values of objects within an object by their path, and the lists among them."""
    values: Row = {}
    lists: dict[str, list[Any]] = {}
    for key, value in document.items():
        name = f"{before} {key}".strip()
        if isinstance(value, Mapping) and any(_SERIES.search(str(one)) for one in value):
            continue
        if isinstance(value, Mapping) and depth < MAX_DEPTH:
            inner, more = _flat(value, name, depth + 1)
            values.update(inner)
            lists.update(more)
        elif isinstance(value, list):
            lists[name] = value
        elif len(values) < MAX_NAMES:
            values[name] = value
    return values, lists


def _objects(items: Sequence[Any]) -> bool:
    return bool(items) and all(isinstance(item, Mapping) for item in items)


def _columns(document: Mapping[Any, Any]) -> list[Row]:
    """Rows of an object whose values are lists of one length: a table by columns."""
    lists = {str(name): value for name, value in document.items() if isinstance(value, list) and value}
    lengths = {len(value) for value in lists.values()}
    if len(lists) < 2 or len(lists) < len(document) or len(lengths) != 1 or lengths.pop() > MAX_ROWS:
        return []
    if any(isinstance(item, Mapping | list) for value in lists.values() for item in value):
        return []
    return [dict(zip(lists, items, strict=True)) for items in zip(*lists.values(), strict=True)]
