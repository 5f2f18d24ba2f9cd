"""Diagnosis: the answer as data, run by run. Reports draw it; agents read its JSON."""

from typing import Literal

import msgspec

from stepline.findings.detail import KernelView, LevelView, LeverView, RooflineView, Timeline
from stepline.findings.outcome import Proof, Rival, RuledOut, Status, Try
from stepline.model.change.gain import Gain

SCHEMA_VERSION = 2


class Cited(msgspec.Struct, frozen=True):
    """A sentence of evidence and the place it was read (`server.log:73`), if one place."""

    text: str
    source: str | None = None


class Span(msgspec.Struct, frozen=True):
    """A 95 % interval."""

    low: float
    high: float


class KnobValue(msgspec.Struct, frozen=True):
    """A setting in force and where it was read."""

    name: str
    value: str
    source: str


class TargetView(msgspec.Struct, frozen=True, kw_only=True):
    """The server: null where nobody said."""

    engine: str | None
    version: str | None
    model: str | None
    gpu: str | None
    layout: dict[str, int]
    knobs: tuple[KnobValue, ...] = msgspec.field(name="settings")


class FloorPart(msgspec.Struct, frozen=True, kw_only=True):
    """One component of the floor in use: what it must read and what bounds it."""

    component: str
    ms: float
    bytes: float
    bound: str


class FloorView(msgspec.Struct, frozen=True, kw_only=True):
    """The least step: strict (one token's experts), expected (uniform routing), typical (calibrated)."""

    strict_ms: float
    expected_ms: float
    typical_ms: float | None
    used: Literal["strict", "expected"]
    not_counted: tuple[str, ...]
    parts: tuple[FloorPart, ...]
    """Of the floor in use; they sum to it with `collective_ms`."""
    collective_ms: float


class LawPointView(msgspec.Struct, frozen=True, kw_only=True):
    """One level of the law."""

    running: float
    step_ms: float
    windows: int


class LawCurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The law with its interval, and the floor in use, at one running batch; null where there is none."""

    running: float
    step_ms: float | None
    interval: Span | None
    floor_ms: float | None


class SaturationView(msgspec.Struct, frozen=True, kw_only=True):
    """t(N) = full - missing · untouched^N: a model with experts, whose step levels off."""

    full_ms: float
    missing_ms: float
    untouched: float


class LawView(msgspec.Struct, frozen=True, kw_only=True):
    """t(N) = fixed + per_request·N; `refused` says why there is none, the points stay."""

    instrument: str
    points: tuple[LawPointView, ...]
    curve: tuple[LawCurvePoint, ...]
    """From no request to the largest batch measured."""
    refused: str | None = None
    shape: str | None = None
    fixed_ms: float | None = None
    per_request_ms: float | None = None
    ceiling_tok_s: float | None = None
    fixed_interval: Span | None = None
    interval: Span | None = None
    """Of `per_request_ms`."""
    expected_per_request_ms: float | None = None
    """What the floor grows by for each further request, as context."""
    saturation: SaturationView | None = None


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """The decode step at the load."""

    running: float
    context: float | None
    context_source: str | None
    measured_ms: float
    instrument: str
    disturbance: str
    interval: Span | None
    floor: FloorView | None
    floor_missing: str | None
    """Why there is no floor and what would give one."""
    gap: float | None
    upper_bound: bool = False
    """True when prefill or waiting may be inside: the step takes at most `measured_ms`."""
    law: LawView


class AccountingLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the step; null is not measured, never zero."""

    component: str
    measured_ms: float | None
    floor_ms: float | None
    evidence: str


class Accounted(msgspec.Struct, frozen=True, kw_only=True):
    """The step that the accounting adds up to, which may be of another batch than the load's: the trace's."""

    running: float
    wall_ms: float
    floor_ms: float | None
    """The floor in use at that batch."""


class LifeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a second of the server's life, as a share of 1."""

    part: str
    share: float | None
    evidence: str


