"""Dynamo: front-end `/metrics`, and the transfers of KV cache between prefill and decode in worker logs."""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import TransferReport
from stepline.sources.engine import Engine, MetricsReader
from stepline.sources.fold import fold
from stepline.sources.logs.logbook import LogBook
from stepline.sources.logs.template import Templates
from stepline.sources.scrape_time import from_name

PREFIX = "dynamo_frontend_"
NAMES = {
    PREFIX + "queued_requests": "queued",
    PREFIX + "inter_token_latency_seconds_sum": "itl_sum_s",
    PREFIX + "inter_token_latency_seconds_count": "itl_count",
    PREFIX + "time_to_first_token_seconds_sum": "ttft_sum_s",
    PREFIX + "time_to_first_token_seconds_count": "ttft_count",
    PREFIX + "request_duration_seconds_sum": "e2e_sum_s",
    PREFIX + "request_duration_seconds_count": "e2e_count",
    PREFIX + "output_sequence_tokens_sum": "generated_tokens",
}
_WRITE = re.compile(r"nixl\.(?:write|read)_blocks: Total time for (?:write|read): ([\d.]+) ms")


class DynamoLog:
    """Collects transfers; batch lines in the same file are the engine's own, which reads them."""

    MARKS: ClassVar[tuple[str, ...]] = ("nixl.",)
    TEMPLATES: ClassVar[Templates | None] = None

    def __init__(self, file: str) -> None:
        self.book = LogBook(file, "dynamo")

    @staticmethod
    def recognises(head: bytes) -> bool:
        """True when the opening bytes hold a transfer."""
        return b"nixl.write_blocks" in head or b"nixl.read_blocks" in head

    def feed(self, number: int, line: str) -> None:
        """Take one line."""
        if "nixl." in line and (found := _WRITE.search(line)):
            self.book.transfers.append(
                TransferReport(
                    origin=self.book.at(number),
                    time_s=from_name(line[:40].replace("/", "-")),
                    duration_ms=float(found[1]),
                )
            )

    def finish(self) -> Run:
        """Everything read."""
        return self.book.finish()


def to_metrics(
    samples: Iterable[tuple[str, Mapping[str, str], float]], origin: Origin, time_s: float | None = None
) -> EngineMetrics:
    """Fold one scrape into a record."""
    return fold(samples, NAMES, origin, time_s)


ENGINE = Engine(
    name="dynamo",
    log=DynamoLog,
    metrics=MetricsReader(PREFIX, to_metrics),
)
