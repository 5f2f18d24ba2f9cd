"""The picture: everything computed from one run before any rule looks at it."""

from typing import Literal

import msgspec

from stepline.errors import UnknownFact
from stepline.evidence.calibration import Calibration
from stepline.evidence.run import ReadingDoubt, Run
from stepline.facts.hardware import Gpu
from stepline.model.measure.closed_loop import ClosedLoop
from stepline.model.measure.gpu_use import GpuUse
from stepline.model.measure.instruments import Instrument
from stepline.model.measure.law import Interval, LawPoint, NoLaw, StepLaw
from stepline.model.measure.levels import OfferedLevel
from stepline.model.measure.timeline import Plateau
from stepline.model.measure.traced_step import TracedStep
from stepline.model.measure.windows import DecodeWindow, Windows
from stepline.model.picture.sign import sign
from stepline.model.roofline.architecture import Architecture
from stepline.model.roofline.decode_floor import Floor, decode_floor
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.layout import Layout
from stepline.model.roofline.typical import Typical

Routing = Literal["strict", "expected"]


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What the user said on the command line; each only where the evidence does not already say it."""

    model: str | None = None
    gpu: str | None = None
    tp: int | None = None
    ep: int | None = None
    dp: int | None = None
    pp: int | None = None
    context_length: int | None = None
    calibration: Calibration | None = None
    """What a machine's GPUs were measured to reach; used when the server's GPU is the same."""


class Target(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The server under diagnosis; None means nobody said."""

    engine: str | None
    version: str | None
    model: str | None
    architecture: Architecture | None
    gpu: Gpu | None
    layout: Layout
    configured_context: int | None
    configured_context_source: str | None
    dummy_weights: bool
    kv_dtype: str = "auto"
    """Type of cached keys and values; `auto` is the checkpoint's."""
    calibration: Calibration | None = None


@sign
def floor_of(target: Target, running: float, context_tokens: float, routing: Routing) -> Floor:
    """The floor of a step of a known target.

    Raises:
        UnknownFact: the model or the GPU is not known, or the layout is impossible.
    """
    if target.architecture is None or target.gpu is None:
        raise UnknownFact("a floor needs the model and the GPU")
    return decode_floor(
        Deployment(target.architecture, target.gpu, target.layout, kv_dtype=target.kv_dtype),
        batch=running,
        context_tokens=context_tokens,
        routing=routing,
    )


def floor_or_none(target: Target, running: float, context_tokens: float, routing: Routing) -> Floor | None:
    """The same; None where the model, the GPU, the cache's type or the layout allows none: `assess` says which."""
    try:
        return floor_of(target, running, context_tokens, routing)
    except UnknownFact:
        return None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The decode step at the load: its instrument, and how that instrument was disturbed."""

    running: float
    measured_ms: float
    instrument: Instrument
    disturbance: str
    windows: int
    interval: Interval | None = None
    graph: bool | None = None
    tokens_per_step: float = 1.0
    """Accept length at the load; 1 without speculation."""
    upper_bound: bool = False
    """True when prefill or waiting may be inside: the step is at most this."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The load the diagnosis speaks of: the heaviest one that was measured undisturbed."""

    concurrency: float | None
    running: float
    queued: float | None
    tok_s: float | None
    source: str
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    output_tokens: float | None = None
    input_tokens: float | None = None
    prefill_requests: int | None = None
    ranks: int = 1
    """Data-parallel ranks that share the running batch; a step has `running / ranks` sequences."""


class LiveContext(msgspec.Struct, frozen=True, kw_only=True):
    """Mean tokens a running sequence attends to, and where the number comes from."""

    tokens: float
    route: str


class Phases(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request's time goes at the load, in ms; None where nothing tells."""

    queue_ms: float | None
    prefill_ms: float | None
    decode_ms: float | None

    @property
    def worst(self) -> Literal["queue", "prefill", "decode"] | None:
        """The phase that takes most of a request's time, when all three are known."""
        if self.queue_ms is None or self.prefill_ms is None or self.decode_ms is None:
            return None
        if self.queue_ms > max(self.prefill_ms, self.decode_ms):
            return "queue"
        return "prefill" if self.prefill_ms > self.decode_ms else "decode"


class Floors(msgspec.Struct, frozen=True, kw_only=True):
    """Floors of the step at the load, and what they grow by for each further request up to the load's batch.

    `used` is the one that may prove something: dummy weights collapse routing, so uniform routing is no
    expectation there and only the strict floor holds.
    """

    strict: Floor
    expected: Floor
    used: Routing
    per_request_ms: float
    """Growth of the floor in use."""
    typical: Typical | None
    """What healthy servers take, calibrated for the class of the GPU; never a bound."""
    expected_per_request_ms: float
    """Growth under uniform routing, which is context only where the strict floor is in use."""

    @property
    def here(self) -> Floor:
        """The floor in use."""
        return self.strict if self.used == "strict" else self.expected


class Picture(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All that rules may use. It keeps the answers of the signs that were asked of it (`sign.py`)."""

    run: Run
    target: Target
    windows: Windows
    probed: tuple[DecodeWindow, ...] = ()
    """Windows of levels at another context than the load's: for the slope in context alone."""
    law: StepLaw | NoLaw
    plateaus: tuple[Plateau, ...]
    levels: tuple[OfferedLevel, ...]
    load: Load | None
    step: Step | None
    context: LiveContext | None
    floors: Floors | None
    floors_missing: str | None
    """Why there is no floor and what would give one; None when there is."""
    gpu_use: GpuUse | None
    gpu_use_by_running: dict[float, GpuUse]
    loop: ClosedLoop | None
    wall_points: tuple[LawPoint, ...]
    """Unprofiled steps that a trace may be set beside: none from an instrument that only bounds the step."""
    traced: TracedStep | None
    phases: Phases
    doubts: tuple[ReadingDoubt, ...]

    @property
    def gap(self) -> float | None:
        """Measured step over floor: the expected floor, or the strict one where dummy weights collapse routing."""
        if self.step is None or self.floors is None:
            return None
        return self.step.measured_ms / self.floors.here.total_ms

    def floor_at(self, running: float, routing: Routing) -> Floor | None:
        """The floor of a step at another batch; None without model, GPU or live context, or what a floor needs."""
        return floor_or_none(self.target, running, self.context.tokens, routing) if self.context else None

    @property
    def rate_tok_s(self) -> float | None:
        """The rate at the load: the client's, the closed loop's by the log, or what the step alone would give."""
        if self.load is not None and self.load.tok_s is not None:
            return self.load.tok_s
        if self.loop is not None:
            return self.loop.tok_s
        step = self.step
        return None if step is None else 1000 * step.running * step.tokens_per_step / step.measured_ms
