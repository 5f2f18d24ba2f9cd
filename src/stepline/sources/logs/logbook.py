"""What every log reader writes into while it reads: records, facts, remarks and damage, one start after another."""

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
from stepline.evidence.start import Start
from stepline.sources.arguments import flat_arguments, port_of, served_names
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
BEFORE_SERVING = ("weight_bytes", "kv_pool_bytes", "kv_capacity_tokens")
ENDS: tuple[EventKind, ...] = ("shutdown", "crash", "out-of-memory")
"""A start that one of these ended is over."""
MIXED = "mixed"
"""Topic of the doubt about a log whose servers cannot be told apart."""
MAX_EVENTS = 10_000
"""Beyond this, events are counted into the last of their kind."""


class LogBook:
    """Records of one log file as one engine wrote it: those of the start that is being read, and the earlier ones."""

    def __init__(self, file: str, engine: str) -> None:
        self.file = file
        self.engine = engine
        self.earlier: list[Run] = []
        """The starts before this one, each with its own records and settings."""
        self._seq = 0
        self.starts = 0
        """How many starts were seen to begin."""
        self.process: str | None = None
        """The process that asked for the settings, as its lines name it."""
        self._open(None)

    def _open(self, start: Origin | None) -> None:
        self.decodes: list[DecodeReport] = []
        self.prefills: list[PrefillReport] = []
        self.graph_uses: list[GraphUse] = []
        self.transfers: list[TransferReport] = []
        self.remarks = Remarks(self.file)
        self._events: list[SchedulerEvent] = []
        self._asked = self._settings = ServerFacts()
        self._start = start
        self._arguments: dict[str, str] | None = None
        self._settled: dict[str, Any] = {}
        self._late: dict[str, Any] = {}
        """Settled since the last record: of this start when a record follows, of the next when that begins."""
        self._damaged: list[Origin] = []
        self._before_pause: tuple[Remarks, int] | None = None
        self._ready_at: int | None = None
        self._readies = 0
        self._beside: Origin | None = None
        self._mixed = False
        self.process = None

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
        if self._late:
            self._settled |= self._late
            self._late = {}
        if self._before_pause is not None:
            self.remarks, self._before_pause = self._before_pause[0], None

    def begin(self, number: int, arguments: Mapping[str, Any] | None = None) -> None:
        """A server started here, with these arguments where the line tells them.

        A new start is another run, whatever its arguments: records never cross it. While nothing was served yet, the
        same arguments come from another process of the same start.
        """
        told = None if arguments is None else flat_arguments(arguments)
        served = bool(self.decodes or self.prefills or self._readies)
        others = told is not None and self._arguments is not None and told != self._arguments
        if served or others:
            running = not served and not any(event.kind in ENDS for event in self._events)
            before = self._start
            self._late = {}  # what was settled since the last record is the new start's
            self._close()
            self._open(self.at(number))
            self.starts += 1
            # One server was still starting when another began: what follows may be of either.
            self._beside = before if running else None
        elif self._start is None:
            self._start = self.at(number)
            self.starts += 1
            self._asked = self._settings = ServerFacts()
            self._settled = {}
        if told is not None:
            self._arguments = told

    def pause(self) -> None:
        """Another engine starts in this log: its remarks and events are not of this one, unless this one goes on."""
        if self._before_pause is None:
            self._before_pause = (self.remarks, len(self._events))
            self.remarks = Remarks(self.file)

    def _close(self) -> None:
        self.earlier.append(self.finish())

    def ask(self, settings: ServerFacts) -> None:
        """What the command line asked for: it counts where the engine resolved nothing."""
        self._asked = settings

    def configure(self, settings: ServerFacts) -> None:
        """The engine's own list of settings."""
        self._settings = settings

    def settle(self, facts: Mapping[str, Any], number: int) -> None:
        """Facts that this line resolves; they outrank settings.

        Weights and pools are settled before anything is served: after it they are another start's.
        """
        if self.decodes and any(name in facts for name in BEFORE_SERVING):
            settled = any(name in self._settled for name in BEFORE_SERVING)
            if self._beside is not None or (self._start is not None and not settled):
                self._mixed = True  # it served before it had weights: another server did
            else:
                self.begin(number)
        origin = self.at(number)
        told = {field: Sourced(value, origin) for field, value in facts.items()}
        if self.decodes or self.prefills:
            self._late |= told
        else:
            self._settled |= told
        if told:
            self._settled.setdefault("engine", Sourced(self.engine, origin))

    def damage(self, number: int) -> None:
        """A line that should have been a record and could not be read."""
        self._damaged.append(self.at(number))

    def event(
        self, kind: EventKind, line: str, number: int, time_s: float | None, amount: float | None = None
    ) -> None:
        """Something that happened once."""
        if kind == "ready":
            self._ready(number)
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
        remarks, events = self._before_pause or (self.remarks, len(self._events))
        doubts: list[ReadingDoubt] = []
        if self._damaged:
            first = self._damaged[0]
            text = f"{len(self._damaged)} damaged batch line(s) left out, the first at {first}"
            doubts.append(ReadingDoubt(topic="damaged-lines", text=text, origin=first))
        if self._mixed or (self._beside is not None and self._readies > 1):
            text = (
                f"another server wrote into this log while the one of {self._start} started, without a prefix: "
                "their lines cannot be told apart; give each server a log of its own"
            )
            doubts.append(ReadingDoubt(topic=MIXED, text=text, origin=self._start))
        return Run(
            server=self._server(),
            start=self._told(),
            decodes=tuple(self.decodes),
            prefills=tuple(self.prefills),
            events=tuple(self._events[:events]),
            notices=remarks.finish(),
            graph_uses=tuple(self.graph_uses),
            transfers=tuple(self.transfers),
            doubts=tuple(doubts),
        )

    def _ready(self, number: int) -> None:
        """A server that served and becomes ready again was started anew, though its start is not in the log."""
        if self._beside is None and self._ready_at is not None and len(self.decodes) > self._ready_at:
            self._close()
            self._open(self.at(number))
        self._readies += 1
        self._ready_at = len(self.decodes)

    def _told(self) -> Start:
        times = [
            record.time_s
            for kind in (self.decodes, self.prefills, self._events)
            for record in kind
            if record.time_s is not None
        ]
        arguments = self._arguments or {}
        return Start(
            origin=self._start,
            arguments=arguments,
            process=self.process,
            names=served_names(arguments),
            port=port_of(arguments),
            first_s=min(times, default=None),
            last_s=max(times, default=None),
        )

    def _server(self) -> ServerFacts:
        said = {
            field: value
            for field in ServerFacts.__struct_fields__
            if (value := getattr(self._settings, field)) is not None
        }
        return msgspec.structs.replace(self._asked, **{**said, **self._settled, **self._late})

    def _count_into_last(self, kind: EventKind, amount: float | None) -> bool:
        for index in range(len(self._events) - 1, -1, -1):
            event = self._events[index]
            if event.kind == kind:
                known = event.amount is not None or amount is not None
                total = (event.amount or 0) + (amount or 0) if known else None
                self._events[index] = msgspec.structs.replace(event, repeats=event.repeats + 1, amount=total)
                return True
        return False
