"""What every log reader writes into while it reads: records in order, facts, remarks, damage."""

from collections.abc import Mapping
from typing import Any

import msgspec

from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.run import ReadingDoubt, Run
from stepline.evidence.scheduler import (
    DecodeReport,
    EventKind,
    GraphUse,
    PrefillReport,
    SchedulerEvent,
    TransferReport,
)
from stepline.evidence.server import ServerFacts
from stepline.sources.logs.remarks import Remarks
from stepline.sources.redact import excerpt

GPU_FAULTS: tuple[tuple[str, EventKind], ...] = (
    ("NVRM: Xid", "gpu-fault"),
    ("ncorrectable ECC", "gpu-fault"),
    ("allen off the bus", "gpu-fault"),
    ("CUDA error: unspecified launch failure", "gpu-fault"),
    ("CUDA error: an illegal memory access", "gpu-fault"),
)
"""Words of the driver and the CUDA runtime, the same in every engine's log."""
MAX_EVENTS = 10_000
"""Beyond this, events are counted into the last of their kind."""


class LogBook:
    """Records of one log file as one engine wrote it."""

    def __init__(self, file: str, engine: str) -> None:
        self.file = file
        self.engine = engine
        self.decodes: list[DecodeReport] = []
        self.prefills: list[PrefillReport] = []
        self.graph_uses: list[GraphUse] = []
        self.transfers: list[TransferReport] = []
        self.remarks = Remarks(file)
        self._events: list[SchedulerEvent] = []
        self._seq = 0
        self._asked = self._settings = ServerFacts()
        self._starts: list[Origin] = []
        self._settled: dict[str, Any] = {}
        self._damaged: list[Origin] = []

    def at(self, number: int) -> Origin:
        """The origin of a line."""
        return Origin(self.file, number)

    def next_seq(self) -> int:
        """The place of the next record in the order of the log."""
        self._seq += 1
        return self._seq

    def add(self, report: DecodeReport | PrefillReport) -> None:
        """Keep a record of the scheduler; the first one settles which engine this is."""
        if isinstance(report, DecodeReport):
            self.decodes.append(report)
        else:
            self.prefills.append(report)
        if "engine" not in self._settled:
            self._settled["engine"] = Sourced(self.engine, report.origin)

    def begin(self, number: int) -> None:
        """A server started here; what an earlier start settled holds no longer."""
        self._starts.append(self.at(number))
        self._asked = self._settings = ServerFacts()
        self._settled = {}

    def ask(self, settings: ServerFacts) -> None:
        """What the command line asked for: it counts where the engine resolved nothing."""
        self._asked = settings

    def configure(self, settings: ServerFacts) -> None:
        """The engine's own list of settings."""
        self._settings = settings

    def settle(self, facts: Mapping[str, Any], number: int) -> None:
        """Facts that this line resolves; they outrank settings."""
        origin = self.at(number)
        for field, value in facts.items():
            self._settled[field] = Sourced(value, origin)
        if facts:
            self._settled.setdefault("engine", Sourced(self.engine, origin))

    def damage(self, number: int) -> None:
        """A line that should have been a record and could not be read."""
        self._damaged.append(self.at(number))

    def event(
        self, kind: EventKind, line: str, number: int, time_s: float | None, amount: float | None = None
    ) -> None:
        """Something that happened once."""
        if len(self._events) >= MAX_EVENTS and self._count_into_last(kind, amount):
            return
        self._events.append(
            SchedulerEvent(
                seq=self.next_seq(),
                origin=self.at(number),
                kind=kind,
                text=excerpt(line),
                time_s=time_s,
                amount=amount,
            )
        )

    @property
    def damaged(self) -> int:
        """Lines that could not be read."""
        return len(self._damaged)

    def finish(self) -> Run:
        """Everything read, with damaged lines counted and the first one named."""
        doubts: list[ReadingDoubt] = []
        if self._damaged:
            first = self._damaged[0]
            text = f"{len(self._damaged)} damaged batch line(s) left out, the first at {first}"
            doubts.append(ReadingDoubt(topic="damaged-lines", text=text, origin=first))
        if len(self._starts) > 1:
            last = self._starts[-1]
            text = (
                f"the server was started {len(self._starts)} times in this log, last at {last}: "
                "the settings are those of the last start, records before it are not its"
            )
            doubts.append(ReadingDoubt(topic="restart", text=text, origin=last))
        return Run(
            server=self._server(),
            decodes=tuple(self.decodes),
            prefills=tuple(self.prefills),
            events=tuple(self._events),
            notices=self.remarks.finish(),
            graph_uses=tuple(self.graph_uses),
            transfers=tuple(self.transfers),
            doubts=tuple(doubts),
        )

    def _server(self) -> ServerFacts:
        said = {
            field: value
            for field in ServerFacts.__struct_fields__
            if (value := getattr(self._settings, field)) is not None
        }
        return msgspec.structs.replace(self._asked, **{**said, **self._settled})

    def _count_into_last(self, kind: EventKind, amount: float | None) -> bool:
        for index in range(len(self._events) - 1, -1, -1):
            event = self._events[index]
            if event.kind == kind:
                known = event.amount is not None or amount is not None
                total = (event.amount or 0) + (amount or 0) if known else None
                self._events[index] = msgspec.structs.replace(event, repeats=event.repeats + 1, amount=total)
                return True
        return False
