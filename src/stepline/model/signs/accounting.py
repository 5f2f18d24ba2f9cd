"""The accounting: a decode step laid out as parts, each with its measured, least and usual time.

With a trace the parts are the GPU's by component and the host's gap; without one they are the fixed and the per-request
part of the step law. Measured times add up to the step in either case. A part whose usual time nothing tells is not
judged: it has no excess, and is no evidence for anything.
"""

from typing import Literal

import msgspec

from stepline import units
from stepline.errors import UnknownFact
from stepline.evidence.trace import TraceKernel
from stepline.model.measure.law import law_or_none
from stepline.model.measure.traced_step import TracedStep
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.typical import Typical, typical_step
from stepline.model.roofline.typical_parts import typical_parts
from stepline.model.signs.host import T as HOST
from stepline.model.signs.traced_floors import part_floors
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    gap = Threshold(
        0.03,
        "share of the step",
        why="Time between the GPU's kernels on a sound server.",
        source="healthy H200 servers read 1 to 6 % idle, unprofiled",
    )


HOST_GAP = "host gap"
NOT_ATTRIBUTED = "unattributed"
FIXED, PER_REQUEST = "fixed part", "per-request part"
Instrumented = Literal["trace and unprofiled step", "trace alone", "step law", "step"]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the step; None is not known, never zero."""

    name: str
    measured_ms: float
    floor_ms: float | None = None
    typical: Typical | None = None
    """None where neither a calibration nor a fit describes it: the part is not judged."""
    kernels: float | None = None
    """Kernels a step; None for parts that are none of the GPU's, and without a trace."""

    @property
    def excess_ms(self) -> float | None:
        """Measured less typical, below zero where the part was faster; None where it is not judged."""
        return None if self.typical is None else self.measured_ms - self.typical.ms

    @property
    def above(self) -> bool:
        """True when the part took longer than the upper end of its usual time."""
        return self.typical is not None and self.measured_ms > self.typical.high_ms


class Accounting(msgspec.Struct, frozen=True, kw_only=True):
    """A step and its parts, dearest first; their measured times add up to `step_ms`."""

    running: float | None
    step_ms: float
    instrument: Instrumented
    parts: tuple[Part, ...]
    kernels: tuple[TraceKernel, ...] = ()
    """The dearest of the traced step."""
    file: str | None = None

    def part(self, name: str) -> Part | None:
        """The part of that name."""
        return next((part for part in self.parts if part.name == name), None)


@sign
def accounting(picture: Picture) -> Accounting | None:
    """The step by part, from the trace where there is one; None without any step."""
    traced = picture.traced
    return _by_law(picture) if traced is None else _by_trace(picture, traced)


@sign
def largest_excess(picture: Picture) -> Part | None:
    """The part above its usual time by most; None where no part that is judged is above it."""
    found = accounting(picture)
    judged = () if found is None else [part for part in found.parts if part.above]
    return max(judged, key=lambda part: part.excess_ms or 0.0, default=None)


@sign
def speculates(picture: Picture) -> bool:
    """True when a step yields or verifies several tokens: its products and attention work for more than the batch."""
    step, traced = picture.step, picture.traced
    drafted = traced is not None and traced.group.component_ms("speculation") > 0
    settings = picture.run.server.speculative
    return (
        drafted
        or (settings is not None and bool(settings.value))
        or (step is not None and step.tokens_per_step > 1)
    )


def _by_trace(picture: Picture, traced: TracedStep) -> Accounting:
    group = traced.group
    usual = _usual_parts(picture, group.batch)
    least = {part.component: part.floor_ms for part in part_floors(picture)}
    parts = [
        Part(
            name=part.component,
            measured_ms=part.busy_ms,
            floor_ms=least.get(part.component),
            typical=usual.get(part.component),
            kernels=part.kernels,
        )
        for part in group.components
    ]
    step_ms = traced.step_ms
    gap_ms = step_ms - group.busy_ms
    parts.append(Part(name=HOST_GAP, measured_ms=gap_ms, typical=_usual_gap(traced)))
    return Accounting(
        running=group.batch,
        step_ms=step_ms,
        instrument="trace alone" if traced.wall_ms is None else "trace and unprofiled step",
        parts=tuple(sorted(parts, key=lambda part: (part.name == HOST_GAP, -part.measured_ms))),
        kernels=group.top,
        file=traced.file,
    )