class PhasesView(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request's time goes, in ms."""

    queue: float | None
    prefill: float | None
    decode: float | None
    worst: str | None


class LoadView(msgspec.Struct, frozen=True, kw_only=True):
    """The load that the diagnosis speaks of."""

    concurrency: float | None
    running: float
    queued: float | None
    tok_s: float | None
    source: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A cause, what it costs and how sure."""

    code: str
    name: str
    status: Status
    headline: str
    recoverable_tok_s: float | None
    gain: Gain | None
    evidence: tuple[Cited, ...]
    ruled_out: tuple[RuledOut, ...]
    rivals: tuple[Rival, ...]
    tries: tuple[Try, ...] = msgspec.field(name="try")
    proof: Proof | None


class ClearView(msgspec.Struct, frozen=True, kw_only=True):
    """A cause that the evidence speaks against."""

    code: str
    name: str
    reason: str


class CannotTellView(msgspec.Struct, frozen=True, kw_only=True):
    """A cause that the evidence leaves open."""

    code: str
    name: str
    needs: str
    command: str


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """A weakness of the evidence itself."""

    topic: str
    text: str


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where it all came from."""

    stepline: str
    read: tuple[str, ...]
    passed_over: tuple[str, ...]
    window: str | None
    samples_per_level: dict[str, int]


class RunDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was concluded about one run: one server under one load. No number in it is of another run."""

    id: str
    """Short name of the run, made from what tells it from the others."""
    verdict: str
    conclusive: bool
    target: TargetView
    load: LoadView | None
    step: StepView | None
    life: tuple[LifeLine, ...]
    accounting: tuple[AccountingLine, ...]
    accounted: Accounted | None
    unexplained_ms: float | None
    phases: PhasesView
    health: tuple[Cited, ...]
    """Signs of a broken rather than slow server."""
    watched: bool
    """True when a log or counters were read, in which a retraction, failure or restart would show."""
    findings: tuple[Finding, ...]
    notes: tuple[Cited, ...]
    clear: tuple[ClearView, ...] = msgspec.field(name="ruled_out")
    cannot_tell: tuple[CannotTellView, ...] = msgspec.field(name="needs_evidence")
    doubts: tuple[Doubt, ...] = msgspec.field(name="warnings")
    roofline: RooflineView | None
    kernels: tuple[KernelView, ...]
    levels: tuple[LevelView, ...]
    levers: tuple[LeverView, ...]
    timeline: Timeline | None
    provenance: Provenance


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The effect at one level by one instrument."""

    at: str
    """The level, as both sides measured it."""
    measure: str
    instrument: str
    before: float
    after: float
    unit: str
    speedup: float
    """Speed after over speed before: above 1 is faster."""
    interval: Span
    """95 % of the speedup: repeats by their spread, one measurement a side by the noise of its instrument."""
    verdict: str


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A cause that the experiment decides."""

    code: str
    name: str
    says: Literal["confirmed", "ruled out"]
    by: str
    """The number that decides it."""


class RunsCompared(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment: runs that differ in one setting and share a load."""

    runs: tuple[str, ...]
    """Ids of all its runs, those before first."""
    before: tuple[str, ...]
    """Ids of the runs with the value before; several are repeats."""
    after: tuple[str, ...]
    setting: str
    """The one thing that differs: a start argument, an environment variable, a fact of the server."""
    value_before: str | None
    """None where the run does not say: the engine's default."""
    value_after: str | None
    effect: Compared
    """At the heaviest level that both measured."""
    levels: tuple[Compared, ...]
    """At every level that both measured, the lightest first."""
    covers: str
    """What the intervals cover, and what they take on trust."""
    answers: tuple[Answered, ...]
    sentence: str


class NotComparable(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs of which no difference can be put down to one setting."""

    runs: tuple[str, str]
    differs: tuple[str, ...]
    """What differs, as `setting before → after`; empty where nothing that the evidence shows does."""
    reason: str


class Repeated(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that differ in nothing that the evidence shows and share a load."""

    runs: tuple[str, ...]


class UngroupedView(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was read and joined to no run."""

    path: str
    reason: str


class ReadTogether(msgspec.Struct, frozen=True, kw_only=True):
    """What was read beside the runs' own files."""

    stepline: str
    shared: tuple[str, ...]
    """Files that belong to several runs, such as the model's config."""
    ungrouped: tuple[UngroupedView, ...]
    passed_over: tuple[str, ...]


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was concluded: run by run, then what the runs say together."""

    schema_version: int = SCHEMA_VERSION
    runs: tuple[RunDiagnosis, ...]
    """In order of time where all tell it; one run alone has the same shape."""
    chosen_run: str
    """Id of the run that the report speaks of."""
    chosen_because: str
    comparisons: tuple[RunsCompared, ...]
    """Runs that differ in one setting and share a load: the strongest evidence there is."""
    not_comparable: tuple[NotComparable, ...]
    """For each run that is in no comparison, the nearest other one, and why nothing follows."""
    repeats: tuple[Repeated, ...]
    provenance: ReadTogether

    @property
    def chosen(self) -> RunDiagnosis:
        """The run that the report speaks of."""
        return next(run for run in self.runs if run.id == self.chosen_run)

    @property
    def verdict(self) -> str:
        """The sentence that answers, of the chosen run."""
        return self.chosen.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The chosen run's."""
        return self.chosen.findings

    @property
    def conclusive(self) -> bool:
        """Whether anything can be said of the chosen run, or of two together."""
        return self.chosen.conclusive or bool(self.comparisons)
