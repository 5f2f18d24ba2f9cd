"""A quantity with its interval, and the arithmetic that keeps the ends ends."""

from collections.abc import Callable
from typing import NamedTuple


class Estimate(NamedTuple):
    """A value that is not known exactly; `low` and `high` are smallest and largest, whichever of them is good news."""

    middle: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> "Estimate":
        """A value without doubt."""
        return cls(value, value, value)

    def at_most(self, bound: float) -> "Estimate":
        """None of the three above a bound."""
        return self.through(lambda value: min(value, bound))

    def at_least(self, bound: float) -> "Estimate":
        """None of the three below a bound."""
        return self.through(lambda value: max(value, bound))

    def times(self, factor: float) -> "Estimate":
        """All three times a factor of zero or more."""
        return self.through(lambda value: factor * value)

    def through(self, function: Callable[[float], float]) -> "Estimate":
        """A function of it that nowhere falls."""
        return Estimate(function(self.middle), function(self.low), function(self.high))
