"""vLLM's server log, read line by line in one pass."""

import re
from typing import ClassVar

import msgspec

from stepline.evidence.run import Run
from stepline.evidence.scheduler import EventKind
from stepline.sources.engines.vllm import stat_lines, templates
from stepline.sources.engines.vllm.settings import facts_from_settings, parse_arguments, parse_dump
from stepline.sources.engines.vllm.startup import RULES, settled
from stepline.sources.logs.logbook import GPU_FAULTS, LogBook
from stepline.sources.logs.template import Templates

_RECOGNISE = re.compile(
    rb"Avg prompt throughput: [\d.]+ tokens/s|iteration elapsed time: [\d.]+ ms|vLLM API server version"
    rb"|\bLLM engine \(v\d|\(EngineCore\w* pid=\d+\)|\(APIServer pid=\d+\)"
    rb"|KV cache size: [\d,]+ tokens|Unpadded Tokens \| Padded Tokens|SpecDecoding metrics:"
)
_PREEMPTED = re.compile(r"Sequence group \S+ is preempted by")
_PROCESS = re.compile(r"\(APIServer pid=(\d{1,10})\)")
_HTTP_5XX = re.compile(r'"POST [^"]*" 5\d\d\b')

EVENTS: tuple[tuple[str, EventKind], ...] = (
    ("Application startup complete", "ready"),
    ("Shutting down", "shutdown"),
    ("EngineCore encountered a fatal error", "crash"),
    ("EngineDeadError", "crash"),
    ("EngineCore encountered an issue", "crash"),
    ("CUDA out of memory", "out-of-memory"),
    ("OutOfMemoryError", "out-of-memory"),
    ("Starting profiler", "profile-start"),
    ("Stopping profiler", "profile-end"),
    ("DeepGEMM JIT", "jit-compile"),
    *GPU_FAULTS,
)


class VllmLog:
    """Collects records from the lines of one log file."""

    MARKS: ClassVar[tuple[str, ...]] = (
        *("Avg prompt throughput", "iteration elapsed time", "SpecDecoding metrics:", "Speculative metrics:"),
        *(
            "LLM engine (v",
            "non-default args",
            "args: Namespace",
            "API server version",
            "is preempted by",
            "| ",
        ),
        *(mark for mark, _ in EVENTS),
        *(mark for mark, _, _ in RULES),
    )
    """A line without any of these, and that is no remark, tells nothing."""
    STARTS: ClassVar[tuple[str, ...]] = (
        "vLLM API server version",
        "non-default args",
        "args: Namespace",
        *("Model loading took", "model weights took", "Available KV cache memory", "KV cache size:"),
        EVENTS[0][0],
    )
    TEMPLATES: ClassVar[Templates | None] = templates

    def __init__(self, file: str) -> None:
        self.book = LogBook(file, "vllm")

    @staticmethod
    def recognises(head: bytes) -> bool:
        """True when the opening bytes hold a line only vLLM writes."""
        return _RECOGNISE.search(head) is not None

    def feed(self, number: int, line: str) -> None:
        """Take one line; `number` counts from 1."""
        if "Avg prompt throughput" in line:
            self._stats(number, line)
        elif "iteration elapsed time" in line:
            self._iteration(number, line)
        elif "SpecDecoding metrics:" in line or "Speculative metrics:" in line:
            self._acceptance(line)
        elif "| " in line and (use := stat_lines.parse_graph_row(line, self.book.at(number))):
            self.book.graph_uses.append(use)
        else:
            self._other(number, line)

    def finish(self) -> Run:
        """Everything read."""
        return self.book.finish()

    def _stats(self, number: int, line: str) -> None:
        report = stat_lines.parse_stats(line, self.book.next_seq(), self.book.at(number))
        if report is None:
            self.book.damage(number)
            return
        self.book.add(report)
        if preempted := stat_lines.preemptions(line):
            self.book.event("retraction", line, number, report.time_s, float(preempted))

    def _iteration(self, number: int, line: str) -> None:
        found = stat_lines.ITERATION.search(line)
        if found is None:
            self.book.damage(number)
        elif report := stat_lines.parse_iteration(line, self.book.next_seq(), self.book.at(number)):
            self.book.add(report)

    def _acceptance(self, line: str) -> None:
        """The line follows its engine's state in the same tick and belongs to that record."""
        decodes = self.book.decodes
        if not decodes or decodes[-1].instrument != "interval" or decodes[-1].accept_rate is not None:
            return
        length, rate = stat_lines.acceptance(line)
        decodes[-1] = msgspec.structs.replace(decodes[-1], accept_length=length, accept_rate=rate)

    def _other(self, number: int, line: str) -> None:
        if "HTTP/1" in line:
            if _HTTP_5XX.search(line):
                self._event("disconnect", line, number)
            return
        if "LLM engine (v" in line and (settings := parse_dump(line)):
            self.book.begin(number)
            self.book.configure(facts_from_settings(settings, self.book.file, number))
            return
        if "args: " in line and (arguments := parse_arguments(line)):
            self.book.begin(number, arguments)
            self.book.process = process[1] if (process := _PROCESS.search(line)) else None
            self.book.ask(facts_from_settings(arguments, self.book.file, number))
            return
        if "vLLM API server version" in line:
            self.book.begin(number)
        for mark, kind in EVENTS:
            if mark in line:
                self._event(kind, line, number)
                break
        if "is preempted by" in line and _PREEMPTED.search(line):
            self._event("retraction", line, number, 1.0)
        if facts := settled(line):
            self.book.settle(facts, number)
        self.book.remarks.feed(number, line)

    def _event(self, kind: EventKind, line: str, number: int, amount: float | None = None) -> None:
        self.book.event(kind, line, number, stat_lines.time_of(line[:120]), amount)
