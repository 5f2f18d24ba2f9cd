"""Cells of a table as numbers and words; what is not there or not a number is None."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
_SCALES = {"k": 1024.0, "m": 1024.0**2}
"""People write contexts as 8K and 1M, by 1024."""


def number(row: Row, names: Sequence[str]) -> float | None:
    """The first finite number among the columns; thousands commas, per cent signs and 8K are understood."""
    for name in names:
        value = row.get(name)
        if value is None or isinstance(value, bool):
            continue
        if isinstance(value, int | float):
            return float(value) if math.isfinite(value) else None
        cell = str(value).strip().rstrip("%").replace(",", "").lower()
        scale = _SCALES.get(cell[-1:], 1.0)
        try:
            found = float(cell[:-1] if scale != 1.0 else cell) * scale
        except ValueError:
            continue
        return found if math.isfinite(found) else None
    return None


def whole(row: Row, names: Sequence[str]) -> int | None:
    """The first finite number among the columns, as an integer."""
    value = number(row, names)
    return None if value is None else int(value)


def text(row: Row, name: str) -> str:
    """A cell as it was written; empty when absent."""
    value = row.get(name)
    return "" if value is None else str(value).strip()
