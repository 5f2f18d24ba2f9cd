"""SGLang's server log, read line by line in one pass."""

import re
from typing import Any

import msgspec

from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.run import ReadingDoubt, Run
from stepline.evidence.scheduler import DecodeReport, EventKind, Notice, PrefillReport, SchedulerEvent
from stepline.evidence.server import ServerFacts
from stepline.sources.engines.sglang.batch_lines import parse_batch_line, parse_prefix
from stepline.sources.engines.sglang.settings import GIB, facts_from_settings, parse_server_args
from stepline.sources.redact import redact

MAX_TEXT = 400
_RECOGNISE = re.compile(rb"(?:Decode|Prefill) batch[.,\s]|server_args=|max_running_requests=\d|\bsglang\b")
_POOLS = re.compile(r"max_total_num_tokens=(\d+)")
_POOL_FIELD = re.compile(
    r"\b(chunked_prefill_size|max_prefill_tokens|max_running_requests|context_len)=(\d+)"
)
_WEIGHT = re.compile(r"Load weight end\..*?mem usage=([\d.]+) GB")
_WEIGHT_KIND = re.compile(r"Load weight end\..*?\bquant=([\w-]+)")
_KV = re.compile(r"KV Cache is allocated\..*?#tokens: (\d+), (.*)")
_KV_SIZE = re.compile(r"\b[KV]{1,2} size: ([\d.]+) ?GB")
_KV_DTYPE = re.compile(r"dtype: torch\.(\w+)")
_DECODE_GRAPH = re.compile(r"Capture (?:target decode )?(?:CUDA|cuda) graph")
_BS = re.compile(r"\bbs ?=? ?\[([\d, ]+)\]")
_RETRACT = re.compile(r"#retracted_reqs: (\d+)")
_HTTP_5XX = re.compile(r'"POST [^"]*" 5\d\d\b')
_NOTICE = re.compile(
    r"(?i)fall(?:ing)? ?back|sub-?optimal|disabled because|is disabled|not available|\bslow\b"
)

