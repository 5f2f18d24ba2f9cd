"""Diagnosis: the answer as data, run by run. Reports draw it; agents read its JSON."""

from typing import Literal

import msgspec

from stepline.findings.detail import KernelView, LevelView, LeverView, RooflineView, Timeline
from stepline.findings.outcome import Proof, Rival, RuledOut, Status, Try
from stepline.findings.together import NotComparable, ReadTogether, Repeated, RunsCompared, Span
from stepline.model.change.gain import Gain

SCHEMA_VERSION = 2


class Cited(msgspec.Struct, frozen=True):
    """A sentence of evidence and the place it was read (`server.log:73`), if one place."""

    text: str
    """The sentence."""
    source: str | None = None
    """Where it was read, if in one place."""


class KnobValue(msgspec.Struct, frozen=True):
    """A setting in force and where it was read."""

    name: str
    """The setting's name."""
    value: str
    """Its value as text."""
    source: str
    """File and line or field that it was read from."""


class TargetView(msgspec.Struct, frozen=True, kw_only=True):
    """The server: null where nobody said."""

    engine: str | None
    """Engine of the server: `sglang`, `vllm` and others."""
    version: str | None
    """The engine's version."""
    model: str | None
    """Model by the name it was loaded under."""
    gpu: str | None
    """GPU by its catalogue name."""
    layout: dict[str, int]
    """Sizes of the parallel layout: tp, ep, dp, pp."""
    knobs: tuple[KnobValue, ...] = msgspec.field(name="settings")
    """Settings in force, each with its origin."""


class FloorPart(msgspec.Struct, frozen=True, kw_only=True):
    """One component of the floor in use: what it must read and what bounds it."""

    component: str
    """Part of the step."""
    ms: float
    """Its floor."""
    bytes: float
    """Bytes that it must read."""
    bound: str
    """What bounds it: bandwidth or compute."""


class FloorView(msgspec.Struct, frozen=True, kw_only=True):
    """The least step: strict (one token's experts), expected (uniform routing), typical (calibrated)."""

    strict_ms: float
    """With one token's experts: the only floor that can prove anything."""
    expected_ms: float
    """With uniform routing."""
    typical_ms: float | None
    """What healthy servers take, calibrated; null for an uncalibrated GPU."""
    used: Literal["strict", "expected"]
    """Which of the two floors the report is measured against."""
    not_counted: tuple[str, ...]
    """Work that the floor leaves out."""
    parts: tuple[FloorPart, ...]
    """Of the floor in use; they sum to it with `collective_ms`."""
    collective_ms: float
    """Communication between ranks."""


class LawPointView(msgspec.Struct, frozen=True, kw_only=True):
    """One level of the law."""

    running: float
    """Running batch."""
    step_ms: float
    """Median step at it."""
    windows: int
    """Windows behind the median."""


class LawCurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The law with its interval, and the floor in use, at one running batch; null where there is none."""

    running: float
    """Running batch."""
    step_ms: float | None
    """Step by the law; null without one."""
    interval: Span | None
    """95 % interval of it."""
    floor_ms: float | None
    """Floor in use at this batch."""


class SaturationView(msgspec.Struct, frozen=True, kw_only=True):
    """t(N) = full - missing · untouched^N: a model with experts, whose step levels off."""

    full_ms: float
    """Step once all experts are read."""
    missing_ms: float
    """What a small batch saves."""
    untouched: float
    """Share of experts that one more request leaves untouched."""


class LawView(msgspec.Struct, frozen=True, kw_only=True):
    """t(N) = fixed + per_request·N; `refused` says why there is none, the points stay."""

    instrument: str
    """What measured the points; empty without a law."""
    points: tuple[LawPointView, ...]
    """Levels that the law is fitted to."""
    curve: tuple[LawCurvePoint, ...]
    """From no request to the largest batch measured."""
    refused: str | None = None
    """Why there is no law; null when there is."""
    shape: str | None = None
    """Linear or levelling off."""
    fixed_ms: float | None = None
    """Part of a step that no request adds to."""
    per_request_ms: float | None = None
    """What each further request adds."""
    ceiling_tok_s: float | None = None
    """Rate that no batch exceeds while the law holds."""
    fixed_interval: Span | None = None
    """95 % interval of `fixed_ms`."""
    interval: Span | None = None
    """Of `per_request_ms`."""
    expected_per_request_ms: float | None = None
    """What the floor grows by for each further request, as context."""
    saturation: SaturationView | None = None
    """The law of a model with experts; null for a straight line."""


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """The decode step at the load."""

    running: float
    """Requests in the batch that the step is of, per rank."""
    context: float | None
    """Tokens that a sequence attends to."""
    context_source: str | None
    """How the context is known."""
    measured_ms: float
    """Wall time of one decode step."""
    instrument: str
    """What measured it."""
    disturbance: str
    """What may be inside besides the step."""
    interval: Span | None
    """95 % interval of the step."""
    floor: FloorView | None
    """The least that a step can take; null where model, GPU or context is not known."""
    floor_missing: str | None
    """Why there is no floor and what would give one."""
    gap: float | None
    """The step over its floor in use."""
    upper_bound: bool = False
    """True when prefill or waiting may be inside: the step takes at most `measured_ms`."""
    law: LawView
    """Step time against running batch."""


class TypicalSpan(msgspec.Struct, frozen=True):
    """The usual time of a part in ms, and the interval that sound servers lie in."""

    low: float
    """Least that sound servers take."""
    mid: float
    """What they usually take."""
    high: float
    """Most that they take."""


class AccountingLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the step; null is not measured, never zero."""

    component: str
    """Part of the step."""
    measured_ms: float | None
    """As measured; null where nothing did."""
    floor_ms: float | None
    """Its floor."""
    evidence: str
    """What says so."""
    typical_ms: TypicalSpan | None = None
    """What the part usually takes; null where neither a calibration nor a fit tells: the part is not judged."""
    excess_ms: float | None = None
    """Measured less typical; null where the part is not judged."""


class Accounted(msgspec.Struct, frozen=True, kw_only=True):
    """The step that the accounting adds up to, which may be of another batch than the load's: the trace's."""

    running: float
    """Running batch of the accounted step."""
    wall_ms: float
    """Its wall time."""
    floor_ms: float | None
    """The floor in use at that batch."""


class LifeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a second of the server's life, as a share of 1."""

    part: str
    """What the server did."""
    share: float | None
    """Share of the time, of 1."""
    evidence: str
    """What says so."""


