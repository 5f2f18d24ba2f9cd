"""What both sides of a comparison measured alike: steps at a running batch, rates at a concurrency."""

from typing import Literal

import msgspec

from stepline.model.change.speedup import Measured


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One level of one instrument, with a value for each run of each side."""

    measure: Literal["time per token", "rate"]
    instrument: str
    level: float
    """Running batch of one rank for a time per token, concurrency of the client for a rate."""
    context: float | None
    """Live context in tokens, where it tells two levels of one batch apart."""
    before: tuple[Measured, ...]
    after: tuple[Measured, ...]
    turn: int | None = None
    """Which of several levels of one kind in a run, counted from 1."""

    @property
    def name(self) -> str:
        """How people call the level."""
        level = f"C = {self.level:g}" if self.measure == "rate" else f"{self.level:g} running"
        if self.turn is not None:
            level = f"{level} ({self.turn})"
        if self.context is None:
            return level
        tokens = f"{self.context / 1000:.1f}k" if self.context >= 1000 else f"{self.context:.0f}"
        return f"{level}, {tokens} tok"


class Pairs(msgspec.Struct, frozen=True, kw_only=True):
    """The pairs of one measure, what was left out and why, and in what the sides are unlike."""

    pairs: tuple[Pair, ...] = ()
    left_out: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    """Why levels that both sides have are no pair; a comparison without any pair is refused with the first."""
    instruments: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """What each side measured with, usable or not for a pair."""
    other_load: str | None = None
    """Why the two sides were loaded differently, where that is known: then nothing of them is compared."""
    doubts: tuple[str, ...] = ()
