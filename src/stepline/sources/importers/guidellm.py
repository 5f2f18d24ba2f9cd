"""GuideLLM's JSON report (`guidellm/benchmark/schemas/`), schema versions 1 and 2.

Read with these reservations: its `time_per_output_token_ms` has the first token in it, so TPOT is its
`inter_token_latency_ms`; its two throughputs disagree, so tokens are counted again from the requests;
warm-up requests are in the list and are left out by the measured window; no token times are kept, so no gap
can be told.
"""

from collections.abc import Mapping
from typing import Any

from stepline.evidence.load import LoadLevel
from stepline.evidence.origin import Origin
from stepline.sources.importers.values import at, number, positive

TOOL = "guidellm"


def recognises(document: object) -> bool:
    """True for a report with benchmarks in it."""
    if not isinstance(document, Mapping) or not isinstance(document.get("benchmarks"), list):
        return False
    return any(isinstance(at(one, "metrics"), Mapping) for one in document["benchmarks"])


def read_levels(document: Mapping[str, Any], file: str) -> list[LoadLevel]:
    """One level a benchmark."""
    return [
        _level(one, Origin(file, None, f"benchmarks[{index}]"))
        for index, one in enumerate(document["benchmarks"])
        if isinstance(at(one, "metrics"), Mapping)
    ]


def _level(one: Mapping[str, Any], origin: Origin) -> LoadLevel:
    strategy = _strategy(one)
    window = _window(one)
    rows = _rows(one, window)
    seconds = window[1] - window[0] if window else None
    metrics: Mapping[str, Any] = one["metrics"]

    def stat(name: str, key: str = "mean") -> float | None:
        values = at(metrics, name, "successful")
        return positive(values, key) if isinstance(values, Mapping) else None

    def percentile(name: str, key: str) -> float | None:
        values = at(metrics, name, "successful", "percentiles")
        return positive(values, key) if isinstance(values, Mapping) else None

    tokens = _sum_of(rows, "output_tokens")
    made = tokens / seconds if rows and seconds and tokens else stat("output_tokens_per_second")
    errored = at(one, "requests", "errored")
    return LoadLevel(
        origin=origin,
        tool=TOOL,
        concurrency=number(strategy, "streams", "max_concurrency") or _of_kind(strategy),
        request_rate_s=positive(strategy, "rate") if "rate" in strategy else None,
        tok_s=made,
        tpot_ms=stat("inter_token_latency_ms"),
        tpot_p50_ms=stat("inter_token_latency_ms", "median"),
        tpot_p99_ms=percentile("inter_token_latency_ms", "p99"),
        ttft_ms=stat("time_to_first_token_ms"),
        ttft_p50_ms=stat("time_to_first_token_ms", "median"),
        ttft_p99_ms=percentile("time_to_first_token_ms", "p99"),
        e2e_ms=_times(stat("request_latency"), 1000),
        requests=len(rows) or None,
        failed=len(errored) if isinstance(errored, list) else None,
        duration_s=seconds or positive(one, "duration"),
        input_tokens=stat("prompt_token_count"),
        output_tokens=stat("output_token_count"),
        decoding=_decoding(rows, window) or _times(made, (stat("inter_token_latency_ms") or 0.0) / 1000),
        in_flight=stat("request_concurrency"),
        client_queue_ms=_times(number({"s": at(one, "scheduler_metrics", "queued_time_avg")}, "s"), 1000),
    )


def _strategy(one: Mapping[str, Any]) -> Mapping[str, Any]:
    for path in (("config", "strategy"), ("args", "strategy"), ("scheduler", "strategy")):
        found = at(one, *path)
        if isinstance(found, Mapping):
            return found
    return {}


def _of_kind(strategy: Mapping[str, Any]) -> float | None:
    return 1.0 if strategy.get("type_") == "synchronous" else None


def _window(one: Mapping[str, Any]) -> tuple[float, float] | None:
    """Unix seconds between which requests count as measured."""
    scheduler = at(one, "scheduler_metrics")
    if isinstance(scheduler, Mapping):
        start, end = number(scheduler, "measure_start_time"), number(scheduler, "measure_end_time")
        if start and end and end > start:
            return start, end
    start, end = number(one, "start_time"), number(one, "end_time")
    return (start, end) if start and end and end > start else None


def _rows(one: Mapping[str, Any], window: tuple[float, float] | None) -> list[Mapping[str, Any]]:
    """Successful requests that ended within the window."""
    rows = at(one, "requests", "successful")
    if not isinstance(rows, list) or window is None:
        return []
    kept = []
    for row in rows:
        timings = at(row, "info", "timings")
        end = number(timings, "request_end") if isinstance(timings, Mapping) else None
        if end is not None and window[0] <= end <= window[1]:
            kept.append(row)
    return kept


def _decoding(rows: list[Mapping[str, Any]], window: tuple[float, float] | None) -> float | None:
    """Mean number of streams between first and last token, cut to the window."""
    if window is None:
        return None
    spans = []
    for row in rows:
        timings = at(row, "info", "timings")
        first, last = (
            number(timings, "first_token_iteration", "first_iteration"),
            number(timings, "last_token_iteration", "last_iteration"),
        )
        if first is None or last is None:
            return None
        spans.append(max(0.0, min(last, window[1]) - max(first, window[0])))
    return sum(spans) / (window[1] - window[0]) if spans else None


def _sum_of(rows: list[Mapping[str, Any]], name: str) -> float:
    return sum(number(row, name) or 0.0 for row in rows)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor or None