class PhasesView(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request's time goes, in ms."""

    queue: float | None
    """Waiting for a place in the batch."""
    prefill: float | None
    """Computing the prompt."""
    decode: float | None
    """Making the answer."""
    worst: str | None
    """The phase that takes most."""


class LoadView(msgspec.Struct, frozen=True, kw_only=True):
    """The load that the diagnosis speaks of."""

    concurrency: float | None
    """Streams that the client held open; null where only the log tells the load."""
    running: float
    """Requests in the decode batch, over all ranks."""
    queued: float | None
    """Requests waiting for a place in it."""
    tok_s: float | None
    """Output tokens a second over all streams."""
    source: str
    """Where the load was read."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A cause, what it costs and how sure."""

    code: str
    """Code of the rule."""
    name: str
    """Name of the cause."""
    status: Status
    """`confirmed` where an observation rules out the nearest rival, else `suspected`."""
    headline: str
    """The cause in one sentence."""
    recoverable_tok_s: float | None
    """Rate that removing the cause recovers at the load; null where nobody knows."""
    gain: Gain | None
    """What removing it should give."""
    evidence: tuple[Cited, ...]
    """Observations for it."""
    ruled_out: tuple[RuledOut, ...]
    """Rivals that an observation speaks against."""
    rivals: tuple[Rival, ...]
    """Rivals that are left, and what would decide."""
    tries: tuple[Try, ...] = msgspec.field(name="try")
    """Reversible next steps."""
    proof: Proof | None
    """What proves it."""


class ClearView(msgspec.Struct, frozen=True, kw_only=True):
    """A cause that the evidence speaks against."""

    code: str
    """Code of the rule."""
    name: str
    """Name of the cause."""
    reason: str
    """The observation against it."""


class CannotTellView(msgspec.Struct, frozen=True, kw_only=True):
    """A cause that the evidence leaves open."""

    code: str
    """Code of the rule."""
    name: str
    """Name of the cause."""
    needs: str
    """Evidence that would tell."""
    command: str
    """How to get it."""


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """A weakness of the evidence itself."""

    topic: str
    """What it is about, in a word."""
    text: str
    """The doubt in a sentence."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where it all came from."""

    stepline: str
    """Version that made it."""
    read: tuple[str, ...]
    """Files that were read, with kind and records."""
    passed_over: tuple[str, ...]
    """Files of no known kind, with the reason."""
    window: str | None
    """Decode windows used and left out."""
    samples_per_level: dict[str, int]
    """Windows behind each running batch."""


class RunDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was concluded about one run: one server under one load. No number in it is of another run."""

    id: str
    """Short name of the run, made from what tells it from the others."""
    verdict: str
    """The sentence that answers."""
    conclusive: bool
    """False where too little was recorded for any verdict."""
    target: TargetView
    """The server."""
    load: LoadView | None
    """The load that the run is judged at."""
    step: StepView | None
    """The decode step at that load."""
    life: tuple[LifeLine, ...]
    """A second of the server's life."""
    accounting: tuple[AccountingLine, ...]
    """The step part by part."""
    accounted: Accounted | None
    """The step that the accounting adds up to."""
    unexplained_ms: float | None
    """What no part of the accounting explains."""
    phases: PhasesView
    """A request's time."""
    health: tuple[Cited, ...]
    """Signs of a broken rather than slow server."""
    watched: bool
    """True when a log or counters were read, in which a retraction, failure or restart would show."""
    findings: tuple[Finding, ...]
    """Causes, the costliest first."""
    notes: tuple[Cited, ...]
    """Statements below a tenth of the load, or by rules that no capture has proven."""
    clear: tuple[ClearView, ...] = msgspec.field(name="ruled_out")
    """Causes that the evidence speaks against."""
    cannot_tell: tuple[CannotTellView, ...] = msgspec.field(name="needs_evidence")
    """Causes that it leaves open, with what would tell."""
    doubts: tuple[Doubt, ...] = msgspec.field(name="warnings")
    """Weaknesses of the evidence itself."""
    roofline: RooflineView | None
    """The step and its parts against bandwidth and compute."""
    kernels: tuple[KernelView, ...]
    """Kernels of a traced step."""
    levels: tuple[LevelView, ...]
    """Load levels as the client saw them."""
    levers: tuple[LeverView, ...]
    """Changes tried, as a table states them."""
    timeline: Timeline | None
    """Series over the time of the run."""
    provenance: Provenance
    """Where it all came from."""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was concluded: run by run, then what the runs say together."""

    schema_version: int = SCHEMA_VERSION
    """Raised when a field changes its meaning or goes."""
    runs: tuple[RunDiagnosis, ...]
    """In order of time where all tell it; one run alone has the same shape."""
    chosen_run: str
    """Id of the run that the report speaks of."""
    chosen_because: str
    """Why that one: the heaviest load, then the latest, or asked for."""
    comparisons: tuple[RunsCompared, ...]
    """Runs that differ in one setting and share a load: the strongest evidence there is."""
    not_comparable: tuple[NotComparable, ...]
    """For each run that is in no comparison, the nearest other one, and why nothing follows."""
    repeats: tuple[Repeated, ...]
    """Runs that differ in nothing and share a load."""
    provenance: ReadTogether
    """What was read beside the runs' own files."""

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
