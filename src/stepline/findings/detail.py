"""What only a long report shows, as data: kernels, levels, levers tried, and the load over time. All bounded."""

from typing import Literal

import msgspec


class KernelView(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel of the decode step, from the trace."""

    name: str
    component: str
    busy_ms: float
    """Per step."""
    per_step: float
    context_shaped: bool
    """True when its grid follows the configured context."""
    site: str | None
    bytes_s: float | None
    """Operands over time; null where the trace holds no shapes, as in replays of CUDA graphs."""
    flop_s: float | None
    floor_ms: float | None
    """Per step, of its operands; null without shapes, or where they came from a cache."""


class RooflinePoint(msgspec.Struct, frozen=True, kw_only=True):
    """What one piece of the step must read and multiply, beside the time it took and the least it could take."""

    name: str
    kind: Literal["step", "part", "kernel"]
    bytes: float
    flops: float
    ms: float
    floor_ms: float


class RooflineView(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU's roof and where the decode step stands under it; all figures are of one step on one GPU."""

    running: float
    bandwidth_bytes_s: float
    peak_flop_s: dict[str, float]
    """By the types that the model's products can run in."""
    points: tuple[RooflinePoint, ...]
    """The step, then the parts of a traced step, then kernels of known operands."""


class LevelView(msgspec.Struct, frozen=True, kw_only=True):
    """One load level of the client, and the running batch that the engine made of it."""

    concurrency: float
    running: float | None
    queued: float | None
    tok_s: float | None
    ttft_ms: float | None
    tpot_ms: float | None
    disturbed: str | None
    """Why the level's rate is no evidence."""
    source: str


class LeverView(msgspec.Struct, frozen=True, kw_only=True):
    """One change that was tried, in `unit` before and after; `speedup` is 1 for no change."""

    lever: str
    running: float | None
    concurrency: float | None
    before: float
    after: float
    unit: str
    speedup: float
    acts_on: str | None
    condition: str | None
    source: str


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity in equal bins of time; null where the bin holds no sample, never zero."""

    name: str
    unit: str
    source: str
    values: tuple[float | None, ...]


class TimelineMark(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened, in seconds since the timeline's start."""

    text: str
    start_s: float
    end_s: float


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Scheduler and GPU side by side."""

    starts: str
    """Clock of the log at the first bin, `HH:MM:SS`."""
    bin_s: float
    series: tuple[Series, ...]
    marks: tuple[TimelineMark, ...]
