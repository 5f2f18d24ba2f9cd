"""A number that decides, with its unit, its reason and where it comes from.

A module that decides has one table of them, a class of thresholds:

    class T:
        full = Threshold(0.9, "share of the pool", why="Engines hold back room for tokens still to come.")

A comparison reads the bare number, `usage >= T.full`; `stepline explain` prints the rest.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

Number = TypeVar("Number", int, float)


class Threshold(msgspec.Struct, Generic[Number], frozen=True):
    """One number of a table. Read through its table it is the bare value."""

    value: Number
    unit: str
    """What the number counts or compares: "ms", "share of the step", "times the floor"."""
    why: str
    """What the number means where it decides."""
    source: str = "judgement, not calibrated"
    """The measurement, release or arithmetic behind it."""

    def __get__(self, instance: object, owner: type) -> Number:
        return self.value


def table(owner: type) -> Iterator[tuple[str, "Threshold[int] | Threshold[float]"]]:
    """Names and thresholds of a table, in its order; nothing for a class that is none."""
    return ((name, one) for name, one in vars(owner).items() if isinstance(one, Threshold))
