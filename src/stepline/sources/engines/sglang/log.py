"""SGLang's server log, read line by line in one pass."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.run import ReadingDoubt, Run
from stepline.evidence.scheduler import DecodeReport, EventKind, PrefillReport, SchedulerEvent
from stepline.evidence.server import ServerFacts
from stepline.sources.engines.sglang.batch_lines import (
    HEAD,
    KNOWN_KEYS,
    PAIR,
    parse_batch_lines,
    parse_pairs,
    to_report,
)
from stepline.sources.engines.sglang.prefix import Prefix, parse_prefix
from stepline.sources.engines.sglang.settings import facts_from_settings, parse_server_args
from stepline.sources.engines.sglang.startup import settled
from stepline.sources.redact import excerpt
from stepline.sources.remarks import Remarks

_RECOGNISE = re.compile(
    rb"(?:Decode|Prefill) batch[.,\s]|server_args=(?:ServerArgs\(|\{)|max_running_requests=\d|\bsglang\b"
    rb"|Capture (?:target \w+ )?(?:CUDA|cuda) graph (?:begin|end|bs)|KV Cache is allocated\."
)
_RETRACT = re.compile(r"#retracted_reqs: (\d+)")
_HTTP_5XX = re.compile(r'"POST [^"]*" 5\d\d\b')
_STARTS_ANEW = re.compile(r"^\s*(?:\(\w+ pid=|\[|\{|\d{4}-\d\d-\d\d|[IWE]\d{4} |INFO|WARNING|ERROR)")
MAX_WRAPS = 4
"""A batch line of 400 characters wraps into four or five on a terminal of 80 to 100 columns."""
MAX_EVENTS = 10_000
"""Beyond this, events are counted into the last of their kind."""

EVENTS: tuple[tuple[str, EventKind], ...] = (
    ("The server is fired up and ready to roll", "ready"),
    ("Profiling starts", "profile-start"),
    ("Profiling done", "profile-end"),
    ("SIGTERM received", "shutdown"),
    ("#retracted_reqs:", "retraction"),
    ("OutOfMemoryError", "out-of-memory"),
    ("CUDA out of memory", "out-of-memory"),
    ("Entering DeepGEMM JIT", "jit-compile"),
    ("Try DeepGEMM JIT Compiling", "jit-compile"),
    ("Scheduler hit an exception", "crash"),
    ("Scheduler watchdog timeout", "crash"),
)


class SglangLog:
    """Collects records from the lines of one log file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._seq = 0
        self._decodes: list[DecodeReport] = []
        self._prefills: list[PrefillReport] = []
        self._events: list[SchedulerEvent] = []
        self._arguments = ServerFacts()
        self._starts: list[Origin] = []
        self._resolved: dict[str, Any] = {}
        self._remarks = Remarks(file)
        self._damaged: list[Origin] = []
        self._wrapped: tuple[int, list[str]] | None = None

    @staticmethod
    def recognises(head: bytes) -> bool:
        """True when the opening bytes hold a line only SGLang writes."""
        return _RECOGNISE.search(head) is not None

    def feed(self, number: int, line: str) -> None:
        """Take one line; `number` counts from 1."""
        if self._wrapped is not None and self._continues(line):
            return
        if " batch" in line and HEAD.search(line):
            self._feed_batch(number, line)
        else:
            self._feed_other(number, line)

    def finish(self) -> Run:
        """Everything read, with damaged lines counted and the first one named."""
        self._unwrap()
        doubts: list[ReadingDoubt] = []
        if self._damaged:
            first = self._damaged[0]
            text = f"{len(self._damaged)} damaged batch line(s) left out, the first at {first}"
            doubts.append(ReadingDoubt(topic="damaged-lines", text=text, origin=first))
        if len(self._starts) > 1:
            text = (
                f"the server was started {len(self._starts)} times in this log, last at "
                f"{self._starts[-1]}: the settings are those of the last start, records before it are not its"
            )
            doubts.append(ReadingDoubt(topic="restart", text=text, origin=self._starts[-1]))
        return Run(
            server=msgspec.structs.replace(self._arguments, **self._resolved),
            decodes=tuple(self._decodes),
            prefills=tuple(self._prefills),
            events=tuple(self._events),
            notices=self._remarks.finish(),
            doubts=tuple(doubts),
        )

    @property
    def damaged(self) -> int:
        """Batch lines that could not be read."""
        return len(self._damaged)

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _feed_batch(self, number: int, line: str) -> None:
        messages = list(parse_batch_lines(line))
        for kind, prefix, pairs in messages[:-1]:
            self._take(number, kind, prefix, pairs)
        kind, prefix, pairs = messages[-1]
        if "#queue-req" in pairs:
            self._take(number, kind, prefix, pairs)
        else:
            self._wrapped = (number, [line])

    def _continues(self, line: str) -> bool:
        """True when the line was taken as the continuation of a batch line that a terminal wrapped."""
        if self._wrapped is None:
            return False
        number, parts = self._wrapped
        if len(parts) > MAX_WRAPS or not line.strip() or _STARTS_ANEW.match(line) or HEAD.search(line):
            self._unwrap()
            return False
        joined = max((parts[0] + gap + line for gap in ("", " ")), key=_known_pairs)
        if not PAIR.search(line) and _known_pairs(joined) <= _known_pairs(parts[0]):
            self._unwrap()
            return False
        self._wrapped = (number, [joined, *parts[1:], line])
        if "#queue-req" in parse_pairs(joined):
            self._unwrap()
        return True

    def _unwrap(self) -> None:
        """Take a batch line that is as whole as it will get."""
        if self._wrapped is None:
            return
        number, parts = self._wrapped
        self._wrapped = None
        kind, prefix, pairs = list(parse_batch_lines(parts[0]))[-1]
        self._take(number, kind, prefix, pairs)

    def _take(self, number: int, kind: str, prefix: Prefix, pairs: Mapping[str, str]) -> None:
        origin = Origin(self._file, number)
        report = to_report(kind, pairs, prefix, self._next(), origin)
        if isinstance(report, DecodeReport):
            self._decodes.append(report)
        elif report is not None:
            self._prefills.append(report)
        else:
            self._damaged.append(origin)
            return
        if "engine" not in self._resolved:
            self._resolved["engine"] = Sourced("sglang", origin)

    def _feed_other(self, number: int, line: str) -> None:
        if "HTTP/1" in line:
            if _HTTP_5XX.search(line):
                self._event("disconnect", line, number)
            return
        for mark, kind in EVENTS:
            if mark in line:
                self._event(kind, line, number)
                break
        origin = Origin(self._file, number)
        if "server_args=" in line:
            settings = parse_server_args(line)
            if settings:
                self._starts.append(origin)
                self._resolved = {}
                self._arguments = facts_from_settings(settings, self._file, number)
            return
        facts = settled(line)
        for field, value in facts.items():
            self._resolved[field] = Sourced(value, origin)
        if facts:
            self._resolved.setdefault("engine", Sourced("sglang", origin))
        if "Max running requests is reset to" in line:
            self._remarks.add(number, line, "other")
        else:
            self._remarks.feed(number, line)

    def _event(self, kind: EventKind, line: str, number: int) -> None:
        amount = None
        if kind == "retraction":
            count = _RETRACT.search(line)
            amount = float(count[1]) if count else None
        if len(self._events) >= MAX_EVENTS and self._count_into_last(kind, amount):
            return
        self._events.append(
            SchedulerEvent(
                seq=self._next(),
                origin=Origin(self._file, number),
                kind=kind,
                text=excerpt(line),
                time_s=parse_prefix(line[:200]).time_s,
                amount=amount,
            )
        )

    def _count_into_last(self, kind: EventKind, amount: float | None) -> bool:
        for index in range(len(self._events) - 1, -1, -1):
            event = self._events[index]
            if event.kind == kind:
                total = (
                    None if event.amount is None and amount is None else (event.amount or 0) + (amount or 0)
                )
                self._events[index] = msgspec.structs.replace(event, repeats=event.repeats + 1, amount=total)
                return True
        return False


def _known_pairs(text: str) -> int:
    """How many pairs of an SGLang batch line a text holds: keys of its own form, not chance matches."""
    return sum(1 for match in PAIR.finditer(text) if match["key"].strip() in KNOWN_KEYS)
