"""What only a long report shows, as data: kernels, levels, levers tried, and the load over time. All bounded."""

from typing import Literal

import msgspec


class KernelView(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel of the decode step, from the trace."""

    name: str
    """The kernel's name."""
    component: str
    """Part of the step it belongs to."""
    busy_ms: float
    """Per step."""
    per_step: float
    """Launches a step."""
    context_shaped: bool
    """True when its grid follows the configured context."""
    site: str | None
    """Where it is called from."""
    bytes_s: float | None
    """Operands over time; null where the trace holds no shapes, as in replays of CUDA graphs."""
    flop_s: float | None
    """Operations a second."""
    floor_ms: float | None
    """Per step, of its operands; null without shapes, or where they came from a cache."""


class RooflinePoint(msgspec.Struct, frozen=True, kw_only=True):
    """What one piece of the step must read and multiply, beside the time it took and the least it could take."""

    name: str
    """Step or part."""
    kind: Literal["step", "part", "kernel"]
    """What the point is."""
    bytes: float
    """Bytes read."""
    flops: float
    """Operations."""
    ms: float
    """Time measured; null where nothing measured it."""
    floor_ms: float
    """Its floor."""


class RooflineView(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU's roof and where the decode step stands under it; all figures are of one step on one GPU."""

    running: float
    """Running batch of the points."""
    bandwidth_bytes_s: float
    """Memory bandwidth of all GPUs of a step."""
    peak_flop_s: dict[str, float]
    """By the types that the model's products can run in."""
    points: tuple[RooflinePoint, ...]
    """The step, then the parts of a traced step, then kernels of known operands."""


class LevelView(msgspec.Struct, frozen=True, kw_only=True):
    """One load level of the client, and the running batch that the engine made of it."""

    concurrency: float
    """Streams held open."""
    running: float | None
    """Running batch."""
    queued: float | None
    """Requests waiting."""
    tok_s: float | None
    """Output tokens a second."""
    ttft_ms: float | None
    """Mean time to the first token."""
    tpot_ms: float | None
    """Mean time per output token."""
    disturbed: str | None
    """Why the level's rate is no evidence."""
    source: str
    """Where the level was read."""


class LeverView(msgspec.Struct, frozen=True, kw_only=True):
    """One change that was tried, in `unit` before and after; `speedup` is 1 for no change."""

    lever: str
    """The change."""
    running: float | None
    """Running batch."""
    concurrency: float | None
    """Streams held open."""
    before: float
    """Value before."""
    after: float
    """Value after."""
    unit: str
    """Of both values."""
    speedup: float
    """How much faster."""
    acts_on: str | None
    """What the change acts on."""
    condition: str | None
    """Workload of both."""
    source: str
    """Where it was read."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity in equal bins of time; null where the bin holds no sample, never zero."""

    name: str
    """What it shows."""
    unit: str
    """Of its values."""
    source: str
    """Where it was read."""
    values: tuple[float | None, ...]
    """One value a bin; null where none was seen."""


class TimelineMark(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened, in seconds since the timeline's start."""

    text: str
    """What happened."""
    start_s: float
    """When, from the beginning."""
    end_s: float
    """When it ended."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Scheduler and GPU side by side."""

    starts: str
    """Clock of the log at the first bin, `HH:MM:SS`."""
    bin_s: float
    """Seconds of one value."""
    series: tuple[Series, ...]
    """Values over time."""
    marks: tuple[TimelineMark, ...]
    """Moments that stand out."""
