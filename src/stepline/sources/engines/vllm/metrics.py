"""vLLM's `/metrics` in the project's words (`v1/metrics/loggers.py`, 0.8.5 to 0.33).

One observation of the inter-token histogram is one engine output per request: with speculation one
verification, not one token. `iteration_tokens_total` is a histogram of tokens per engine step: its count is
the number of steps that yielded output.
"""

import math
from collections.abc import Iterable, Mapping

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin

PREFIX = "vllm:"

SUMS = {
    "num_requests_running": "running",
    "num_requests_waiting": "queued",
    "generation_tokens_total": "generated_tokens",
    "prompt_tokens_total": "prompt_tokens",
    "request_success_total": "finished_requests",
    "num_preemptions_total": "retracted_requests",
    "prefix_cache_queries_total": "prefix_queried_tokens",
    "gpu_prefix_cache_queries_total": "prefix_queried_tokens",
    "prefix_cache_hits_total": "prefix_hit_tokens",
    "gpu_prefix_cache_hits_total": "prefix_hit_tokens",
    "spec_decode_num_drafts_total": "draft_rounds",
    "spec_decode_num_accepted_tokens_total": "accepted_drafts",
    "iteration_tokens_total_count": "steps",
    "iteration_tokens_total_sum": "step_tokens",
    "request_queue_time_seconds_sum": "queue_sum_s",
    "request_queue_time_seconds_count": "queue_count",
    "time_to_first_token_seconds_sum": "ttft_sum_s",
    "time_to_first_token_seconds_count": "ttft_count",
    "inter_token_latency_seconds_sum": "itl_sum_s",
    "inter_token_latency_seconds_count": "itl_count",
    "e2e_request_latency_seconds_sum": "e2e_sum_s",
    "e2e_request_latency_seconds_count": "e2e_count",
}
OLD_NAMES = {
    "time_per_output_token_seconds_sum": "itl_sum_s",
    "time_per_output_token_seconds_count": "itl_count",
}
"""Names up to 0.20; some releases export both."""
USAGES = ("kv_cache_usage_perc", "gpu_cache_usage_perc")
# Where a release exports an old and a new name of one value, the new one counts.
TWINS = {
    "gpu_prefix_cache_queries_total": "prefix_cache_queries_total",
    "gpu_prefix_cache_hits_total": "prefix_cache_hits_total",
    **{name: name.replace("time_per_output_token", "inter_token_latency") for name in OLD_NAMES},
}


def to_metrics(
    samples: Iterable[tuple[str, Mapping[str, str], float]], origin: Origin, time_s: float | None = None
) -> EngineMetrics:
    """Fold one scrape into a record, summed over engines."""
    totals: dict[str, float] = {}
    usage: float | None = None
    for name, labels, value in samples:
        if name == "http_requests_total" and _is_failed_request(labels):
            totals["http_5xx"] = totals.get("http_5xx", 0.0) + value
        if not name.startswith(PREFIX) or math.isnan(value):
            continue
        short = name.removeprefix(PREFIX)
        if short in USAGES:
            usage = max(usage or 0.0, value)
        elif short == "cache_config_info":
            totals["capacity"] = totals.get("capacity", 0.0) + _capacity(labels)
        else:
            totals[short] = totals.get(short, 0.0) + value
    fields = {
        field: totals[name]
        for name, field in {**SUMS, **OLD_NAMES}.items()
        if name in totals and TWINS.get(name) not in totals
    }
    hits, queried = fields.get("prefix_hit_tokens"), fields.get("prefix_queried_tokens")
    accepted, rounds = fields.get("accepted_drafts"), fields.get("draft_rounds")
    return EngineMetrics(
        origin=origin,
        time_s=time_s,
        pool_usage=usage,
        kv_capacity_tokens=totals.get("capacity") or None,
        prefix_hit_share=hits / queried if hits is not None and queried else None,
        accept_length=1 + accepted / rounds if accepted is not None and rounds else None,
        server_errors=totals.get("http_5xx"),
        **fields,
    )


def _capacity(labels: Mapping[str, str]) -> float:
    """Tokens of one engine's pool; for models with several cache groups an upper bound."""
    try:
        return float(labels["num_gpu_blocks"]) * float(labels["block_size"])
    except (KeyError, ValueError):
        return 0.0


def _is_failed_request(labels: Mapping[str, str]) -> bool:
    return labels.get("method") == "POST" and labels.get("status", "").startswith("5")
