"""SGLang's server log, read line by line in one pass."""

import re
from collections.abc import Mapping
from typing import ClassVar

from stepline.evidence.run import Run
from stepline.evidence.scheduler import EventKind, TransferReport
from stepline.sources.engines.sglang import templates
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
from stepline.sources.engines.sglang.startup import READERS, settled
from stepline.sources.logs.logbook import GPU_FAULTS, LogBook
from stepline.sources.logs.template import MAX_WRAPS, Templates

_RECOGNISE = re.compile(
    rb"(?:Decode|Prefill) batch[.,\s]|server_args=(?:ServerArgs\(|\{)|max_running_requests=\d"
    rb"|\bsglang[./:](?:srt|launch_server|:)|\bsglang serve\b"
    rb"|Capture (?:target \w+ )?(?:CUDA|cuda) graph (?:begin|end|bs)|KV Cache is allocated\."
)
_RETRACT = re.compile(r"#retracted_reqs: (\d+)")
_HTTP_5XX = re.compile(r'"POST [^"]*" 5\d\d\b')
_STARTS_ANEW = re.compile(r"^\s*(?:\(\w+ pid=|\[|\{|\d{4}-\d\d-\d\d|[IWE]\d{4} |INFO|WARNING|ERROR)")
_MOONCAKE = re.compile(r"Transfer Engine Throughput: ([\d.]+) ([KMG]?B)/s")
_SCALES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9}
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
    *GPU_FAULTS,
)


class SglangLog:
    """Collects records from the lines of one log file."""

    MARKS: ClassVar[tuple[str, ...]] = (
        " batch",
        "server_args=",
        "Transfer Engine",
        *(mark for mark, _ in EVENTS),
        *(mark for mark, _ in READERS),
    )
    """A line without any of these, and that is no remark, tells nothing."""
    STARTS: ClassVar[tuple[str, ...]] = (
        *("server_args=", "Load weight end", "KV Cache is allocated", "max_total_num_tokens="),
        EVENTS[0][0],
    )
    TEMPLATES: ClassVar[Templates | None] = templates

    def __init__(self, file: str) -> None:
        self.book = LogBook(file, "sglang")
        self._wrapped: tuple[int, list[str]] | None = None

    @staticmethod
    def recognises(head: bytes) -> bool:
        """True when the opening bytes hold a line only SGLang writes."""
        return _RECOGNISE.search(head) is not None

    def feed(self, number: int, line: str) -> None:
        """Take one line; `number` counts from 1."""
        if self._wrapped is not None and self._continues(line):
            return
        if " batch" not in line or not self._feed_batch(number, line):
            self._feed_other(number, line)

    def finish(self) -> Run:
        """Everything read."""
        self._unwrap()
        return self.book.finish()

    def _feed_batch(self, number: int, line: str) -> bool:
        """Take the batch messages of a line; False when it has none."""
        messages = list(parse_batch_lines(line))
        if not messages:
            return False
        for kind, prefix, pairs in messages[:-1]:
            self._take(number, kind, prefix, pairs)
        kind, prefix, pairs = messages[-1]
        if "#queue-req" in pairs:
            self._take(number, kind, prefix, pairs)
        else:
            self._wrapped = (number, [line])
        return True

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
        report = to_report(kind, pairs, prefix, self.book.next_seq(), self.book.at(number))
        if report is None:
            self.book.damage(number)
        else:
            self.book.add(report)

    def _feed_other(self, number: int, line: str) -> None:
        if "Transfer Engine Throughput" in line and (rate := _MOONCAKE.search(line)):
            self.book.transfers.append(
                TransferReport(origin=self.book.at(number), bytes_s=float(rate[1]) * _SCALES[rate[2]])
            )
            return
        if "HTTP/1" in line:
            if _HTTP_5XX.search(line):
                self.book.event("disconnect", line, number, parse_prefix(line[:200]).time_s)
            return
        for mark, kind in EVENTS:
            if mark in line:
                count = _RETRACT.search(line) if kind == "retraction" else None
                amount = float(count[1]) if count else None
                self.book.event(kind, line, number, parse_prefix(line[:200]).time_s, amount)
                break
        if "server_args=" in line:
            if settings := parse_server_args(line):
                self.book.begin(number, settings)
                self.book.configure(facts_from_settings(settings, self.book.file, number))
            return
        if facts := settled(line):
            self.book.settle(facts, number)
        if "Max running requests is reset to" in line:
            self.book.remarks.add(number, line, "other")
        else:
            self.book.remarks.feed(number, line)


def _known_pairs(text: str) -> int:
    """How many pairs of an SGLang batch line a text holds: keys of its own form, not chance matches."""
    return sum(1 for match in PAIR.finditer(text) if match["key"].strip() in KNOWN_KEYS)
