"""llama.cpp's server: timings of finished requests in the log, and `/metrics`.

A request's `eval time` is its own decode over its own tokens: with one slot busy that is the step, with
several it is the step as this request saw it. How many slots were busy is not in the line, so no batch is
claimed.
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from stepline.evidence.load import LoadLevel
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.sources.engine import Engine, MetricsReader
from stepline.sources.fold import fold
from stepline.sources.logs.logbook import LogBook
from stepline.sources.logs.template import Templates

PREFIX = "llamacpp:"
NAMES = {
    PREFIX + "requests_processing": "running",
    PREFIX + "requests_deferred": "queued",
    PREFIX + "prompt_tokens_total": "prefill_tokens",
    PREFIX + "tokens_predicted_total": "generated_tokens",
    PREFIX + "n_decode_total": "steps",
    PREFIX + "kv_cache_usage_ratio": "pool_usage",
    PREFIX + "kv_cache_tokens": "pool_tokens",
}
_RECOGNISE = re.compile(
    rb"slot +print_timing|llama_model_loader|llama_server|print_timings: +prompt eval time"
)
_EVAL = re.compile(
    r"(?<!prompt )\beval time = +([\d.]+) ms / +(\d+) (?:tokens|runs) +\( *([\d.]+) ms per token"
)
_SLOTS = re.compile(r"n_slots = (\d+)")
_CONTEXT = re.compile(r"n_ctx_(?:per_seq|slot) *= *(\d+)")


class LlamaCppLog:
    """Collects the decode of each finished request."""

    MARKS: ClassVar[tuple[str, ...]] = ("eval time =", "n_slots =", "n_ctx_")
    TEMPLATES: ClassVar[Templates | None] = None

    def __init__(self, file: str) -> None:
        self.book = LogBook(file, "llama.cpp")
        self._levels: list[LoadLevel] = []

    @staticmethod
    def recognises(head: bytes) -> bool:
        """True when the opening bytes hold a line only llama.cpp writes."""
        return _RECOGNISE.search(head) is not None

    def feed(self, number: int, line: str) -> None:
        """Take one line."""
        if "eval time =" in line and (found := _EVAL.search(line)):
            self._levels.append(
                LoadLevel(
                    origin=self.book.at(number),
                    tool="llama.cpp server",
                    requests=1,
                    output_tokens=float(found[2]),
                    tpot_ms=float(found[3]),
                )
            )
        elif slots := _SLOTS.search(line):
            self.book.settle({"max_running": int(slots[1])}, number)
        elif context := _CONTEXT.search(line):
            self.book.settle({"context_length": int(context[1])}, number)
        else:
            self.book.remarks.feed(number, line)

    def finish(self) -> Run:
        """Everything read; requests are kept as their mean, for none of them is a level by itself."""
        run = self.book.finish()
        if not self._levels:
            return run
        tokens = sum(level.output_tokens or 0.0 for level in self._levels)
        spent = sum((level.output_tokens or 0.0) * (level.tpot_ms or 0.0) for level in self._levels)
        level = LoadLevel(
            origin=self._levels[0].origin,
            tool="llama.cpp server",
            requests=len(self._levels),
            output_tokens=tokens / len(self._levels),
            tpot_ms=spent / tokens if tokens else None,
        )
        return Run(
            server=run.server, events=run.events, notices=run.notices, doubts=run.doubts, levels=(level,)
        )


def to_metrics(
    samples: Iterable[tuple[str, Mapping[str, str], float]], origin: Origin, time_s: float | None = None
) -> EngineMetrics:
    """Fold one scrape into a record."""
    return fold(samples, NAMES, origin, time_s)


ENGINE = Engine(
    name="llama.cpp",
    log=LlamaCppLog,
    metrics=MetricsReader(PREFIX, to_metrics),
)
