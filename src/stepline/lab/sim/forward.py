"""What one forward of the simulated engine did: the only thing its surfaces see of the scheduler's work."""

from dataclasses import dataclass, field

from stepline.lab.sim.prompt import Request
from stepline.lab.sim.world import Cost

Made = list[tuple[Request, int]]
"""Requests that got tokens, and how many."""


@dataclass(frozen=True, slots=True)
class Forward:
    """One forward; times are seconds of the engine's clock, counts are as they were when it ended."""

    kind: str
    """`prefill`, `decode`, or `mixed` where an engine puts both into one forward."""
    start_s: float
    end_s: float
    cost: Cost
    batch: int
    """Requests that decoded."""
    running_before: int
    """Requests that were decoding when a prefill began."""
    graph: bool
    made: Made = field(default_factory=list)
    finished: list[Request] = field(default_factory=list)
    retracted: list[Request] = field(default_factory=list)
    new_sequences: int = 0
    new_tokens: int = 0
    cached_tokens: int = 0
    repeated_tokens: int = 0
    """Of the new tokens, those that a retraction made the engine compute again."""
    pending_tokens: int = 0
    """Tokens of a long prompt that later chunks will take."""
    used_tokens: int = 0
    queued: int = 0
    live_tokens: int = 0
    """Tokens that the decoding requests attended to."""
    ratio: float = 0.0
    """The scheduler's guess of how much of its maximum an answer will use."""
    ratio_before: float = 0.0
    drafted: int = 0
