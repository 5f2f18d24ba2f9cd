"""Comparison: the verdict on a change as data. Reports draw it; CI and agents read its JSON."""

from typing import Literal

import msgspec

from stepline.findings.diagnosis import Doubt, TargetView
from stepline.findings.together import Span

SCHEMA_VERSION = 1

Verdict = Literal["better", "worse", "same", "inconclusive"]


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a side: what was read, and when it began (seconds since the epoch, by the log's or client's clock)."""

    read: tuple[str, ...]
    started_s: float | None


class CauseView(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of one side's diagnosis."""

    code: str
    name: str
    status: str
    headline: str


class SideView(msgspec.Struct, frozen=True, kw_only=True):
    """One side: the server, its runs, and what its diagnosis says."""

    target: TargetView
    runs: tuple[RunView, ...]
    verdict: str
    findings: tuple[CauseView, ...]


class KnobChange(msgspec.Struct, frozen=True, kw_only=True):
    """A setting in which the sides differ, and the rule codes of causes that it acts on; null is not known."""

    name: str
    before: str | None
    after: str | None
    acts_on: str | None
    causes: tuple[str, ...]


class ComparedLine(msgspec.Struct, frozen=True, kw_only=True):
    """One level by one instrument. `speedup` is speed after over speed before: above 1 is faster."""

    measure: Literal["time per token", "rate"]
    unit: Literal["ms", "tok/s"]
    instrument: str
    at: str
    level: float
    context: float | None
    before: float
    after: float
    runs: tuple[int, int]
    windows: tuple[int, int]
    speedup: float
    interval: Span
    """95 %, of this line alone."""
    simultaneous: Span
    """Holds for all lines at once with 95 %; better or worse is said only where it leaves out 1."""
    verdict: Verdict
    drift: tuple[float | None, float | None]
    """How much faster the last run of a side was than its first, as a share; null for one run."""
    runs_to_settle: int | None
    """Runs a side after which any true difference gives a verdict; null for over 100."""


class ComponentChange(msgspec.Struct, frozen=True, kw_only=True):
    """One component of a traced decode step on both sides, in ms a step; null where a side shows none."""

    component: str
    before_ms: float | None
    after_ms: float | None
    change_ms: float


class PredictedView(msgspec.Struct, frozen=True, kw_only=True):
    """What the diagnosis of BEFORE promised for removing a cause, beside what AFTER measured."""

    code: str
    name: str
    because: str
    """Why this finding: the setting that acts on it changed, or it is gone."""
    measure: str
    unit: Literal["ms", "tok/s"]
    predicted: float
    interval: Span | None
    measured: float | None
    inside: bool | None
    """Whether the measured value lies in the predicted interval; null without either."""


class BindsNext(msgspec.Struct, frozen=True, kw_only=True):
    """What limits after the change: as predicted before, and as AFTER's own diagnosis finds."""

    predicted: str | None
    measured: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was concluded about a change."""

    schema_version: int = SCHEMA_VERSION
    verdict: Verdict
    sentence: str
    margin: float
    """Share of change that counts as none; also the effect of interest."""
    margin_reason: str
    covers: str
    """What the intervals cover, and what they take on trust."""
    more_runs: int | None
    """Further runs a side that would settle an inconclusive verdict; null when settled, or over 100."""
    order: str | None
    """The runs in order of time, A before and B after; null where clocks do not tell."""
    before: SideView
    after: SideView
    knobs: tuple[KnobChange, ...]
    lines: tuple[ComparedLine, ...]
    accounting: tuple[ComponentChange, ...]
    accounting_missing: str | None
    predictions: tuple[PredictedView, ...]
    binds_next: BindsNext
    gone: tuple[str, ...]
    """Codes found before and not after."""
    appeared: tuple[str, ...]
    stayed: tuple[str, ...]
    left_out: tuple[str, ...]
    doubts: tuple[Doubt, ...]