def _usual_gap(traced: TracedStep) -> Typical | None:
    """The usual gap between kernels; None inside a trace alone, whose idle time the profiler makes."""
    if traced.wall_ms is None:
        return None
    return Typical(
        ms=T.gap * traced.wall_ms,
        low_ms=0.0,
        high_ms=HOST.gpu_idle * traced.wall_ms,
        source="the GPU's idle share on healthy H200 servers",
    )


def _usual_parts(picture: Picture, batch: int | None) -> dict[str, Typical]:
    """Usual times by component; empty without model, GPU, batch or context, and where steps verify drafts."""
    target, context = picture.target, picture.context
    if (
        target.architecture is None
        or target.gpu is None
        or batch is None
        or context is None
        or speculates(picture)
    ):
        return {}
    if target.dummy_weights and target.architecture.body.experts:
        return {}  # routing collapses: fewer experts are read than usual
    try:
        usual = typical_parts(
            Deployment(target.architecture, target.gpu, target.layout, target.kv_dtype),
            batch=batch,
            context_tokens=context.tokens,
            calibration=target.calibration,
        )
    except UnknownFact:
        return {}  # an impossible layout or a cache type that nobody knows: `assess` says which
    return dict(usual)


def _by_law(picture: Picture) -> Accounting | None:
    """The law's two parts against those of the usual step at the same batches; the step alone where there is none."""
    step, law = picture.step, law_or_none(picture.law)
    if step is None:
        return None
    whole = None if picture.floors is None or speculates(picture) else picture.floors.typical
    if law is None or law.saturation is not None or step.upper_bound or not law.per_request_ms > 0:
        part = Part(
            name="step",
            measured_ms=step.measured_ms,
            floor_ms=None if picture.floors is None else picture.floors.here.total_ms,
            typical=whole,
        )
        return Accounting(running=step.running, step_ms=step.measured_ms, instrument="step", parts=(part,))
    growing_ms = min(law.per_request_ms * step.running, step.measured_ms)
    usual = _usual_law(picture, min(point.running for point in law.points))
    parts = (
        Part(name=FIXED, measured_ms=step.measured_ms - growing_ms, typical=usual[0]),
        Part(name=PER_REQUEST, measured_ms=growing_ms, typical=usual[1]),
    )
    return Accounting(running=step.running, step_ms=step.measured_ms, instrument="step law", parts=parts)


def _usual_law(picture: Picture, smallest: float) -> tuple[Typical | None, Typical | None]:
    """(fixed, per-request) parts of the usual step at the load, by the line through it and the smallest batch."""
    target, step, context = picture.target, picture.step, picture.context
    whole = None if picture.floors is None or speculates(picture) else picture.floors.typical
    if whole is None or step is None or context is None or smallest >= step.running:
        return None, None
    if target.architecture is None or target.gpu is None:
        return None, None
    small = typical_step(
        Deployment(target.architecture, target.gpu, target.layout, target.kv_dtype),
        batch=smallest,
        context_tokens=context.tokens,
        calibration=target.calibration,
    )
    if small is None:
        return None, None
    grows_ms = max(0.0, (whole.ms - small.ms) / (step.running - smallest) * step.running)
    return _share(whole, whole.ms - grows_ms), _share(whole, grows_ms)


def _share(whole: Typical, ms: float) -> Typical:
    """A part of the usual step: what the step may take beyond it may all lie in the part."""
    over_ms, under_ms = whole.high_ms - whole.ms, whole.ms - whole.low_ms
    return Typical(ms=ms, low_ms=max(0.0, ms - under_ms), high_ms=ms + over_ms, source=whole.source)


def described(part: Part) -> str:
    """Measured beside usual time, in words."""
    told = units.ms(part.measured_ms)
    if part.typical is None:
        return f"{told}, not judged: nothing tells what it typically takes"
    usual = part.typical
    return f"{told}, where {units.ms(usual.ms)} is typical ({units.ms(usual.low_ms)} to {units.ms(usual.high_ms)})"
