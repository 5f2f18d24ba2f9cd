"""Small helpers for reading other tools' JSON: a number or None, never a guess."""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any


def number(document: Any, *names: str) -> float | None:
    """The first finite number among the names; strings of numbers count, "inf", null and booleans do not.

    None too where the document is no object at all.
    """
    if not isinstance(document, Mapping):
        return None
    for name in names:
        value = document.get(name)
        if isinstance(value, bool) or value is None:
            continue
        try:
            found = float(value)
        except (TypeError, ValueError, OverflowError):
            continue
        if math.isfinite(found):
            return found
    return None


def positive(document: Any, *names: str) -> float | None:
    """Like `number`, but zero counts as not measured: the tools write it where they have no sample."""
    return number(document, *names) or None


def whole(document: Any, *names: str) -> int | None:
    """The first finite number among the names, as an integer."""
    value = number(document, *names)
    return None if value is None else int(value)


def at(document: Any, *path: str) -> Any:
    """A nested value, None where any step is missing."""
    for name in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def mean(values: Iterable[float]) -> float | None:
    """Arithmetic mean; None of nothing."""
    held = list(values)
    return sum(held) / len(held) if held else None


def ratio(part: float | None, whole_: float | None) -> float | None:
    """Part / whole where both are known and the whole is not zero."""
    return None if part is None or not whole_ else part / whole_


def word(document: Any, *names: str) -> str | None:
    """The first text among the names, cut to a reasonable length."""
    if not isinstance(document, Mapping):
        return None
    return next(
        (value[:200] for name in names if isinstance(value := document.get(name), str) and value), None
    )


def local_time(stamp: object) -> float | None:
    """`20260611-040937`, as both bench clients write local time, in seconds as if it were UTC."""
    if not isinstance(stamp, str):
        return None
    try:
        return datetime.strptime(stamp, "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
