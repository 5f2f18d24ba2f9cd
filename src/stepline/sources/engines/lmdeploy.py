"""LMDeploy: its periodic line (`lmdeploy/metrics/loggers.py`) and `/metrics`.

The line comes at fixed wall time: rates are means of the interval, running and waiting the state at its end.
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport
from stepline.sources.engine import Engine, MetricsReader
from stepline.sources.fold import fold
from stepline.sources.logs.logbook import LogBook
from stepline.sources.logs.template import Templates
from stepline.sources.scrape_time import from_name

PREFIX = "lmdeploy:"
NAMES = {
    PREFIX + "num_requests_running": "running",
    PREFIX + "num_requests_waiting": "queued",
    PREFIX + "gpu_cache_usage_perc": "pool_usage",
    PREFIX + "generation_tokens_total": "generated_tokens",
    PREFIX + "prompt_tokens_total": "prompt_tokens",
    PREFIX + "iteration_tokens_total_count": "steps",
    PREFIX + "iteration_tokens_total_sum": "step_tokens",
    PREFIX + "time_to_first_token_seconds_sum": "ttft_sum_s",
    PREFIX + "time_to_first_token_seconds_count": "ttft_count",
    PREFIX + "time_per_output_token_seconds_sum": "itl_sum_s",
    PREFIX + "time_per_output_token_seconds_count": "itl_count",
}
_MARK = "Avg thr (in/out):"
_LINE = re.compile(
    r"Avg thr \(in/out\): (?P<into>[\d.]+) / (?P<out>[\d.]+) tokens/s, .*?"
    r"Engine \(running/waiting\): (?P<running>\d+) / (?P<waiting>\d+)(?:, KV cache: (?P<usage>[\d.]+)%)?"
)
_HIT = re.compile(r"Prefix cache hit rate: ([\d.]+)%")
_RANK = re.compile(r"\bDP(\d+)\]")


class LmdeployLog:
    """Collects the periodic lines."""

    MARKS: ClassVar[tuple[str, ...]] = (_MARK,)
    TEMPLATES: ClassVar[Templates | None] = None

    def __init__(self, file: str) -> None:
        self.book = LogBook(file, "lmdeploy")

    @staticmethod
    def recognises(head: bytes) -> bool:
        """True when the opening bytes hold the periodic line."""
        return _MARK.encode() in head

    def feed(self, number: int, line: str) -> None:
        """Take one line."""
        if _MARK not in line:
            self.book.remarks.feed(number, line)
            return
        found = _LINE.search(line)
        if found is None:
            self.book.damage(number)
            return
        rank, hit = _RANK.search(line), _HIT.search(line)
        self.book.add(
            DecodeReport(
                seq=self.book.next_seq(),
                origin=self.book.at(number),
                time_s=from_name(line[: found.start()].replace("/", "-")),
                dp=int(rank[1]) if rank else None,
                instrument="interval",
                running=int(found["running"]),
                queued=int(found["waiting"]),
                tok_s=float(found["out"]),
                prefill_tok_s=float(found["into"]),
                pool_usage=float(found["usage"]) / 100 if found["usage"] else None,
                prefix_hit_share=float(hit[1]) / 100 if hit else None,
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
    name="lmdeploy",
    log=LmdeployLog,
    metrics=MetricsReader(PREFIX, to_metrics),
)
