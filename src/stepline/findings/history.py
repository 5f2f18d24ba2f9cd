"""History: the ledger of a campaign as data. Reports draw it; agents read its JSON."""

from typing import Literal

import msgspec

from stepline.findings.comparison import KnobChange, Verdict
from stepline.findings.diagnosis import Doubt
from stepline.findings.together import Span

SCHEMA_VERSION = 1


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What a change did at one level. `speedup` above 1 is faster; the interval is 95 %."""

    at: str
    measure: str
    before: float
    after: float
    unit: Literal["ms", "tok/s"]
    speedup: float
    interval: Span
    verdict: Verdict


class CauseSettled(msgspec.Struct, frozen=True, kw_only=True):
    """A cause that a lever decides, by the number that decides it."""

    code: str
    name: str
    by: str


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One lever tried, or several pulled at once."""

    lever: str
    source: Literal["runs", "table"]
    """Two recorded servers, or a line of a table that somebody wrote."""
    before: str
    after: str
    knobs: tuple[KnobChange, ...]
    acts_on: str | None
    verdict: Verdict
    sentence: str
    low: Effect | None
    """At the lightest level that both measured; null where there was one level."""
    high: Effect
    rules_out: tuple[CauseSettled, ...]
    confirms: tuple[CauseSettled, ...]
    binds_next: str | None
    doubts: tuple[Doubt, ...]


class HistoryRun(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded server of the campaign."""

    name: str
    started_s: float | None
    repeats: str | None
    """The run that this one repeats: no setting differs and no speed does."""
    verdict: str


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a folder of runs says about what was tried."""

    schema_version: int = SCHEMA_VERSION
    sentence: str
    runs: tuple[HistoryRun, ...]
    entries: tuple[LedgerEntry, ...]
    ruled_out: tuple[CauseSettled, ...]
    """At the heaviest level that decided it; a cause that another lever confirms is not in it."""
    confirmed: tuple[CauseSettled, ...]
    not_compared: tuple[str, ...]
