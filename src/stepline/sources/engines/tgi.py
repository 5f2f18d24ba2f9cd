"""Text Generation Inference: `/metrics` and two start-up lines; its log says nothing of batches."""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.sources.engine import Engine, MetricsReader
from stepline.sources.fold import fold
from stepline.sources.logs.logbook import LogBook
from stepline.sources.logs.template import Templates

PREFIX = "tgi_"
NAMES = {
    PREFIX + "batch_current_size": "running",
    PREFIX + "queue_size": "queued",
    PREFIX + "request_generated_tokens_sum": "generated_tokens",
    PREFIX + "request_success": "finished_requests",
    PREFIX + "request_queue_duration_sum": "queue_sum_s",
    PREFIX + "request_queue_duration_count": "queue_count",
    PREFIX + "request_duration_sum": "e2e_sum_s",
    PREFIX + "request_duration_count": "e2e_count",
}
_SIZES = re.compile(r"Cuda Graphs are enabled for sizes \[([\d, ]+)\]")
_POOL = re.compile(r"Setting max batch total tokens to (\d+)")


class TgiLog:
    """Collects what the start-up lines settle."""

    MARKS: ClassVar[tuple[str, ...]] = ("Cuda Graphs are", "Setting max batch total tokens")
    TEMPLATES: ClassVar[Templates | None] = None

    def __init__(self, file: str) -> None:
        self.book = LogBook(file, "tgi")

    @staticmethod
    def recognises(head: bytes) -> bool:
        """True when the opening bytes hold a line only this engine writes."""
        return b"text_generation_launcher" in head or b"text_generation_router" in head

    def feed(self, number: int, line: str) -> None:
        """Take one line."""
        if sizes := _SIZES.search(line):
            listed = tuple(sorted(int(size) for size in sizes[1].split(",") if size.strip()))
            self.book.settle({"decode_graphs": True, "decode_graph_sizes": listed}, number)
        elif "Cuda Graphs are disabled" in line:
            self.book.settle({"decode_graphs": False}, number)
        elif pool := _POOL.search(line):
            self.book.settle({"kv_capacity_tokens": int(pool[1])}, number)
        else:
            self.book.remarks.feed(number, line)

    def finish(self) -> Run:
        """Everything read."""
        return self.book.finish()


def to_metrics(
    samples: Iterable[tuple[str, Mapping[str, str], float]], origin: Origin, time_s: float | None = None
) -> EngineMetrics:
    """Fold one scrape into a record."""
    return fold(samples, NAMES, origin, time_s)


ENGINE = Engine(
    name="tgi",
    log=TgiLog,
    metrics=MetricsReader(PREFIX, to_metrics),
)
