"""What can be measured next, what it would decide, and what it costs the server."""

from typing import Literal

import msgspec


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """One level of load, or a short profile under a level's load."""

    kind: Literal["level", "profile"]
    concurrency: int
    input_tokens: int
    output_tokens: int
    together_tokens: int
    """Steps that all streams of the first round share before the first of them may end."""
    seconds: float
    """What it costs: server time under this load, the profiler's own included."""
    decides: str
    steps: int = 0
    """Decode steps of a profile."""
    sure: bool = True
    """False in an outline: run only if what came before leaves the question open."""


class Stop(msgspec.Struct, frozen=True):
    """Nothing more is worth its cost."""

    reason: str


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the user allows and the server offers."""

    budget_s: float
    concurrency: tuple[int, ...] = ()
    """Levels the user asked for, in that order; empty leaves the choice to the planner."""
    input_tokens: int = 512
    output_tokens: int = 192
    context_tokens: int | None = None
    """The longest prompt and answer together that the server takes."""
    profile: bool = True
