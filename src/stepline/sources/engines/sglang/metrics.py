"""SGLang's `/metrics` in the project's words (names of 0.4.1 to 0.5.23)."""

import math
from collections.abc import Iterable, Mapping

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin

PREFIX = "sglang:"

GAUGES = {
    "num_running_reqs": "running",
    "num_queue_reqs": "queued",
    "num_grammar_queue_reqs": "grammar_queued",
    "num_used_tokens": "pool_tokens",
    "max_total_num_tokens": "kv_capacity_tokens",
    "decode_sum_seq_lens": "live_tokens",
    "gen_throughput": "tok_s",
}
COUNTERS = {
    "generation_tokens_total": "generated_tokens",
    "num_requests_total": "finished_requests",
    "queue_time_seconds_sum": "queue_sum_s",
    "queue_time_seconds_count": "queue_count",
    "time_to_first_token_seconds_sum": "ttft_sum_s",
    "time_to_first_token_seconds_count": "ttft_count",
    "inter_token_latency_seconds_sum": "itl_sum_s",
    "inter_token_latency_seconds_count": "itl_count",
    "e2e_request_latency_seconds_sum": "e2e_sum_s",
    "e2e_request_latency_seconds_count": "e2e_count",
    "num_retracted_requests_total": "retracted_requests",
}
BY_MODE = {
    ("cuda_graph_passes_total", "decode_cuda_graph"): "decode_graph_passes",
    ("cuda_graph_passes_total", "decode_none"): "decode_eager_passes",
    ("cuda_graph_passes_total", "prefill_cuda_graph"): "prefill_graph_passes",
    ("cuda_graph_passes_total", "prefill_none"): "prefill_eager_passes",
    ("realtime_tokens_total", "decode"): "decode_tokens",
    ("realtime_tokens_total", "prefill_compute"): "prefill_tokens",
    ("realtime_tokens_total", "prefill_cache"): "cached_tokens",
}
USAGES = ("token_usage", "full_token_usage", "swa_token_usage", "mamba_usage")


def to_metrics(
    samples: Iterable[tuple[str, Mapping[str, str], float]], origin: Origin, time_s: float | None = None
) -> EngineMetrics:
    """Fold one scrape into a record: summed over DP ranks, one TP and one PP rank of each."""
    totals: dict[str, float] = {}
    usage: float | None = None
    accept: float | None = None
    hit: float | None = None
    errors: float | None = None
    for full_name, labels, value in samples:
        if not full_name.startswith(PREFIX) or math.isnan(value):  # NaN is the engine's "no value"
            continue
        name = full_name.removeprefix(PREFIX)
        if labels.get("tp_rank", "0") != "0" or labels.get("pp_rank", "0") != "0":
            continue
        field = GAUGES.get(name) or COUNTERS.get(name) or BY_MODE.get((name, labels.get("mode", "")))
        if field:
            totals[field] = totals.get(field, 0.0) + value
        elif name in USAGES:
            usage = max(usage or 0.0, value)
        elif name == "spec_accept_length" and value > 0:
            accept = value
        elif name == "cache_hit_rate":
            hit = value
        elif name == "http_responses_total" and _is_failed_request(labels):
            errors = (errors or 0.0) + value
    return EngineMetrics(
        origin=origin,
        time_s=time_s,
        pool_usage=usage,
        accept_length=accept,
        prefix_hit_share=hit,
        server_errors=errors,
        **totals,
    )


def _is_failed_request(labels: Mapping[str, str]) -> bool:
    """A 5xx on a generation route; a health probe (GET) answers 503 while the server starts."""
    return labels.get("method") == "POST" and labels.get("status_code", "").startswith("5")
