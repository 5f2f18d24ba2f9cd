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
    grammar_queued: float | None = None
    """Requests that wait for the grammar of their structured output."""
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
    prompt_tokens: float | None = None
    """Prompt tokens of all requests, those found in the prefix cache included."""
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
    prefix_queried_tokens: float | None = None
    prefix_hit_tokens: float | None = None
    draft_rounds: float | None = None
    """Verifications of drafts, one per request and forward."""
    accepted_drafts: float | None = None


COUNTERS = (
    *("decode_graph_passes", "decode_eager_passes", "prefill_graph_passes", "prefill_eager_passes"),
    *("decode_tokens", "prefill_tokens", "cached_tokens", "prompt_tokens", "generated_tokens"),
    *("finished_requests", "retracted_requests", "queue_sum_s", "queue_count", "ttft_sum_s", "ttft_count"),
    *("itl_sum_s", "itl_count", "e2e_sum_s", "e2e_count", "steps", "step_tokens", "server_errors"),
    *("prefix_queried_tokens", "prefix_hit_tokens", "draft_rounds", "accepted_drafts"),
)
"""Fields that only grow while a server lives; the others are states at scrape time."""


def growth(before: EngineMetrics, after: EngineMetrics) -> EngineMetrics | None:
    """What happened between two scrapes: counters as differences, states as at last.

    Ratios that an engine reports over its whole life are formed anew from the differences. None when a
    counter fell, which means that the server was restarted in between. `time_s` is the end's.
    """
    changes: dict[str, float | None] = {}
    for field in COUNTERS:
        start, end = getattr(before, field), getattr(after, field)
        if start is not None and end is not None and end < start:
            return None
        changes[field] = None if end is None else end - (start or 0.0)
    hits, queried = changes["prefix_hit_tokens"], changes["prefix_queried_tokens"]
    if hits is not None and queried is not None:
        changes["prefix_hit_share"] = hits / queried if queried else None
    accepted, rounds = changes["accepted_drafts"], changes["draft_rounds"]
    if accepted is not None and rounds is not None:
        changes["accept_length"] = 1 + accepted / rounds if rounds else None
    return msgspec.structs.replace(after, **changes)
