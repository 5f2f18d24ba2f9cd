"""`vllm bench serve --save-result` and `bench sweep serve`, plain and detailed (`vllm/benchmarks/serve.py`).

Read with these reservations: `itl` is a gap between chunks; `max_concurrent_requests` counts requests that
touch a wall-clock second and is ignored; `max_output_tokens_per_s` counts chunks; the duration has ramp and
drain in it; latencies leave out the wait for the client's own slot, which newer versions keep in
`queue_times`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from stepline.evidence.load import LoadLevel
from stepline.evidence.origin import Origin
from stepline.sources.importers.values import local_time, mean, number, positive, ratio, whole, word

TOOL = "vllm bench serve"
SERVED_WITH = (
    "max_num_seqs",
    "max_num_batched_tokens",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "gpu_memory_utilization",
    "max_model_len",
    "enforce_eager",
    "kv_cache_dtype",
    "block_size",
    "enable_prefix_caching",
    "enable_chunked_prefill",
    "async_scheduling",
    "quantization",
    "dtype",
    "attention_backend",
)
"""Arguments of the server that `vllm bench sweep serve` varies and writes into each result
(`vllm/benchmarks/sweep/serve.py`: `run_data` holds both sides' parameters)."""


def recognises(document: object) -> bool:
    """True for one result object."""
    return isinstance(document, Mapping) and (
        {"total_output_tokens", "output_throughput", "request_throughput"} <= set(document)
        and bool({"total_token_throughput", "endpoint_type", "tokenizer_id"} & set(document))
    )


def read_level(document: Mapping[str, Any], origin: Origin) -> LoadLevel:
    """One run at one level."""
    return with_request_times(bench_level(document, origin, TOOL), document)


def bench_level(document: Mapping[str, Any], origin: Origin, tool: str) -> LoadLevel:
    """What the result block that vLLM's and SGLang's clients share says."""
    done = whole(document, "completed")
    tok_s, tpot = positive(document, "output_throughput"), positive(document, "mean_tpot_ms")
    return LoadLevel(
        origin=origin,
        tool=tool,
        concurrency=positive(document, "max_concurrency"),
        request_rate_s=positive(document, "request_rate"),
        tok_s=tok_s,
        requests_s=positive(document, "request_throughput"),
        tpot_ms=tpot,
        tpot_p50_ms=positive(document, "median_tpot_ms"),
        tpot_p99_ms=positive(document, "p99_tpot_ms"),
        ttft_ms=positive(document, "mean_ttft_ms"),
        ttft_p50_ms=positive(document, "median_ttft_ms"),
        ttft_p99_ms=positive(document, "p99_ttft_ms"),
        e2e_ms=positive(document, "mean_e2el_ms", "mean_e2e_latency_ms"),
        chunk_gap_ms=positive(document, "mean_itl_ms"),
        requests=done,
        failed=whole(document, "failed"),
        duration_s=positive(document, "duration"),
        input_tokens=ratio(number(document, "total_input_tokens"), done),
        output_tokens=ratio(number(document, "total_output_tokens"), done),
        decoding=tok_s * tpot / 1000 if tok_s and tpot else None,
        client_queue_ms=positive(document, "mean_client_queue_time_ms"),
        accept_length=positive(document, "spec_decode_acceptance_length", "accept_length"),
        start_s=positive(document, "benchmark_start_time_unix"),
        end_s=positive(document, "benchmark_end_time_unix"),
        model=word(document, "model_id", "model"),
        backend=word(document, "backend", "endpoint_type"),
        workload=word(document, "dataset_name"),
        url=word(document, "base_url"),
        wrote_s=local_time(document.get("date")),
        served_with=_served_with(document),
    )


def _served_with(document: Mapping[str, Any]) -> str | None:
    """The settings of the server that a sweep writes beside its result, under vLLM's own argument names."""
    told = [
        f"{name}={document[name]}"
        for name in SERVED_WITH
        if isinstance(document.get(name), str | int | float) and name in document
    ]
    return ", ".join(told) or None


def with_request_times(level: LoadLevel, document: Mapping[str, Any]) -> LoadLevel:
    """The same level with what only the per-request lists can tell; failed rows made nothing."""
    ends, firsts, lengths = (_numbers(document.get(name)) for name in ("latencies", "ttfts", "output_lens"))
    waits = _numbers(document.get("queue_times"))
    changes: dict[str, Any] = {}
    if waits:
        changes["client_queue_ms"] = (mean(waits) or 0.0) * 1000
    if ends and level.duration_s:
        changes["in_flight"] = sum(ends) / level.duration_s
    if not ends and (gaps := document.get("itls")) and isinstance(gaps, list):
        ends = [first + sum(_numbers(row)) for first, row in zip(firsts, gaps, strict=False)]
    if ends and len(ends) == len(firsts) == len(lengths) and level.duration_s:
        rows = [row for row in zip(ends, firsts, lengths, strict=True) if row[2] > 0]
        ends = [end for end, _, _ in rows]
        changes["decoding"] = sum(end - first for end, first, _ in rows) / level.duration_s
    if ends and level.e2e_ms is None:
        changes["e2e_ms"] = 1000 * sum(ends) / len(ends)
    errors = document.get("errors")
    if level.failed is None and isinstance(errors, list):
        changes["failed"] = sum(1 for text in errors if text)
    return msgspec.structs.replace(level, **changes)


def _numbers(values: object) -> list[float]:
    if not isinstance(values, list) or not all(isinstance(value, int | float) for value in values):
        return []
    try:
        return [float(value) for value in values]
    except OverflowError:  # a whole number beyond any time or count
        return []
