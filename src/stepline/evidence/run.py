"""Run: everything that was read about one server, and how runs are joined."""

from typing import Any, Literal

import msgspec

from stepline.evidence.gpu import GpuSample
from stepline.evidence.load import LeverTrial, LoadLevel, StepRow
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.scheduler import (
    DecodeReport,
    GraphUse,
    Notice,
    PrefillReport,
    SchedulerEvent,
    TransferReport,
)
from stepline.evidence.server import ServerFacts
from stepline.evidence.start import Start
from stepline.evidence.trace import TraceSummary

SCHEMA_VERSION = 1
FileKind = Literal[
    "server log",
    "metrics scrape",
    "server info",
    "model config",
    "client levels",
    "load levels",
    "levers tried",
    "GPU samples",
    "profiler trace",
    "micro-benchmark",
    "environment",
    "launch command",
    "kernel summary",
]
"""What a file was taken for; a saved run says it in these words."""


class EvidenceFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file that was looked at: what it was taken for, or why it was passed over."""

    path: str
    kind: FileKind | None
    """None for a file that was passed over."""
    note: str | None = None
    records: int = 0
    damaged: int = 0


class ReadingDoubt(msgspec.Struct, frozen=True, kw_only=True):
    """Something about the evidence itself that weakens what follows from it."""

    topic: str
    text: str
    origin: Origin | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """All evidence about one server. Empty tuples and None mean not seen, never zero."""

    schema_version: int = SCHEMA_VERSION
    id: str = ""
    """A short name made from what tells this run from the others it was read with."""
    files: tuple[EvidenceFile, ...] = ()
    server: ServerFacts = ServerFacts()
    start: Start | None = None
    """Which start of which server this is about, as far as it is told."""
    model_config: Sourced[dict[str, Any]] | None = None
    decodes: tuple[DecodeReport, ...] = ()
    prefills: tuple[PrefillReport, ...] = ()
    events: tuple[SchedulerEvent, ...] = ()
    notices: tuple[Notice, ...] = ()
    graph_uses: tuple[GraphUse, ...] = ()
    transfers: tuple[TransferReport, ...] = ()
    metrics: tuple[EngineMetrics, ...] = ()
    levels: tuple[LoadLevel, ...] = ()
    stretches: tuple[DecodeReport, ...] = ()
    """What the client of a live recording saw while the set of decoding streams stayed the same."""
    step_rows: tuple[StepRow, ...] = ()
    levers: tuple[LeverTrial, ...] = ()
    gpu_samples: tuple[GpuSample, ...] = ()
    doubts: tuple[ReadingDoubt, ...] = ()
    trace: TraceSummary | None = None
    """Condensed from profiler traces of all ranks; a saved run never needs the traces again."""

    @property
    def empty(self) -> bool:
        """True when nothing was read that any rule could use."""
        return not (
            self.decodes
            or self.prefills
            or self.metrics
            or self.levels
            or self.step_rows
            or self.levers
            or self.gpu_samples
            or self.trace
            or self.transfers
        )
