"""TensorRT-LLM: iteration lines (`print_iter_log`), and the list of iterations that `/metrics` answers.

The device time in an iteration line is that of the iteration before, and may be N/A. `host_step_time` is
the wall time of the iteration on the host, which is the step.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport
from stepline.sources.engine import DocumentReader, Engine
from stepline.sources.logs.logbook import LogBook
from stepline.sources.logs.template import Templates
from stepline.sources.scrape_time import from_comment

_RECOGNISE = re.compile(rb"\biter = \d+, .*host_step_time = |\[TRT-LLM\]")
_ITERATION = re.compile(
    r"iter = (?P<iter>\d+),.*?num_scheduled_requests\s*[=:] (?P<n>\d+),.*?"
    r"host_step_time = (?P<host>[\d.]+) ?ms"
)
_DEVICE = re.compile(r"prev_device_step_time = ([\d.]+) ?ms")
_STATE = re.compile(r"'(num_ctx_requests|num_ctx_tokens|num_generation_tokens)': (\d+)")
_USAGE = re.compile(r"kv_cache_util = ([\d.]+)")
_RANK = re.compile(r"\brank = (\d+)")
_STAMP = re.compile(r"timestamp = ([\d\- :.]+)")


class TensorRtLlmLog:
    """Collects one record an iteration of rank 0."""

    MARKS: ClassVar[tuple[str, ...]] = ("host_step_time",)
    TEMPLATES: ClassVar[Templates | None] = None

    def __init__(self, file: str) -> None:
        self.book = LogBook(file, "tensorrt-llm")

    @staticmethod
    def recognises(head: bytes) -> bool:
        """True when the opening bytes hold an iteration line or the engine's tag."""
        return _RECOGNISE.search(head) is not None

    def feed(self, number: int, line: str) -> None:
        """Take one line."""
        if "host_step_time" not in line:
            self.book.remarks.feed(number, line)
            return
        found = _ITERATION.search(line)
        if found is None:
            self.book.damage(number)
            return
        rank = _RANK.search(line)
        if rank and rank[1] != "0":
            return
        state = {name: int(value) for name, value in _STATE.findall(line)}
        device, usage = _DEVICE.search(line), _USAGE.search(line)
        host_ms = float(found["host"])
        stamp = _STAMP.search(line)
        scheduled = int(found["n"]) - state.get("num_ctx_requests", 0)
        self.book.add(
            DecodeReport(
                seq=self.book.next_seq(),
                origin=self.book.at(number),
                time_s=from_comment(f"# time {stamp[1]}") if stamp else None,
                instrument="step",
                running=max(0, scheduled),
                step_ms=host_ms,
                prefill_tokens=state.get("num_ctx_tokens"),
                pool_usage=float(usage[1]) if usage else None,
                forward_busy=min(1.0, float(device[1]) / host_ms) if device and host_ms > 0 else None,
            )
        )

    def finish(self) -> Run:
        """Everything read."""
        return self.book.finish()


def recognises_iterations(document: object) -> bool:
    """True for the JSON list that `/metrics` answers."""
    return (
        isinstance(document, list)
        and bool(document)
        and isinstance(document[0], Mapping)
        and {"iter", "iterLatencyMS"} <= set(document[0])
    )


def read_iterations(rows: list[Mapping[str, Any]], file: str) -> Run:
    """One record an iteration; its latency is wall time, its active requests include those in prefill."""
    decodes, metrics = [], []
    for index, row in enumerate(rows):
        origin = Origin(file, None, f"[{index}]")
        step, active = row.get("iterLatencyMS"), row.get("numActiveRequests")
        if not isinstance(step, int | float) or not isinstance(active, int):
            continue
        batching = row.get("inflightBatchingStats")
        batching = batching if isinstance(batching, Mapping) else {}
        prefills = batching.get("numContextRequests")
        cache = row.get("kvCacheStats")
        cache = cache if isinstance(cache, Mapping) else {}
        decodes.append(
            DecodeReport(
                seq=index + 1,
                origin=origin,
                instrument="step",
                running=active - prefills if isinstance(prefills, int) else active,
                queued=_whole(row.get("numQueuedRequests")),
                step_ms=float(step),
                prefill_tokens=_whole(batching.get("numCtxTokens")),
                pool_usage=_share(cache.get("usedNumBlocks"), cache.get("maxNumBlocks")),
            )
        )
        blocks, block_tokens = _whole(cache.get("maxNumBlocks")), _whole(cache.get("tokensPerBlock"))
        if index == len(rows) - 1 and blocks and block_tokens:
            metrics.append(EngineMetrics(origin=origin, kv_capacity_tokens=float(blocks * block_tokens)))
    return Run(decodes=tuple(decodes), metrics=tuple(metrics))


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _share(part: object, whole: object) -> float | None:
    return part / whole if isinstance(part, int) and isinstance(whole, int) and whole else None


ENGINE = Engine(
    name="tensorrt-llm",
    log=TensorRtLlmLog,
    documents=(DocumentReader("metrics scrape", recognises_iterations, read_iterations),),
)
