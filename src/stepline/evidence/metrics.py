"""One scrape of an engine's metrics, in the project's own words."""

import msgspec

from stepline.evidence.origin import Origin


class EngineMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Gauges at scrape time and counters since start; None where the engine does not export one.

    `*_sum_s` and `*_count` are a histogram's sum in seconds and its number of observations.
    """

    origin: Origin
    time_s: float | None = None
    running: float | None = None
    queued: float | None = None
    pool_usage: float | None = None
    pool_tokens: float | None = None
    kv_capacity_tokens: float | None = None
    live_tokens: float | None = None
    """Summed sequence lengths of the running requests, not page-rounded."""
    tok_s: float | None = None
    prefix_hit_share: float | None = None
    accept_length: float | None = None
    decode_graph_passes: float | None = None
    decode_eager_passes: float | None = None
    prefill_graph_passes: float | None = None
    prefill_eager_passes: float | None = None
    decode_tokens: float | None = None
    prefill_tokens: float | None = None
    cached_tokens: float | None = None
    generated_tokens: float | None = None
    finished_requests: float | None = None
    retracted_requests: float | None = None
    queue_sum_s: float | None = None
    queue_count: float | None = None
    ttft_sum_s: float | None = None
    ttft_count: float | None = None
    itl_sum_s: float | None = None
    itl_count: float | None = None
    e2e_sum_s: float | None = None
    e2e_count: float | None = None
    steps: float | None = None
    """Engine steps counted, where the engine counts them."""
    step_tokens: float | None = None
    server_errors: float | None = None
    """Replies with a 5xx status on generation routes."""