_EVENTS: tuple[tuple[str, EventKind], ...] = (
    ("The server is fired up and ready to roll", "ready"),
    ("Profiling starts", "profile-start"),
    ("Profiling done", "profile-end"),
    ("SIGTERM received", "shutdown"),
    ("#retracted_reqs:", "retraction"),
    ("OutOfMemoryError", "out-of-memory"),
    ("CUDA out of memory", "out-of-memory"),
    ("Entering DeepGEMM JIT", "jit-compile"),
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
        self._notices: dict[str, Notice] = {}
        self._arguments = ServerFacts()
        self._resolved: dict[str, Any] = {}
        self._damaged: list[Origin] = []

    @staticmethod
    def recognises(head: bytes) -> bool:
        """True when the opening bytes hold a line only SGLang writes."""
        return _RECOGNISE.search(head) is not None

    def feed(self, number: int, line: str) -> None:
        """Take one line; `number` counts from 1."""
        if " batch" in line and ("Decode batch" in line or "Prefill batch" in line):
            self._feed_batch(number, line)
        else:
            self._feed_other(number, line)

    def finish(self) -> Run:
        """Everything read, with damaged lines counted and the first one named."""
        doubts: tuple[ReadingDoubt, ...] = ()
        if self._damaged:
            first = self._damaged[0]
            text = f"{len(self._damaged)} damaged batch line(s) left out, the first at {first}"
            doubts = (ReadingDoubt(topic="damaged-lines", text=text, origin=first),)
        return Run(
            server=msgspec.structs.replace(self._arguments, **self._resolved),
            decodes=tuple(self._decodes),
            prefills=tuple(self._prefills),
            events=tuple(self._events),
            notices=tuple(self._notices.values()),
            doubts=doubts,
        )

    @property
    def damaged(self) -> int:
        """Batch lines that could not be read."""
        return len(self._damaged)

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _feed_batch(self, number: int, line: str) -> None:
        report = parse_batch_line(line, self._next(), Origin(self._file, number))
        if isinstance(report, DecodeReport):
            self._decodes.append(report)
        elif report is not None:
            self._prefills.append(report)
        else:
            self._damaged.append(Origin(self._file, number))

    def _feed_other(self, number: int, line: str) -> None:
        origin = Origin(self._file, number)
        for mark, kind in _EVENTS:
            if mark in line:
                self._event(kind, line, origin)
                break
        if "server_args=" in line:
            self._arguments = facts_from_settings(parse_server_args(line), self._file, number)
        elif "max_total_num_tokens=" in line:
            self._pools(line, origin)
        elif "Load weight end" in line:
            self._weights(line, origin)
        elif "KV Cache is allocated" in line:
            self._kv(line, origin)
        elif "Max running requests is reset to" in line:
            self._notice(line, origin, "other")
        if _DECODE_GRAPH.search(line):
            self._graph_sizes(line, origin)
        elif "HTTP/1" in line and _HTTP_5XX.search(line):
            self._event("disconnect", line, origin)
        elif _NOTICE.search(line) and "server_args=" not in line:
            self._notice(line, origin, None)

    def _event(self, kind: EventKind, line: str, origin: Origin) -> None:
        amount = None
        if kind == "retraction":
            count = _RETRACT.search(line)
            amount = float(count[1]) if count else None
        self._events.append(
            SchedulerEvent(
                seq=self._next(),
                origin=origin,
                kind=kind,
                text=redact(line.strip()[:MAX_TEXT]),
                time_s=parse_prefix(line).time_s,
                amount=amount,
            )
        )

    def _notice(self, line: str, origin: Origin, topic: Any) -> None:
        text = redact(line.split("] ", 1)[-1].strip()[:MAX_TEXT])
        key = text.split("Config file")[0][:80]
        seen = self._notices.get(key)
        if seen is not None:
            self._notices[key] = msgspec.structs.replace(seen, repeats=seen.repeats + 1)
            return
        if topic is None:
            lowered = text.lower()
            topic = (
                "untuned"
                if "optimal" in lowered
                else "fallback"
                if "fall" in lowered
                else "disabled"
                if "disabled" in lowered
                else "slow"
                if "slow" in lowered
                else "other"
            )
        self._notices[key] = Notice(origin=origin, text=text, topic=topic)

    def _pools(self, line: str, origin: Origin) -> None:
        pools = _POOLS.search(line)
        if pools:
            self._resolved["kv_capacity_tokens"] = Sourced(int(pools[1]), origin)
        fields = {name: int(value) for name, value in _POOL_FIELD.findall(line)}
        for name, field in (
            ("max_running_requests", "max_running"),
            ("context_len", "context_length"),
            ("chunked_prefill_size", "chunked_prefill_tokens"),
            ("max_prefill_tokens", "max_prefill_tokens"),
        ):
            if name in fields:
                self._resolved[field] = Sourced(fields[name], origin)
        self._resolved.setdefault("engine", Sourced("sglang", origin))

    def _weights(self, line: str, origin: Origin) -> None:
        usage = _WEIGHT.search(line)
        if usage:
            self._resolved["weight_bytes"] = Sourced(float(usage[1]) * GIB, origin)
        kind = _WEIGHT_KIND.search(line)
        if kind:
            self._resolved["quantization"] = Sourced(kind[1], origin)

    def _kv(self, line: str, origin: Origin) -> None:
        allocated = _KV.search(line)
        sizes = [float(value) for value in _KV_SIZE.findall(allocated[2])] if allocated else []
        if sizes:
            self._resolved["kv_pool_bytes"] = Sourced(sum(sizes) * GIB, origin)
        dtype = _KV_DTYPE.search(line)
        if dtype:
            self._resolved["kv_dtype"] = Sourced(dtype[1], origin)

    def _graph_sizes(self, line: str, origin: Origin) -> None:
        sizes = _BS.search(line)
        if sizes:
            self._resolved["decode_graph_sizes"] = Sourced(
                tuple(int(size) for size in sizes[1].split(",") if size.strip()), origin
            )
            self._resolved["decode_graphs"] = Sourced(value=True, origin=origin)
